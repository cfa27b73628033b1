// nccl-tests' output in the forms in which people have it: behind launchers' prefixes, quoted, cut,
// written by a program of its own. Every form holds the same run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <sstream>

#include "sim/applications/nccl_tests/agreement.h"
#include "sim/applications/nccl_tests/log.h"
#include "sim/applications/nccl_tests/log_facts.h"

namespace foretrace::test {
namespace {

using testing::HasSubstr;

constexpr const char* kRun =
    "# nccl-tests version 2.17.1 nccl-headers=22703 nccl-library=22703\n"
    "# Collective test starting: all_reduce_perf\n"
    "# nThread 1 nGpus 1 minBytes 1024 maxBytes 2097152 step: 2(factor) warmup iters: 1 iters: 20 "
    "agg iters: 1 validation: 1 graph: 0\n"
    "#\n"
    "# Using devices\n"
    "#  Rank  0 Group  0 Pid    101 on     a device  0 [0000:1b:00] NVIDIA H100 80GB HBM3\n"
    "#  Rank  1 Group  0 Pid    102 on     a device  1 [0000:43:00] NVIDIA H100 80GB HBM3\n"
    "#  Rank  2 Group  0 Pid    101 on     b device  0 [0000:1b:00] NVIDIA H100 80GB HBM3\n"
    "#  Rank  3 Group  0 Pid    102 on     b device  1 [0000:43:00] NVIDIA H100 80GB HBM3\n"
    "#\n"
    "#                                                    out-of-place               in-place\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time "
    " "
    " algbw   busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us) "
    " (GB/s)  (GB/s)\n"
    "     1048576        262144     float     sum      -1    50.00   20.97   31.46      0    50.10 "
    " "
    " 20.93   31.39      0\n"
    "     2097152        524288     float     sum      -1    80.00   26.21   39.32      0    80.10 "
    " "
    " 26.18   39.27    N/A\n"
    "# Out of bounds values : 0 OK\n"
    "# Avg bus bandwidth    : 35.39\n"
    "#\n";

/// Every line through `change`, which gets its number too.
std::string each_line(const std::function<std::string(const std::string&, int)>& change) {
  std::istringstream lines{kRun};
  std::string text, line;
  for (int i = 0; std::getline(lines, line); ++i) text += change(line, i) + "\n";
  return text;
}

std::string prefixed(const std::string& prefix) {
  return each_line([&](const std::string& line, int) { return prefix + line; });
}

std::string without(const std::string& text, const std::string& line_with) {
  std::istringstream lines{text};
  std::string rest, line;
  while (std::getline(lines, line)) {
    if (line.find(line_with) == std::string::npos) rest += line + "\n";
  }
  return rest;
}

std::string two_digits(int i) { return (i < 10 ? "0" : "") + std::to_string(i); }

std::string without_hash(const std::string& line) {
  return line.starts_with("#") ? line.substr(1) : line;
}

std::map<std::string, std::string> forms() {
  std::map<std::string, std::string> all;
  all["as it is printed"] = kRun;
  all["mpirun --tag-output"] = prefixed("[1,0]<stdout>:");
  all["mpirun --tag-output of Open MPI 5"] = prefixed("[prterun-a-4711@1,0]<stdout>: ");
  all["mpirun --timestamp-output"] = each_line([](const std::string& line, int i) {
    return "Thu Jul 18 15:59:" + two_digits(40 + i) + " 2024<stdout>:" + line;
  });
  all["mpirun, over midnight and the end of the month"] =
      each_line([](const std::string& line, int i) {
        return (i < 8 ? "Wed Jul 31 23:59:5" : "Thu Aug  1 00:00:0") + std::to_string(i % 8) +
               " 2024[1,0]<stdout>:" + line;
      });
  all["srun -l"] = prefixed("0: ");
  all["srun -l of many tasks"] = prefixed(" 0: ");
  all["kubectl logs --prefix"] = prefixed("[pod/nccl-test-launcher-x7k2p/main] ");
  all["kubectl logs --timestamps"] = each_line([](const std::string& line, int i) {
    return "2024-07-18T15:41:05." + std::to_string(10 + i * 977) + "Z " + line;
  });
  all["kubectl logs with both"] = each_line([](const std::string& line, int i) {
    return "[pod/l-0/mpi] 2024-07-18T15:41:" + two_digits(i) + ".123456789Z " + line;
  });
  all["Ray"] = prefixed("(NcclWorker pid=3808, ip=10.100.10.12) ");
  all["Ray in colours"] = prefixed("\x1b[36m(NcclWorker pid=3808)\x1b[0m ");
  all["SkyPilot around mpirun"] = prefixed("(head, rank=0, pid=3808) [1,0]<stdout>:");
  all["torchrun and others"] = prefixed("[0]");
  all["torchrun --tee"] = prefixed("[default0]:");
  all["docker compose"] = prefixed("nccl-1  | ");
  all["a logger"] = each_line([](const std::string& line, int i) {
    return "2024-07-18 15:41:" + two_digits(i) + ",123 INFO " + line;
  });
  all["ts"] = each_line(
      [](const std::string& line, int i) { return "Jul 18 15:41:" + two_digits(i) + " " + line; });
  all["quoted"] = prefixed("> ");
  all["indented in a page"] = prefixed("    ");
  all["from Windows"] = each_line([](const std::string& line, int) { return line + "\r"; });
  all["a page took the hashes"] =
      each_line([](const std::string& line, int) { return without_hash(line); });
  all["a page took the hashes behind a prefix"] =
      each_line([](const std::string& line, int) { return "0: " + without_hash(line); });
  all["with NCCL_DEBUG=INFO in between"] = each_line([](const std::string& line, int i) {
    return line + "\na:101:" + std::to_string(200 + i) + " [0] NCCL INFO Channel 00/16 : 0 1 2 3";
  });
  all["with -S 1"] = each_line([](const std::string& line, int) {
    if (line.find("count") != std::string::npos) return line + "            timestamp";
    return line.starts_with("  ") ? line + "  2024-07-18 15:41:05" : line;
  });
  all["ranks left out"] = without(kRun, "Rank  2");
  all["behind the job's script"] =
      "mpirun -np 4 -x NCCL_DEBUG=WARN ./build/all_reduce_perf -b 1M -e 2M -f 2\n" + prefixed("");
  return all;
}

std::string json_run() {
  std::string devices;
  for (int rank = 0; rank < 4; ++rank) {
    devices += std::string{rank == 0 ? "" : ","} + R"({"rank":)" + std::to_string(rank) +
               R"(,"group":0,"pid":1,"hostname":")" + (rank < 2 ? "a" : "b") +
               R"(","device":0,"device_hex":"0000:1b:00","device_info":"NVIDIA H100 80GB HBM3"})";
  }
  const auto row = [](const char* size, const char* count, const char* time, const char* alg,
                      const char* bus) {
    const std::string side = std::string{R"({"time":)"} + time + R"(,"alg_bw":)" + alg +
                             R"(,"bus_bw":)" + bus + R"(,"nwrong":0.000000})";
    return std::string{R"({"size":)"} + size + R"(,"count":)" + count +
           R"(,"type":"float","redop":"sum","root":"    -1","out_of_place":)" + side +
           R"(,"in_place":)" + side + R"(,"actual_iterations":20,"experiment_name":"x"})";
  };
  return std::string{R"({"version":3,"start_time":"2026-07-09 16:03:21","args":)"} +
         R"(["..\/build\/all_reduce_perf","-b","1M"],"env":["HOME=\/root"],"nccl_version":22703,)" +
         R"("config":{"nthreads":1,"ngpus":1,"minimum_bytes":1,"maximum_bytes":2,"step_factor":2,)" +
         R"("warmup_iters":1,"iterations":20,"aggregated_iterations":1,"validation":1,"graph":0,)" +
         R"("blocking_collectives":"false","parallel_init":"false","devices":[)" + devices +
         "]},\"results\":[" + row("1048576", "262144", "50.000000", "20.971520", "31.457280") +
         "," + row("2097152", "524288", "80.000000", "26.214400", "39.321600") +
         "],\"end_time\":\"2026-07-09 16:03:22\"}";
}

