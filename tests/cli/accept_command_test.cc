// foretrace accept as whoever takes over a cluster runs it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kHealthyTable =
    "foretrace nccl-tests all_reduce -b 8 -e 64M -f 8 --processes 8";

/// Of four GPUs; `one_link` is that of GPU 1 and GPU 3.
std::string matrix(const std::string& one_link) {
  return "nvbandwidth Version: v0.8\nDevice 0: NVIDIA H100 80GB HBM3 (00000000:19:00)\n\n"
         "Running device_to_device_memcpy_read_ce.\n"
         "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n"
         "           0         1         2         3\n"
         " 0       N/A    395.08    395.10    395.10\n"
         " 1    395.08       N/A    395.10    " +
         one_link +
         "\n"
         " 2    395.08    395.08       N/A    395.10\n"
         " 3    395.08    395.08    395.10       N/A\n\n"
         "SUM device_to_device_memcpy_read_ce 4741.00\n\n"
         "Running device_to_device_latency_sm.\n"
         "Device to Device Latency SM GPU(row) <-> GPU(column) (ns)\n"
         "           0         1\n 0       N/A    826.42\n 1    825.83       N/A\n";
}

/// Sixteen ranks on two hosts, from 1 MiB on, each size in `us` and in proportion.
std::string two_nodes(const std::string& a, const std::string& b, double us) {
  std::string text =
      "# nThread 1 nGpus 1 minBytes 1048576 maxBytes 4194304 step: 2(factor) warmup iters: 5 "
      "iters: 20 agg iters: 1 validation: 1 graph: 0\n#\n# Using devices\n";
  for (int rank = 0; rank < 16; ++rank) {
    text += fmt::format(
        "#  Rank {:2} Group  0 Pid   {} on {} device  {} [0x0a] NVIDIA H100 80GB HBM3\n", rank,
        4711 + rank, rank < 8 ? a : b, rank % 8);
  }
  text +=
      "#\n#       size         count      type   redop    root     time   algbw   busbw #wrong     "
      "time   algbw   busbw #wrong\n";
  for (int factor = 1; factor <= 4; factor *= 2) {
    const double bytes = factor * 1048576.0, time = us * factor, algbw = bytes / time * 1e-3;
    const std::string side = fmt::format("{:.2f} {:.4f} {:.4f} 0", time, algbw, algbw * 1.875);
    text += fmt::format("{} {} float sum -1 {} {}\n", factor << 20, factor << 18, side, side);
  }
  return text + "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1\n";
}

TEST(AcceptCommand, TakesAMachineThatIsAsTheModelSays) {
  const Scratch scratch;
  ASSERT_EQ(scratch.run(std::string{kHealthyTable} + " --output table.log").exit_code, 0);
  const Ran ran = scratch.run("foretrace accept table.log --junit out.xml");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("all_reduce, 8 ranks on 1 node, below 1 MiB"),
                             HasSubstr("\nACCEPTED: as fast as h200-nvswitch-8 should be.")));
  EXPECT_THAT(read_file(scratch.path() / "out.xml"), Not(HasSubstr("<failure")));
}

TEST(AcceptCommand, RefusesASlowTableWithOneAndAFailureForEachSize) {
  const Scratch scratch;
  scratch.write(
      "slow & old.csv",
      "op,ranks,size_bytes,time_us\nall_reduce,8,1024,9000\nall_reduce,8,16777216,9000\n");
  const Ran ran = scratch.run("foretrace accept 'slow & old.csv' --junit out.xml --format json");
  EXPECT_EQ(ran.exit_code, 1) << ran.err;
  const auto answer = nlohmann::json::parse(ran.out);
  EXPECT_FALSE(answer.at("accepted").get<bool>());
  EXPECT_EQ(answer.at("parts").size(), 2u);
  EXPECT_EQ(answer["parts"][1]["checks"][0]["unit"], "GB/s");
  EXPECT_LT(answer["parts"][1]["of_the_floor"].get<double>(), 0.1);
  const std::string xml = read_file(scratch.path() / "out.xml");
  EXPECT_THAT(xml, AllOf(HasSubstr("<testsuites"), HasSubstr("failures=\"2\""),
                         HasSubstr("slow &amp; old.csv"), HasSubstr("<failure message=")));
}

TEST(AcceptCommand, AllowsAShareOfSlowSizesAsIsSaid) {
  const Scratch scratch;
  scratch.write("one.csv",
                "op,ranks,size_bytes,time_us\nall_reduce,8,1024,9000\nall_reduce,8,2048,10\n"
                "all_reduce,8,4096,10\nall_reduce,8,8192,10\n");
  EXPECT_EQ(scratch.run("foretrace accept one.csv").exit_code, 0);
  EXPECT_EQ(scratch.run("foretrace accept one.csv --allow 10%").exit_code, 1);
  EXPECT_EQ(scratch.run("foretrace accept one.csv --allow 10").exit_code, 2);
}

