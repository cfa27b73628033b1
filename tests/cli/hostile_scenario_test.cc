// Scenarios that would take all memory or all day: refused at once, with the line and the limit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

using testing::HasSubstr;

/// "threads: ..." and more below a header; the first line after it is line 5.
std::string program(const std::string& text) {
  return "# x\nschema_version: 1\nname: x\nstreams: {s: {flags: non_blocking}}\n" + text;
}

Ran run(const std::string& command, const std::string& text) {
  const Scratch scratch;
  scratch.write("x.yaml", text);
  return scratch.run(hostile_limits() + command);
}

TEST(HostileScenario, ATaskNamesABufferThatIsNotThere) {
  const Ran ran =
      run("foretrace check x.yaml", program("threads:\n  main:\n    - task_graph:\n        tasks:\n"
                                            "          - memcpy_async: {src: a, dst: b}\n"));
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("x.yaml:9:33: error: unknown buffer 'a'"));
}

TEST(HostileScenario, NumbersThatSquareThemselves) {
  std::string text = program("parameters:\n  p0: 2 ** 1000\n");
  std::string division = program("parameters:\n  p0: 3 ** 500\n");
  std::string units = program("parameters:\n  p0: 1B\n");
  for (int i = 1; i <= 40; ++i) {
    text += "  p" + std::to_string(i) + ": $p" + std::to_string(i - 1) + " * $p" +
            std::to_string(i - 1) + "\n";
    units += "  p" + std::to_string(i) + ": $p" + std::to_string(i - 1) + " * $p" +
             std::to_string(i - 1) + "\n";
    const std::string before = "$p" + std::to_string(i - 1);
    division += "  p" + std::to_string(i) + ": (" + before + " * " + before + " + 1) / (" + before +
                " - 1)\n";
  }
  for (const std::string& bomb : {text, division}) {
    const Ran ran = run("foretrace check x.yaml", bomb + "threads: {main: []}\n");
    EXPECT_EQ(ran.exit_code, 2);
    EXPECT_THAT(ran.err, HasSubstr("error: the number gets too large: more than 4096 bits"));
  }
  const Ran ran = run("foretrace check x.yaml", units + "threads: {main: []}\n");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("x.yaml:11:11: error: bytes^16 time^0 * bytes^16 time^0"));
}

TEST(HostileScenario, LoopsOfNothingEndAtOnce) {
  for (const char* ops : {"[]", "[{repeat: {times: 0, ops: [{host_barrier: {}}]}}]",
                          "[{repeat: {times: 1000000, ops: []}}]"}) {
    const std::string text = program(
        "threads: {main: [{repeat: {times: 1000000000000, ops: " + std::string{ops} + "}}]}\n");
    EXPECT_EQ(run("foretrace check x.yaml", text).exit_code, 0) << ops;
    EXPECT_EQ(run("foretrace simulate x.yaml", text).exit_code, 0) << ops;
  }
  const std::string regions = program(
      "threads: {main: [{repeat: {times: 1000000000000, ops: [{region: {name: r, ops: []}}]}}]}\n");
  EXPECT_EQ(run("foretrace check x.yaml", regions).exit_code, 0);
  EXPECT_EQ(run("foretrace simulate x.yaml", regions).exit_code, 2) << "each has a sample";
}

TEST(HostileScenario, MoreExecutionsThanFitIntoMemory) {
  const std::string text = program(
      "threads:\n  main:\n"
      "    - repeat: {times: 1000000000000, ops: [{spin: {stream: s, duration: 1us}}]}\n");
  EXPECT_EQ(run("foretrace check x.yaml", text).exit_code, 0) << "it can be measured";
  const Ran ran = run("foretrace simulate x.yaml", text);
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("x.yaml:7:"));
  EXPECT_THAT(ran.err, HasSubstr("1000000000000 executions"));
  EXPECT_THAT(ran.err, HasSubstr("at most 16777216 can be simulated"));
  EXPECT_THAT(ran.err, HasSubstr("    ^\n"));
}

