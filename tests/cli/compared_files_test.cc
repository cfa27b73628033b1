// foretrace nccl-tests --compare with files that are missing, cut off, garbled, or contradict the
// command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;

// Written by hand in nccl-tests' format; 1 MiB in 20 us.
constexpr const char* kLog = R"(# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes 1048576 maxBytes 2097152 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1
#
# Using devices
#  Rank  0 Group  0 Pid      0 on      node0 device  0 [0000:00:00] NVIDIA H200
#  Rank  1 Group  0 Pid      1 on      node0 device  1 [0000:01:00] NVIDIA H200
#  Rank  2 Group  0 Pid      2 on      node0 device  2 [0000:02:00] NVIDIA H200
#  Rank  3 Group  0 Pid      3 on      node0 device  3 [0000:03:00] NVIDIA H200
#
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1    20.00   52.43   78.64       0    20.00   52.43   78.64       0
     2097152        524288     float     sum      -1    28.00   74.90  112.35       0    28.00   74.90  112.35       0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 95.495
#
)";

struct Damage {
  const char* what;
  const char* pattern;  ///< regular expression, replaced in kLog
  const char* by;
  const char* flags;
  const char* says;
  friend std::ostream& operator<<(std::ostream& out, const Damage& d) { return out << d.what; }
};
class DamagedLogs : public testing::TestWithParam<Damage> {};
INSTANTIATE_TEST_SUITE_P(
    All, DamagedLogs,
    testing::Values(
        Damage{"Empty", "[^]*", "", "", "no line of an nccl-tests table in it"},
        Damage{"CutInTheHeader", "Using devices[^]*", "", "", "no line of an nccl-tests table"},
        Damage{"CutInARow", "112.35       0    28[^]*", "", "",
               "x.log:13:72: error: the line ends after 7 columns"},
        Damage{"Count", "262144", "26x144", "", "x.log:12:21: error: the count of elements"},
        Damage{"Type", "524288     float", "524288     flaot", "", "did you mean 'float'?"},
        Damage{"Time", "   20.00   52", "   2o.00   52", "", "'2o.00' is not a number"},
        Damage{"NoTime", "   20.00   52", "    0.00   52", "", "a time must be positive"},
        Damage{"WrongData", "78.64       0    20", "78.64      17    20", "",
               "x.log:12:84: error: the data was wrong, so the time means nothing"},
        Damage{"LostLastRank", "#  Rank  3 [^\n]*\n", "", "",
               "all_reduce of 3 ranks would have a bus bandwidth of 69.91 here"},
        Damage{"OtherOperation", "all_reduce", "broadcast", "", "broadcast of 4 ranks would have"},
        Damage{"GpusOfNoProcess", "nGpus 1", "nGpus 3", "", "4 ranks are no processes with 3 GPU"},
        Damage{"NoThread", "nThread 1", "nThread 0", "", "must be positive"},
        Damage{"Aggregated", "agg iters: 1", "agg iters: 4", "", "cannot be predicted"},
        Damage{"NoOperation", "all_reduce_perf", "some test", "", "does not tell which operation"},
        Damage{"OtherProcesses", "none", "", "--processes 2", "x.log holds a run with 4"},
        Damage{"OtherGpus", "none", "", "-g 4", "-g 4: x.log holds a run with 1"},
        Damage{"OtherLaunch", "none", "", "-G 5", "-G 5: x.log holds a run with 0"},
        Damage{"Sizes", "none", "", "-b 8", "-b has no meaning with --compare"},
        Damage{"Scenario", "none", "", "--scenario y.yaml", "--scenario has no meaning"},
        Damage{"Where", "none", "", "--where gpu=H200", "--where takes rows of .csv files"},
        Damage{"Tolerance", "none", "", "--tolerance much", "'much' is not a percentage"},
        Damage{"OpName", "none", "", "--op-name all_redcue", "did you mean 'all_reduce'?"},
        Damage{"SmallMachine", "none", "", "--machine gtx-1050-ti", "do not fit"}),
    [](const auto& tested) { return std::string{tested.param.what}; });

TEST_P(DamagedLogs, AreRefusedWithTheirCause) {
  const Damage& damage = GetParam();
  const Scratch scratch;
  scratch.write("x.log", std::regex_replace(kLog, std::regex{damage.pattern}, damage.by));
  const Ran ran = scratch.run(std::string{"foretrace nccl-tests --compare x.log "} + damage.flags);
  EXPECT_EQ(ran.exit_code, 2) << ran.out;
  EXPECT_THAT(ran.err, HasSubstr(damage.says));
  EXPECT_THAT(ran.out, IsEmpty());
}

