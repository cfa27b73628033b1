// What `foretrace check` says, and that `simulate` says the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class CheckCommand : public testing::Test {
 protected:
  Ran check(const std::string& text, const std::string& options = {}) {
    scratch_.write("x.yaml", text);
    return scratch_.run("foretrace check x.yaml" + options);
  }
  Ran simulate(const std::string& text, const std::string& options = {}) {
    scratch_.write("x.yaml", text);
    return scratch_.run("foretrace simulate x.yaml" + options);
  }
  Scratch scratch_;
};

const std::string kHeadOfX = "schema_version: 1\nname: x\n";
const std::string kIssueOnly =
    kHeadOfX +
    "streams: {s: {}}\nthreads:\n  main:\n"
    "    - region: {name: step, ops: [spin: {stream: s, duration: 50us}]}\n"
    "    - device_synchronize: {}\n";

TEST_F(CheckCommand, WarnsOfARegionThatTimesIssuingAndSimulateToo) {
  const std::string warning =
      "x.yaml:6:7: warning: region 'step' ends while the work that it issued may still run: it "
      "times issuing only\n"
      "      - region: {name: step, ops: [spin: {stream: s, duration: 50us}]}\n"
      "        ^\n"
      "  hint: add stream_synchronize: {stream: s} before its end; if issuing is what you time, "
      "add issue_only: true\n";
  const Ran checked = check(kIssueOnly);
  EXPECT_EQ(checked.exit_code, 0);
  EXPECT_EQ(checked.err, warning);
  const Ran simulated = simulate(kIssueOnly);
  EXPECT_EQ(simulated.exit_code, 0);
  EXPECT_THAT(simulated.err, StartsWith(warning));
}

TEST_F(CheckCommand, RefusesAProductIntoOneOfItsFactors) {
  const Ran ran = check(kHeadOfX +
                        "buffers: {x: {memory: device, size: 1MiB}}\nthreads:\n  main:\n"
                        "    - gemm: {m: 64, n: 64, k: 64, a: x, b: x, c: x}\n");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err,
              HasSubstr("x.yaml:6:50: error: 'c' is the same buffer as 'a': cuBLAS may write c "
                        "before it has read all of a and b\n"
                        "      - gemm: {m: 64, n: 64, k: 64, a: x, b: x, c: x}\n"
                        "                                                   ^\n"
                        "  hint: give 'c' a buffer of its own\n"));
}

TEST_F(CheckCommand, WarnsOfAPriorityThatCudaClampsAndSimulateToo) {
  const std::string text = kHeadOfX +
                           "streams: {s: {priority: -9}}\nthreads:\n  main:\n"
                           "    - spin: {stream: s, duration: 50us}\n";
  const std::string warning =
      "x.yaml:3:25: warning: priority -9 is not in CUDA's range, -5 to 0: CUDA takes -5\n"
      "  streams: {s: {priority: -9}}\n"
      "                          ^\n"
      "  hint: a lower one goes first, and streams beyond the range are as those at its end: say "
      "-5\n";
  for (const Ran& ran : {check(text), simulate(text)}) {
    EXPECT_EQ(ran.exit_code, 0);
    EXPECT_EQ(ran.err, warning);
  }
}

TEST_F(CheckCommand, SaysHowManyOperationsItReadAndHowOftenTheyAreExecuted) {
  const std::string text = kHeadOfX +
                           "processes: 2\nthreads:\n  main:\n"
                           "    - host_compute: {duration: 1us}\n"
                           "    - repeat: {times: 10, ops: [host_compute: {duration: 1us}]}\n";
  EXPECT_THAT(check(text).out, StartsWith("ok: x, 2 processes, 1 device each, 3 operations read, "
                                          "executed 24 times, hash "));
  const std::string json = check(text, " --format json").out;
  EXPECT_THAT(json, HasSubstr("\"operations\": 3,"));
  EXPECT_THAT(json, HasSubstr("\"executed\": 24,"));
}