TEST(HostileScenario, LongerThanTheClockCounts) {
  const std::string spin = program(
      "threads:\n  main:\n    - spin: {stream: s, duration: 9000000s}\n"
      "    - device_synchronize: {}\n");
  const Ran alone = run("foretrace simulate x.yaml", spin);
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_THAT(alone.err, HasSubstr("x.yaml:7:7: error: a time of more than an hour"));
  const std::string loop = program(
      "threads:\n  main:\n"
      "    - repeat: {times: 3, ops: [{spin: {stream: s, duration: 1500s}}]}\n"
      "    - device_synchronize: {}\n");
  const Ran together = run("foretrace simulate x.yaml", loop);
  EXPECT_EQ(together.exit_code, 2);
  EXPECT_THAT(together.err, HasSubstr("x.yaml:8:7: error: more than an hour of simulated time"));
  EXPECT_THAT(together.err, HasSubstr("    - device_synchronize: {}\n        ^\n"));
}

TEST(HostileScenario, MoreGpusThreadsAndMembersThanAnyoneHas) {
  const Ran gpus = run("foretrace check x.yaml",
                       program("processes: 100000\ndevices: 1000\nthreads: {main: []}\n"));
  EXPECT_EQ(gpus.exit_code, 2);
  EXPECT_THAT(gpus.err, HasSubstr("x.yaml:6:10: error: 100000 processes with 1000 devices each are "
                                  "more than 131072 GPUs"));
  std::string threads = "processes: 100000\nthreads:\n";
  for (int i = 0; i < 50; ++i) threads += "  t" + std::to_string(i) + ": []\n";
  const Ran many = run("foretrace check x.yaml", program(threads));
  EXPECT_EQ(many.exit_code, 2);
  EXPECT_THAT(many.err, HasSubstr("x.yaml:9:3: error: more than 262144 host threads"));
  std::string members = "processes: 100000\ncommunicators:\n";
  for (int i = 0; i < 50; ++i) members += "  c" + std::to_string(i) + ": {members: all_devices}\n";
  const Ran crowd = run("foretrace check x.yaml", program(members + "threads: {main: []}\n"));
  EXPECT_EQ(crowd.exit_code, 2);
  EXPECT_THAT(crowd.err, HasSubstr("more than 4194304 members of all communicators together"));
}

TEST(HostileScenario, SlicesThatWouldTakeAllDay) {
  const std::string head =
      "# x\nschema_version: 1\nname: x\nprocess_groups: {w: {ranks: all}}\n"
      "buffers: {a: {memory: device, size: 60GiB}, b: {memory: device, size: 60GiB}}\n";
  const Ran loop = run("foretrace simulate x.yaml --fidelity chunk",
                       head +
                           "processes: 8\nenvironment: {NCCL_ALGO: Ring}\nthreads:\n  main:\n"
                           "    - repeat: {times: 100000, ops: [{all_reduce: {group: w, buffer: a, "
                           "type: float32}}]}\n");
  EXPECT_EQ(loop.exit_code, 2);
  EXPECT_THAT(loop.err, HasSubstr("x.yaml:10:38: error: about "));
  EXPECT_THAT(loop.err, HasSubstr("at most 33554432 can be simulated with --fidelity chunk"));
  EXPECT_THAT(loop.err, HasSubstr("    ^\n  hint: --fidelity flow"));
  const std::string pairs = head +
                            "processes: 4096\nthreads:\n  main:\n"
                            "    - all_to_all: {group: w, input: a, output: b, type: float32}\n";
  const Ran crowd = run("foretrace simulate x.yaml --fidelity chunk", pairs);
  EXPECT_EQ(crowd.exit_code, 2);
  EXPECT_THAT(crowd.err, HasSubstr("x.yaml:9:7: error: nccl_all_to_all of 4096 ranks has 1.68e+07 "
                                   "pairs of ranks"));
  EXPECT_THAT(crowd.err, HasSubstr("at most 4194304"));
}

TEST(HostileScenario, SlicesOfACapturedLoopMeetTheLimitWhileTheyAreSimulated) {
  const Ran ran =
      run("foretrace simulate x.yaml --fidelity chunk",
          program("processes: 8\nenvironment: {NCCL_ALGO: Ring}\ngraphs: {g: {}}\n"
                  "buffers: {a: {memory: device, size: 100GiB}}\n"
                  "communicators: {w: {members: all_devices}}\nthreads:\n  main:\n"
                  "    - graph_capture: {graph: g, stream: s, ops: [{repeat: {times: 1000, ops: ["
                  "{nccl_all_reduce: {comm: w, stream: s, buffer: a, type: float32}}]}}]}\n"
                  "    - graph_launch: {graph: g, stream: s}\n"));
  EXPECT_EQ(ran.exit_code, 2) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("more than 33554432 messages of --fidelity chunk"));
}