TEST(AcceptCommand, NamesTheOneSlowLink) {
  const Scratch scratch;
  scratch.write("good.log", matrix("395.10"));
  scratch.write("slow.log", matrix(" 99.10"));
  const Ran good = scratch.run("foretrace accept good.log --machine h100-nvswitch-8");
  EXPECT_EQ(good.exit_code, 0) << good.out << good.err;
  const Ran slow = scratch.run("foretrace accept slow.log --machine h100-nvswitch-8");
  EXPECT_EQ(slow.exit_code, 1) << slow.err;
  EXPECT_THAT(slow.out, AllOf(HasSubstr("device_to_device_memcpy_read_ce: 1 of 12 below the floor"),
                              HasSubstr("worst places:\n  slow: GPU 1 -> GPU 3: slow in 1 of 1")));
  const Ran other = scratch.run("foretrace accept good.log --machine h200-nvswitch-8");
  EXPECT_THAT(other.err, HasSubstr("measured on 'NVIDIA H100 80GB HBM3', and machine "));
}

TEST(AcceptCommand, ReadsTheJsonOfNvbandwidth) {
  const Scratch scratch;
  scratch.write("nvbandwidth.log", R"json({"nvbandwidth": {"testcases": [
    {"name": "host_to_device_memcpy_ce", "status": "Passed", "bandwidth_description": "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)", "bandwidth_matrix": [["55.37", "12.5"]]},
    {"name": "host_to_all_memcpy_ce", "status": "Passed", "bandwidth_matrix": [["55.37"]]},
    {"name": "device_local_copy", "status": "Waived"}]}})json");
  const Ran ran = scratch.run("foretrace accept nvbandwidth.log --machine h100-nvswitch-8");
  EXPECT_EQ(ran.exit_code, 1) << ran.err;
  EXPECT_THAT(ran.out,
              AllOf(HasSubstr("host -> GPU 1: 12.50 GB/s"), Not(HasSubstr("host -> GPU 0:"))));
  EXPECT_THAT(ran.err, AllOf(HasSubstr("host_to_all_memcpy_ce is not judged"),
                             HasSubstr("device_local_copy did not run")));
}

TEST(AcceptCommand, RefusesALinkThatMovesNothing) {
  const Scratch scratch;
  scratch.write("node17.log", matrix("0.00"));
  const Ran ran = scratch.run("foretrace accept node17.log --machine h100-nvswitch-8");
  EXPECT_EQ(ran.exit_code, 1) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("GPU 1 -> GPU 3: 0.00 GB/s"));
}

TEST(AcceptCommand, NamesOfFilesAreNoLinesAndNoXml) {
  const Scratch scratch;
  scratch.write("good.log", matrix("395.10"));
  const std::string name = "\"$(printf 'a\\033[31m\\nACCEPTED <&\"\\377')\"";
  const Ran ran =
      scratch.run("mkdir " + name + " && cp good.log " + name + " && foretrace accept " + name +
                  " --machine h100-nvswitch-8 --junit a.xml && python3 -c 'import "
                  "xml.dom.minidom; xml.dom.minidom.parse(\"a.xml\")'");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out,
              AllOf(HasSubstr("a?[31m?ACCEPTED <&\"?/good.log"), Not(HasSubstr("\nACCEPTED <"))));
}

TEST(AcceptCommand, LeavesOutNoResultThatCannotBeRead) {
  for (const char* const make : {"ln -s none r/b.log", "ln -s b.log r/b.log", "mkfifo r/b.log"}) {
    const Scratch scratch;
    scratch.write("good.log", matrix("395.10"));
    const Ran ran = scratch.run("mkdir r && cp good.log r && " + std::string{make} +
                                " && foretrace accept r --machine h100-nvswitch-8");
    EXPECT_EQ(ran.exit_code, 2) << make << ran.out;
    EXPECT_THAT(ran.err, HasSubstr("r/b.log: no plain file")) << make;
  }
}

TEST(AcceptCommand, NamesTheHostThatIsInEverySlowTable) {
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path() / "results");
  scratch.write("results/all_reduce-n1-n3.log", two_nodes("n1", "n3", 60));
  scratch.write("results/all_reduce-n1-n2.log", two_nodes("n1", "n2", 6000));
  scratch.write("results/notes.txt", "by hand");
  const Ran ran = scratch.run("foretrace accept results --machine 8xH100+ib-ndr:3");
  EXPECT_EQ(ran.exit_code, 1) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("worst places:\n  host n2: slow in 1 of 1"),
                             HasSubstr("host n1: slow in 1 of 2"), Not(HasSubstr("host n3"))));
  EXPECT_THAT(ran.err, HasSubstr("1 other files are not looked at"));
}