TEST(ComparedLog, ThatIsWholeIsComparedWithoutAWordButOfTheBands) {
  const Scratch scratch;
  scratch.write("x.log", kLog);
  const Ran ran = scratch.run("foretrace nccl-tests --compare x.log --processes 4 -g 1");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.err, MatchesRegex("note: bands: [^\n]*\n"));
  EXPECT_THAT(ran.out, HasSubstr("all_reduce, 4 ranks"));
}

TEST(ComparedLog, ThatEndsBetweenTwoRowsIsComparedWithANote) {
  const Scratch scratch;
  const std::string log = kLog;
  scratch.write("x.log", log.substr(0, log.find("     2097152")));
  const Ran ran = scratch.run("foretrace nccl-tests --compare x.log --op-name broadcast");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("x.log: its last run has no end; the 1 line(s) before are taken"));
  EXPECT_THAT(ran.err, HasSubstr("it says all_reduce, so --op-name broadcast is not used"));
}

struct Rows {
  const char* what;
  const char* text;
  const char* flags;
  const char* says;
  friend std::ostream& operator<<(std::ostream& out, const Rows& r) { return out << r.what; }
};
class DamagedTables : public testing::TestWithParam<Rows> {};
INSTANTIATE_TEST_SUITE_P(
    All, DamagedTables,
    testing::Values(
        Rows{"Empty", "", "", "no row in it that counts"},
        Rows{"HeadingOnly", "op,ranks,size_bytes,time_us\n", "", "no row in it that counts"},
        Rows{"NoTime", "op,ranks,size_bytes\nall_reduce,8,8\n", "", "column 'time_us' is needed"},
        Rows{"CutInARow", "op,ranks,size_bytes,time_us\nall_reduce,8,1024\n", "",
             "x.csv:2:14: error: 3 cells where the heading has 4"},
        Rows{"Infinite", "op,ranks,size_bytes,time_us\nall_reduce,8,1024,inf\n", "",
             "x.csv:2:19: error: 'inf' is not a positive number"},
        Rows{"NegativeRanks", "op,ranks,size_bytes,time_us\nall_reduce,-1,1024,9\n", "", "'-1'"},
        Rows{"TooManyRanks", "op,ranks,size_bytes,time_us\nall_reduce,16,1024,9\n", "",
             "do not fit"},
        Rows{"PartOfAnElement", "op,ranks,size_bytes,time_us\nall_reduce,8,1023,9\n", "",
             "1023 B are no whole elements of float in 1 part(s)"},
        Rows{"Operation", "op,ranks,size_bytes,time_us\nall_redcue,8,1024,9\n", "",
             "did you mean 'all_reduce'?"},
        Rows{"TheSameColumnTwice", "op,ranks,size_bytes,time_us,ranks\nall_reduce,8,1024,9,4\n", "",
             "x.csv:1:29: error: a second column 'ranks'"},
        Rows{"TheSameFileTwice", "op,ranks,size_bytes,time_us\nall_reduce,8,1024,9\n", "./x.csv",
             "x.csv and ./x.csv are the same results"},
        Rows{"Where", "op,ranks,size_bytes,time_us\nall_reduce,8,1024,9\n", "--where rank=8",
             "did you mean 'ranks'?"},
        Rows{"WhereNumber", "op,ranks,size_bytes,time_us\nall_reduce,8,1024,9\n",
             "--where size_bytes=10", "no row in it that counts"}),
    [](const auto& tested) { return std::string{tested.param.what}; });

TEST_P(DamagedTables, AreRefusedWithTheirCause) {
  const Scratch scratch;
  scratch.write("x.csv", GetParam().text);
  const Ran ran =
      scratch.run(std::string{"foretrace nccl-tests --compare x.csv "} + GetParam().flags);
  EXPECT_EQ(ran.exit_code, 2) << ran.out;
  EXPECT_THAT(ran.err, HasSubstr(GetParam().says));
  EXPECT_THAT(ran.out, IsEmpty());
}

TEST(ComparedTable, NamesTheSizesThatItLeavesOut) {
  const Scratch scratch;
  scratch.write("x.csv", "op,ranks,size_bytes,time_us\nall_reduce,8,1024,12\nall_reduce,8,2,10\n");
  const Ran ran = scratch.run("foretrace nccl-tests --compare x.csv");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("note: x.csv: 2 B is left out"));
}

}  // namespace
}  // namespace foretrace::test