TEST(HostileScenario, ATrainingStepOfImpossibleWidth) {
  const Ran ran = run("foretrace simulate x.yaml --machine h100-nvswitch-8",
                      "# x\nschema_version: 1\nname: x\nprocesses: 8\ntraining_step:\n"
                      "  model: {layers: 32, hidden: 1000000, heads: 100, ffn: 14336, "
                      "vocab: 128256}\n  batch: {sequence: 4096, micro: 1, global: 8}\n"
                      "  sharding: fsdp\n  precision: {parameters: float32}\n");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("x.yaml:6:3: error: this step is a program of "));
  EXPECT_THAT(ran.err, HasSubstr("of more than 300000 operations: no more can be read"));
}

TEST(HostileScenario, SearchesThatEndEarlySaySo) {
  const std::string loops = program(
      "signals: {a: {}}\nwarmup: 0\nthreads:\n"
      "  m0: [{repeat: {times: 100000, ops: [{host_wait: {signal: a}}]}}]\n"
      "  m1: [{repeat: {times: 99999, ops: [{host_signal: {signal: a}}]}}]\n");
  const Ran check = run("foretrace check x.yaml", loops);
  EXPECT_EQ(check.exit_code, 0);
  EXPECT_THAT(check.err, HasSubstr("x.yaml:8:40: note: hangs were looked for in the first "
                                   "20000 operations of the run only, up to here"));
  const Ran simulate = run("foretrace simulate x.yaml", loops);
  EXPECT_EQ(simulate.exit_code, 1) << "it hangs";
  EXPECT_THAT(simulate.err, testing::Not(HasSubstr("note:")));
}

TEST(HostileScenario, RacesOfThreeThousandStreamsAreFoundAtOnce) {
  const Ran ran = run("foretrace check x.yaml",
                      "# x\nschema_version: 1\nname: x\n"
                      "streams: {s: {flags: non_blocking, count: 3000}}\n"
                      "buffers: {x: {memory: device, size: 1GiB}}\nthreads:\n  main:\n"
                      "    - repeat: {index: i, times: 30000, ops: [{memset_async: "
                      "{stream: s(i % 3000), dst: x}}]}\n");
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.err, HasSubstr("nothing orders the two"));
  EXPECT_THAT(ran.err, HasSubstr("note: races were looked for in the first 20000 operations"));
}