TEST(AcceptCommand, JudgesMeasuredScenarios) {
  const Scratch scratch;
  const Ran ran =
      scratch.run("foretrace accept reports/measured/prefetch_two_streams/measured.timeline.json");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("| ok      | regions"), HasSubstr("ACCEPTED")));
  const Ran other = scratch.run(
      "foretrace accept reports/measured/prefetch_two_streams/measured.timeline.json --machine "
      "h200-nvswitch-8 --with pcie=8x");
  EXPECT_EQ(other.exit_code, 2) << "a scenario is predicted on the machine as it is";
}

struct BadResults {
  std::string name, text, said;
  friend std::ostream& operator<<(std::ostream& out, const BadResults& b) { return out << b.name; }
};
class AcceptBadInput : public testing::TestWithParam<BadResults> {};

TEST_P(AcceptBadInput, EndsWithTwoAndTheLine) {
  const Scratch scratch;
  scratch.write("bad.log", GetParam().text);
  const Ran ran = scratch.run("foretrace accept bad.log --machine h100-nvswitch-8");
  EXPECT_EQ(ran.exit_code, 2) << ran.out;
  EXPECT_THAT(ran.err, HasSubstr(GetParam().said));
}

TEST(Accept, ShortensALongNameOfATest) {
  const std::string name(1'000'000, 'x');
  const Scratch scratch;
  scratch.write("bad.log", R"({"nvbandwidth": {"testcases": [{"name": ")" + name +
                               R"(", "bandwidth_matrix": [[1, 2], [3]]}]}})");
  const Ran json = scratch.run("foretrace accept bad.log --machine h100-nvswitch-8");
  EXPECT_EQ(json.exit_code, 2);
  EXPECT_LT(json.err.size(), 1000U);
  scratch.write("bad.log",
                "nvbandwidth Version: v0.8\nRunning " + name +
                    ".\nmemcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n 0 1\n 0 N/A 9\n");
  const Ran text = scratch.run("foretrace accept bad.log --machine h100-nvswitch-8");
  EXPECT_EQ(text.exit_code, 2);
  EXPECT_THAT(text.err, HasSubstr("ends after 1 of its rows"));
  EXPECT_LT(text.err.size(), 1000U);
}

INSTANTIATE_TEST_SUITE_P(
    All, AcceptBadInput,
    testing::Values(
        BadResults{"Nothing", "", "no line of an nccl-tests table in it"},
        BadResults{"WrappedRow", matrix("395.10\n 395.08"),
                   "bad.log:9:1: error: a row of 4 columns has 5 words, and this line 1"},
        BadResults{"CutMatrix", matrix("395.10").substr(0, 297), "ends after 2 of its rows"},
        BadResults{"NoNumber", matrix("fast"), "bad.log:8:"},
        BadResults{"NoMatrix", "nvbandwidth Version: v0.8\nRunning x.\n",
                   "no matrix of nvbandwidth in it"},
        BadResults{
            "DeepJson",
            "{\"nvbandwidth\": " + std::string(100'000, '[') + std::string(100'000, ']') + "}",
            "more than 16 brackets in one another"},
        BadResults{"CutJson", "{\"nvbandwidth\": {\"testcases\": [", "not JSON"},
        BadResults{"RaggedJson",
                   R"({"nvbandwidth": {"testcases": [{"name": "device_to_device_memcpy_read_ce",
                   "bandwidth_matrix": [["N/A", 395], [395]]}]}})",
                   "'bandwidth_matrix' is not rows of equal length"},
        BadResults{"CutJsonMatrix",
                   R"({"nvbandwidth": {"testcases": [{"name": "device_to_device_memcpy_read_ce",
                   "bandwidth_matrix": [["N/A", 395]]}]}})",
                   "'bandwidth_matrix' is not rows of equal length"},
        BadResults{"MapForAMatrix",
                   R"({"nvbandwidth": {"testcases": [{"name": "device_to_device_memcpy_read_ce",
                   "bandwidth_matrix": {"a": ["N/A", 395], "b": [395, "N/A"]}}]}})",
                   "'bandwidth_matrix' is not rows of equal length"},
        BadResults{"OtherJson", "{\"nvbandwidth\": 4}", "not what nvbandwidth -j writes"},
        BadResults{"MoreGpus",
                   "Running host_to_device_memcpy_ce.\nmemcpy CE CPU(row) -> GPU(column) "
                   "bandwidth (GB/s)\n 0 1 2 3 4 5 6 7 8\n 0 9 9 9 9 9 9 9 9 9\n",
                   "of 9 GPUs, and a node of h100-nvswitch-8 has 8"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace foretrace::test