TEST_F(CheckCommand, SaysHowMuchMemoryTheBuffersOfAProcessTake) {
  const std::string buffers =
      "buffers:\n  x: {memory: device, size: 1GiB, count: 2}\n  y: {memory: nccl, size: 512MiB}\n"
      "  z: {memory: pinned, size: 20MiB}\n  p: {memory: fresh_pageable, size: 4KiB}\n";
  const std::string threads = "threads:\n  main: [host_compute: {duration: 1us}]\n";
  EXPECT_THAT(
      check(kHeadOfX + buffers + threads).out,
      HasSubstr("executed 1 time, buffers of 2.5 GiB device and 20.0 MiB host memory, hash"));
  EXPECT_THAT(
      check(kHeadOfX + "processes: 2\nbuffers: {z: {memory: pinned, size: 3000KB}}\n" + threads)
          .out,
      HasSubstr("executed 2 times, buffers of 2.9 MiB host memory each, hash"));
  const std::string json = check(kHeadOfX + buffers + threads, " --format json").out;
  EXPECT_THAT(json, HasSubstr("\"device_bytes_per_process\": 2684354560,"));
  EXPECT_THAT(json, HasSubstr("\"host_bytes_per_process\": 20975616,"));
}

TEST_F(CheckCommand, SaysNothingOfBuffersOfATrainingStepWhoseTensorsAreNone) {
  EXPECT_THAT(check("schema_version: 1\nname: x\nprocesses: 1\n"
                    "training_step: {model: gpt2, batch: {sequence: 128}}\n")
                  .out,
              AllOf(StartsWith("ok: x, "), Not(HasSubstr("buffers of"))));
}

TEST_F(CheckCommand, IsFollowedByATableThatSaysWhatATimeIsDividedBy) {
  const Ran ran = simulate(kHeadOfX +
                           "threads:\n  main:\n"
                           "    - repeat: {times: 2, ops: [region: {name: step, per: 20, ops: "
                           "[repeat: {times: 20, ops: [host_compute: {duration: 9us}]}]}]}\n");
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.out, HasSubstr("| step / 20 "));
  EXPECT_THAT(ran.out, HasSubstr("| step #1 / 20 "));
  EXPECT_EQ(ran.err, "") << "180 us are long enough";
}

TEST_F(CheckCommand, IsFollowedByOneLineAboutAllRegionsThatAreTooShort) {
  const auto region = [](const std::string& name) {
    return "    - region: {name: " + name + ", ops: [host_compute: {duration: 9us}]}\n";
  };
  const std::string head = kHeadOfX + "threads:\n  main:\n";
  const std::string end = "; put a repeat inside and divide with per\n";
  EXPECT_EQ(simulate(head + region("issue_it")).err, "") << "it is meant to be short";
  EXPECT_EQ(simulate("warmup: 0\n" + head + region("a")).err, "") << "what is cold comes once";
  EXPECT_EQ(simulate(head + region("a") + region("b")).err,
            "x.yaml: note: regions under 30 us jitter when they are measured: 'a', 'b'" + end);
  EXPECT_EQ(
      simulate(head + region("a") + region("b") + region("c") + region("d")).err,
      "x.yaml: note: regions under 30 us jitter when they are measured: 'a', 'b', 'c', 1 more" +
          end);
}

TEST_F(CheckCommand, RefusesAUseAfterAFreeAndSimulateToo) {
  const std::string text = kHeadOfX +
                           "buffers: {x: {memory: device, size: 1MiB}}\nthreads:\n  main:\n"
                           "    - malloc: {buffer: x}\n    - free: {buffer: x}\n"
                           "    - memset: {dst: x}\n";
  const std::string error =
      "x.yaml:8:7: error: buffer 'x' is used here, and line 7 freed it\n"
      "      - memset: {dst: x}\n        ^\n  hint: free it behind its last use\n";
  for (const Ran& ran : {check(text), simulate(text)}) {
    EXPECT_EQ(ran.exit_code, 2);
    EXPECT_THAT(ran.err, HasSubstr(error));
  }
}