/// The name stands once in the timeline, and at each span in other formats.
TEST(HostileScenario, ALongNameIsShortenedWhereEverySpanHasIt) {
  const Scratch scratch;
  scratch.write("x.yaml",
                program("threads:\n  main:\n    - repeat: {times: 1000, ops: [spin: "
                        "{stream: s, duration: 1us, id: " +
                        std::string(20'000, 'x') + "}]}\n    - device_synchronize: {}\n"));
  ASSERT_EQ(scratch.run(hostile_limits() + "foretrace simulate x.yaml -o r").exit_code, 0);
  ASSERT_EQ(scratch.run("foretrace export r --to csv -o r/x.csv").exit_code, 0);
  ASSERT_EQ(scratch.run("foretrace export r --to kineto -o r/k").exit_code, 0);
  ASSERT_EQ(scratch.run("foretrace export r --to chakra -o r/e").exit_code, 0);
  for (const char* file :
       {"trace.pftrace", "x.csv", "k/predicted/rank0.pt.trace.json", "e/predicted/rank.0.et"}) {
    EXPECT_LT(std::filesystem::file_size(scratch.path() / "r" / file), 8'000'000u) << file;
  }
}

/// One collective of so many processes, one GPU each.
std::string one_collective(const std::string& processes, const std::string& call) {
  return program("processes: " + processes +
                 "\ncommunicators: {w: {members: all_devices, init: rank}, "
                 "v: {members: all_devices, init: rank}}\n"
                 "buffers: {a: {memory: device, size: 1MiB}}\nthreads:\n  main:\n" +
                 call + "    - device_synchronize: {}\n");
}

TEST(HostileScenario, ABroadcastOfSixteenThousandRanksIsCheckedAtOnce) {
  const Ran ran = run("foretrace check x.yaml",
                      one_collective("16384",
                                     "    - nccl_broadcast: {comm: w, stream: s, send_buffer: a, "
                                     "recv_buffer: a, size: 1KiB, type: float32, root: 8191}\n"));
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
}

/// SimGrid's solver calls itself once for each link of the ring.
TEST(HostileScenario, ARingOfFourThousandNeedsMoreStackThanThereIsAtFirst) {
  const Ran ran = run("ulimit -S -s 2048; foretrace simulate x.yaml -m h100-efa-8",
                      one_collective("4096",
                                     "    - nccl_all_reduce: {comm: w, stream: s, send_buffer: a, "
                                     "recv_buffer: a, size: 1MiB, type: float32, op: sum}\n"));
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
}

/// A machine's parameters are not on the stack: readers of based_on's files have some at once.
TEST(HostileScenario, MachinesAreReadOnASmallStack) {
  const Ran ran = run("ulimit -S -s 512; foretrace machine h200-nvswitch-8", "x");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
}

TEST(HostileScenario, IsSimulatedOnAStackOf64KiB) {
  const Ran ran = run("ulimit -S -s 64; foretrace simulate x.yaml -m h200-nvswitch-8",
                      one_collective("8",
                                     "    - nccl_all_reduce: {comm: w, stream: s, send_buffer: a, "
                                     "recv_buffer: a, size: 1MiB, type: float32, op: sum}\n"));
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
}

TEST(HostileScenario, EveryCommandHasRoomOnTheStack) {
  const Scratch scratch;
  const Ran ran = scratch.run(
      "foretrace simulate scenarios/streams/small_kernels.yaml -o run && ulimit -S -s 64 && "
      "foretrace "
      "report run -o a.html && foretrace export run --to csv -o a.csv && foretrace plan gpt2 "
      "--gpus 8 --global-batch 8 --sequence 1024 --keep recompute=none --keep micro=1 "
      "--top 1 && foretrace plan-serving llama3.2-1b --rate 4/s --prompt 9 --output 9 --machine "
      "1xH100-SXM");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
}

/// A hard limit leaves nothing to raise: the command runs on a stack of its own.
TEST(HostileScenario, EveryCommandRunsWhereTheStackMayNotGrow) {
  const Scratch scratch;
  const Ran ran = scratch.run(
      "foretrace simulate scenarios/streams/small_kernels.yaml -o run && ulimit -s 64 && "
      "foretrace simulate scenarios/nccl/all_reduce.yaml -o two && foretrace report run -o a.html "
      "&& "
      "foretrace export run --to csv -o a.csv && foretrace plan gpt2 --gpus 8 --global-batch 8 "
      "--sequence 1024 --keep recompute=none --keep micro=1 --top 1 && foretrace "
      "plan-serving llama3.2-1b --rate 4/s --prompt 9 --output 9 --machine 1xH100-SXM");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
}

TEST(HostileScenario, ManyRanksThatNeverCallAreCounted) {
  const std::string reduce =
      "{comm: w, stream: s, send_buffer: a, recv_buffer: a, size: 1MiB, "
      "type: float32, op: sum}";
  std::string other = reduce;
  other.replace(other.find('w'), 1, "v");
  const Ran ran = run("foretrace check x.yaml",
                      one_collective("64",
                                     "    - repeat: {times: \"1 - min(process, 1)\", ops: "
                                     "[{nccl_all_reduce: " +
                                         reduce +
                                         "}, {stream_synchronize: {stream: s}}]}\n"
                                         "    - nccl_all_reduce: " +
                                         other +
                                         "\n    - stream_synchronize: {stream: s}\n"
                                         "    - repeat: {times: \"min(process, 1)\", ops: "
                                         "[{nccl_all_reduce: " +
                                         reduce + "}]}\n"));
  EXPECT_EQ(ran.exit_code, 1) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("ranks 1, 2, 3, 4, 5, 6, 7, 8 and 55 more never call it"));
}

TEST(HostileScenario, SoManyStreamsInSoManyProcesses) {
  const Ran streams = run("foretrace simulate x.yaml --machine h200-nvswitch-8",
                          "# x\nschema_version: 1\nname: x\nprocesses: 8\n"
                          "streams: {s: {flags: non_blocking, count: 900000}}\n"
                          "threads: {main: []}\n");
  EXPECT_EQ(streams.exit_code, 2);
  EXPECT_THAT(streams.err, HasSubstr("x.yaml:4:12: error: 8 processes with 900002 streams"));
  EXPECT_THAT(streams.err, HasSubstr("  processes: 8\n             ^\n"));
}

}  // namespace
}  // namespace foretrace::test