void expect_the_run(const Checked<std::vector<NcclTestsSample>>& read, const std::string& text,
                    const std::string& form) {
  ASSERT_TRUE(read.has_value()) << form << "\n" << render(read.error(), text);
  ASSERT_EQ(read->size(), 2u) << form;
  const NcclTestsSample& last = read->at(1);
  EXPECT_EQ(last.plan.op, NcclTestsOp::AllReduce) << form;
  EXPECT_EQ(last.bytes, 2097152u) << form;
  EXPECT_EQ(last.time_us, 80) << form;
  EXPECT_EQ(last.plan.processes, 4u) << form;
  EXPECT_EQ(last.plan.nodes, 2u) << form;
  EXPECT_EQ(last.plan.nccl, "2.27.3") << form;
  EXPECT_EQ(last.gpu, "NVIDIA H100 80GB HBM3") << form;
}

TEST(NcclTestsForms, OfAllLaunchersHoldTheSameRun) {
  const auto all = forms();
  EXPECT_GE(all.size(), 20u);
  for (const auto& [form, text] : all) {
    expect_the_run(read_nccl_tests_log(text, "x.log", {}), text, form);
  }
}

TEST(NcclTestsForms, JsonOfThePrograms) {
  expect_the_run(read_nccl_tests_json(json_run(), "x.json", {}), json_run(), "-J");
}