TEST_F(CheckCommand, CallsAHangAnErrorAndEndsWithOneAsSimulateDoes) {
  const std::string text =
      kHeadOfX + "signals: {go: {}}\nthreads: {main: [host_wait: {signal: go}]}\n";
  const std::string error =
      "x.yaml:4:18: error: nothing in this file gives the signal 'go': this waits for ever\n";
  for (const Ran& ran : {check(text), simulate(text)}) {
    EXPECT_EQ(ran.exit_code, 1);
    EXPECT_THAT(ran.err, HasSubstr(error));
    EXPECT_THAT(ran.err, Not(HasSubstr("warning")));
  }
}

const std::string kLarge =
    kHeadOfX +
    "buffers:\n  x: {memory: device, size: 100GiB}\n  y: {memory: device, size: 30GiB, count: 2}\n"
    "threads: {main: []}\n";

TEST_F(CheckCommand, RefusesBuffersThatDoNotFitOnTheNamedMachineAsSimulateDoes) {
  const std::string error =
      "x.yaml: error: the buffers on device 0 need 160.0 GiB, a GPU of machine 'h200-nvswitch-8' "
      "has 139.8 GiB\n  hint: largest: 'x' 100.0 GiB, 'y' 2 of 30.0 GiB each; make them smaller, "
      "or "
      "spread them over devices\n";
  for (const Ran& ran : {check(kLarge, " --machine h200-nvswitch-8"), simulate(kLarge)}) {
    EXPECT_EQ(ran.exit_code, 2);
    EXPECT_THAT(ran.err, HasSubstr(error));
  }
}

TEST_F(CheckCommand, OnlyWarnsOfMemoryWhereNoMachineIsNamed) {
  const Ran ran = check(kLarge);
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.err, HasSubstr("x.yaml: warning: the buffers on device 0 need 160.0 GiB"));
  EXPECT_THAT(ran.err, HasSubstr("for another machine, name it: --machine"));
}

TEST_F(CheckCommand, KnowsTheTensorsOfATrainingStep) {
  const std::string text =
      kHeadOfX +
      "processes: 1\ntraining_step: {model: llama3-8b, batch: {sequence: 8192, micro: 4, "
      "global: 4}, sharding: none, precision: {parameters: float32}}\n";
  const Ran ran = check(text);
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("warning: at its peak the step needs "));
  const Ran named = check(text, " -m h200-nvswitch-8");
  EXPECT_EQ(named.exit_code, 2);
  EXPECT_THAT(named.err, HasSubstr("a GPU of machine 'h200-nvswitch-8' has 150.1 GB"));
  EXPECT_THAT(named.err, Not(HasSubstr("buffers"))) << "nobody wrote those";
}

TEST_F(CheckCommand, WarnsOfMemoryThatNeedNotBeThereAtOnce) {
  const Ran ran =
      check(kHeadOfX +
                "buffers: {x: {memory: device, size: 100GiB}, y: {memory: device, size: "
                "100GiB}}\nthreads: {main: [{malloc: {buffer: x}}, {free: {buffer: x}}, "
                "{malloc: {buffer: y}}, {free: {buffer: y}}]}\n",
            " -m h200-nvswitch-8");
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.err, HasSubstr("need 200.0 GiB where all of them are there at once"));
}

TEST_F(CheckCommand, SaysOfAnUnknownMachineOnce) {
  const Ran ran = check(kLarge, " -m nosuch");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, StartsWith("error: unknown machine 'nosuch'"));
}

TEST_F(CheckCommand, NamesNoMachineWhereItsOwnFilesAreMissing) {
  scratch_.run("mkdir -p data/models/machines data/scenarios");
  const std::string small = kHeadOfX + "threads: {main: [host_compute: {duration: 1us}]}\n";
  for (const std::string& data : {"data", "nosuch"}) {
    scratch_.write("x.yaml", small);
    const Ran ran = scratch_.run("FORETRACE_DATA=$PWD/" + data + " foretrace check x.yaml");
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_THAT(ran.err, AllOf(HasSubstr("foretrace's machine files are missing"),
                               Not(HasSubstr("h200")), EndsWith("\n")));
  }
}

TEST_F(CheckCommand, EndsWhatItSaysWithALineEnd) {
  const Ran ran = scratch_.run("foretrace check nosuch.yaml");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, EndsWith("\n"));
}