TEST(NcclTestsForms, JsonThatIsCutOrDeepIsRefused) {
  const std::string run = json_run();
  for (std::size_t i = 0; i < run.size(); i += 13) {
    EXPECT_FALSE(read_nccl_tests_json(run.substr(0, i), "x.json", {}).has_value()) << i;
  }
  EXPECT_FALSE(read_nccl_tests_json(std::string(100'000, '['), "x.json", {}).has_value());
}

/// Cut off to an int, each would be another run.
TEST(NcclTestsForms, JsonWhoseCountsAreNotWholeOrDoNotFitIsRefused) {
  const auto with = [](const std::string& was, const std::string& is) {
    std::string text = json_run();
    return text.replace(text.find(was), was.size(), is);
  };
  for (const std::string& text :
       {with("\"size\":1048576,", "\"size\":1048576.5,"),
        with("\"size\":1048576,", "\"size\":-1048576,"),
        with("\"ngpus\":1", "\"ngpus\":4294967297"), with("\"nthreads\":1", "\"nthreads\":1.5"),
        with("\"iterations\":20", "\"iterations\":4294967316"),
        with("\"warmup_iters\":1", "\"warmup_iters\":1.5"),
        with("\"graph\":0", "\"graph\":4294967296"),
        with("\"aggregated_iterations\":1", "\"aggregated_iterations\":4294967297"),
        with("\"nccl_version\":22703", "\"nccl_version\":4294989999"),
        with("\"group\":0", "\"group\":4294967296")}) {
    const auto read = read_nccl_tests_json(text, "x.json", {});
    ASSERT_FALSE(read.has_value()) << text;
    EXPECT_THAT(read.error().front().message,
                HasSubstr("is no whole number that is possible here"));
  }
}

TEST(NcclTestsForms, ProgramsThatRanSideBySideAreNoRunOfAll) {
  std::string text = kRun;
  text.replace(text.find("Rank  2"), 7, "Rank  0");
  const auto read = read_nccl_tests_log(text, "x.log", {});
  ASSERT_FALSE(read.has_value());
  EXPECT_THAT(read.error().front().hint, HasSubstr("MPI=1"));
}

TEST(NcclTestsForms, GroupsOfRanksAndCpuTimesCannotBePredicted) {
  std::string groups = kRun;
  groups.replace(groups.find("Rank  3 Group  0") + 15, 1, "1");
  EXPECT_FALSE(read_nccl_tests_log(groups, "x.log", {}).has_value());
  std::string cpu = kRun;
  cpu.replace(cpu.find("    time   algbw"), 8, " cputime");
  EXPECT_FALSE(read_nccl_tests_log(cpu, "x.log", {}).has_value());
}

TEST(NcclTestsRelease, IsReadOfTheHeadingAndOfNcclsOwnLine) {
  EXPECT_EQ(release_in("# nccl-tests version 2.19.6 nccl-headers=21805 nccl-library=21805"),
            "2.18.5");
  EXPECT_EQ(release_in("NCCL version 2.21.5+cuda12.4"), "2.21.5");
  EXPECT_EQ(release_in("a:1:2 [0] NCCL INFO NCCL version 2.29.7+cuda12.9"), "2.29.7");
  EXPECT_EQ(release_in("RCCL version : 2.22.3-HEAD"), "");
  EXPECT_EQ(release_in("NCCL version 2.18.3+hip6.2"), "");
  EXPECT_EQ(release_of_code(2803), "2.8.3");
}

TEST(NcclTestsRelease, BeyondTheKnownOnesLeavesTheMachinesOwn) {
  std::string text = kRun;
  text.replace(text.find("nccl-library=22703"), 18, "nccl-library=23102");
  const auto read = read_nccl_tests_log(text, "x.log", {});
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->front().plan.nccl, "");
}

TEST(NcclTestsLog, OfAllGatherBefore2020CountedItsBandwidthInAnotherWay) {
  // 131072 floats of the one other rank in 47.38 us: 11.06 GB/s, and the factor was 1
  const std::string text =
      "# nThread 1 nGpus 2 minBytes 8 maxBytes 128 step: 2(factor) warmup iters: 5 iters: 20\n"
      "#       size         count    type     time   algbw   busbw  error     time   algbw   busbw "
      " error\n"
      "     1048576        131072   float    47.38   11.06   11.06  0e+00    46.84   11.19   11.19 "
      " 0e+00\n";
  NcclTestsAssumed assumed;
  assumed.op = NcclTestsOp::AllGather;
  const auto read = read_nccl_tests_log(text, "x.log", assumed);
  ASSERT_TRUE(read.has_value()) << render(read.error(), text);
  EXPECT_EQ(read->front().time_us, 47.38);
  assumed.op =
      NcclTestsOp::AllReduce;  // of two ranks: the same factor, so nothing speaks against it
  EXPECT_TRUE(read_nccl_tests_log(text, "x.log", assumed).has_value());
}

TEST(NcclTestsCsvFile, HasCommentsAndSaysThreadsAndTypesInItsNote) {
  const std::string text =
      "# Public tables.\n\ngpu,gpus,collective,bytes,time_us,note\n"
      "H100,4,alltoall,1024,12.4,\"nccl-tests -t 4 -d half (one process, a thread per GPU)\"\n"
      "# a remark\nH100,4,alltoall,2048,13,\n";
  NcclTestsAssumed assumed;
  assumed.plan.threads = 2;  // -t 2, for rows that do not tell
  const auto read = read_nccl_tests_csv(text, "x.csv", assumed);
  ASSERT_TRUE(read.has_value()) << render(read.error(), text);
  EXPECT_EQ(read->at(0).plan.threads, 4u);
  EXPECT_EQ(read->at(0).plan.processes, 1u);
  EXPECT_EQ(read->at(0).plan.type, "half");
  EXPECT_EQ(read->at(0).gpu, "H100");
  EXPECT_EQ(read->at(1).plan.threads, 2u);
  EXPECT_EQ(read->at(1).plan.processes, 2u);
  EXPECT_EQ(read->at(1).plan.type, "float");
}

TEST(NcclTestsAgreement, AnotherGpuIsSaidWithTheMachinesThatHaveIt) {
  const auto read = read_nccl_tests_log(kRun, "x.log", {});
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(contradictions(*read, load_machine("h100-nvswitch-8")), "");
  const std::string said = contradictions(*read, load_machine("h200-nvswitch-8"));
  EXPECT_THAT(said, HasSubstr("x.log: measured on 'NVIDIA H100 80GB HBM3', and machine "
                              "'h200-nvswitch-8' has 'NVIDIA H200'"));
  EXPECT_THAT(said, HasSubstr("h100-nvswitch-8"));
}

TEST(NcclTestsAgreement, HostsOfOneNvlinkDomainAreOneNode) {
  const std::string text =
      "schema_version: 2\nname: m\nbased_on: b200-nvswitch-8\n"
      "node: {count: 1, gpus: 72, gpu: NVIDIA GB200, link: nvswitch}\n";
  const auto machine = read_machine(text, "m.yaml");
  ASSERT_TRUE(machine.has_value()) << render(machine.error(), text);
  NcclTestsSample sample;
  sample.plan.processes = 72;
  sample.plan.nodes = 18;
  std::vector<NcclTestsSample> samples{sample};
  in_domains(samples, *machine);
  EXPECT_EQ(samples[0].plan.nodes, 1u);
  samples = {sample};
  samples[0].plan.nodes = 9;
  in_domains(samples, load_machine("h200-nvswitch-8"));
  EXPECT_EQ(samples[0].plan.nodes, 9u);
}

}  // namespace
}  // namespace foretrace::test