TEST_F(CheckCommand, SaysWhatIsDoubtfulBesideWhatDoesNotFit) {
  const Ran ran =
      check(kHeadOfX +
                "events: {e: {}}\nbuffers: {x: {memory: device, size: 200GiB}}\nthreads: "
                "{main: [{event_synchronize: {event: e}}]}\n",
            " -m h200-nvswitch-8");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("error: the buffers on device 0 need 200.0 GiB"));
  EXPECT_THAT(ran.err, HasSubstr("event 'e' is recorded nowhere"));
}

TEST_F(CheckCommand, LooksForGpusOnTheNamedMachineOnly) {
  const std::string text = kHeadOfX + "devices: 16\nthreads: {main: []}\n";
  EXPECT_EQ(check(text).exit_code, 0);
  const Ran named = check(text, " --machine h200-nvswitch-8");
  EXPECT_EQ(named.exit_code, 2);
  EXPECT_THAT(named.err, HasSubstr("has 8"));
  EXPECT_EQ(check(text, " --machine nowhere").exit_code, 2);
}

TEST_F(CheckCommand, PrintsAWarningOnceAndTheLinesOfThoseLikeIt) {
  std::string text = kHeadOfX +
                     "buffers: {x: {memory: device, size: 1MiB, count: 2}}\n"
                     "threads:\n  main:\n";
  for (int i = 0; i < 14; ++i) {
    text += "    - gemm: {m: 63, n: 63, k: 63, type: bfloat16, a: x(0), b: x(0), c: x(1)}\n";
  }
  const Ran few = check(text);
  EXPECT_EQ(few.exit_code, 0);
  EXPECT_EQ(few.err.find("warning: "), few.err.rfind("warning: "));
  EXPECT_THAT(few.err, HasSubstr("x.yaml:6:7: warning: m = 63 is no multiple of 8"));
  EXPECT_THAT(few.err, HasSubstr("  and 13 more like it, in lines 7, 8, 9, 10, 11, 12, 13, 14, 15, "
                                 "16, ... (foretrace check --all prints each)\n"));
  const Ran all = check(text, " --all");
  EXPECT_THAT(all.err, HasSubstr("x.yaml:19:7: warning: m = 63"));
  EXPECT_THAT(all.err, Not(HasSubstr("more like it")));
}

TEST_F(CheckCommand, EndsSoonHoweverManyRegionsAndAllocationsThereAre) {
  std::string text = kHeadOfX +
                     "processes: 2000\nbuffers: {x: {memory: device, size: 4KiB, count: 100}}\n"
                     "threads:\n  main:\n"
                     "    - repeat: {index: i, times: 1000000, ops: [malloc: {buffer: x(i % 100)}, "
                     "free: {buffer: x(i % 100)}]}\n";
  for (int i = 0; i < 1000; ++i) {
    text += "    - region: {name: r" + std::to_string(i) + ", ops: [memset: {dst: x(0)}]}\n";
  }
  scratch_.write("x.yaml", text);
  const Ran ran = scratch_.run(hostile_limits() + "foretrace check x.yaml");
  EXPECT_THAT(ran.exit_code, testing::AnyOf(0, 2)) << ran.err.substr(0, 1000);
}

TEST_F(CheckCommand, IsFollowedByExplainThatNamesItsRegion) {
  const Ran run = scratch_.run(
      "foretrace simulate scenarios/explain/straggler.yaml -o run && foretrace explain run");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, testing::ContainsRegex(
                           "region '[a-z_]+' in line [0-9]+ \\(the longest; process [01], "
                           "[0-9]+ executions?\\): .*first of all by straggler"));
}

TEST_F(CheckCommand, IsNamedByExplainOfARunThatNeverEnds) {
  const Ran run = scratch_.run(
      "foretrace simulate scenarios/hangs/recv_without_send_warm.yaml -o run; foretrace explain "
      "run");
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_THAT(run.out, HasSubstr("the run never ends"));
  const Ran json = scratch_.run("foretrace explain run --format json");
  EXPECT_EQ(json.exit_code, 1) << json.err;
  EXPECT_THAT(json.out, HasSubstr("\"ends\": false"));
}

}  // namespace
}  // namespace foretrace::test
