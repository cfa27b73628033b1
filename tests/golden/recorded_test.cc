// What a golden file notices, and what it lets pass. A golden that would not notice is worth
// nothing.
#include "tests/golden/recorded.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "scenarios/base/text/data_directory.h"
#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kHost = "process 0 main";
const std::string kStream = "process 0 device 0 compute(0)";

/// 40 iterations of a launch and a record that take 7899.125 ns together, in whole nanoseconds, and
/// a kernel for each launch; a second process does the same.
Recorded loop() {
  Recorded recorded;
  recorded.outcome = "completed";
  for (const std::string process : {"process 0", "process 1"}) {
    for (std::int64_t k = 0; k < 40; ++k) {
      const std::int64_t at = (500'250 + k * 7'899'125) / 1000;
      const std::int64_t launched = (6'750'400 + k * 7'899'125) / 1000;
      const std::int64_t next = (500'250 + (k + 1) * 7'899'125) / 1000;
      const auto instance = static_cast<std::uint64_t>(k);
      recorded.lanes[process + " main"].push_back({"003 gemm", instance, 1, at, launched});
      recorded.lanes[process + " main"].push_back(
          {"004 event_record", instance, 1, launched, next});
      recorded.lanes[process + " device 0 compute(0)"].push_back(
          {"003 gemm", instance, 1, launched + 2000, launched + 9000});
    }
    recorded.region_ns["region loop process " + process.substr(8)] = 315'965;
    recorded.bands["region loop process " + process.substr(8)] = {{0.95, 1.05}};
  }
  recorded.bands["op 003 gemm device fit"] = {{0.93196644, 1.073}};
  return recorded;
}

/// What is noticed when the timeline is `now` and the golden was written of `loop()`.
std::string noticed(const Recorded& now) { return difference(from_text(to_text(loop())), now); }

TEST(Recorded, TextStandsForEveryNanosecond) {
  const Recorded read = from_text(to_text(loop()));
  EXPECT_EQ(read.lanes, loop().lanes);
  EXPECT_EQ(read.region_ns, loop().region_ns);
  EXPECT_EQ(read.outcome, loop().outcome);
  EXPECT_EQ(noticed(loop()), "");
}

TEST(Recorded, TextSaysOnceWhatRepeats) {
  EXPECT_THAT(to_text(loop()), AllOf(HasSubstr("lane process 0 main\nlane process 1 main\n"),
                                     HasSubstr("  x40 +7899.1")));
  EXPECT_EQ(std::ranges::count(to_text(loop()), '\n'), 12);
}

TEST(Recorded, TextKeepsPartsLabelsAndTimesThatRepeatNothing) {
  Recorded recorded;
  recorded.outcome = "deadlock";
  recorded.lanes[kHost] = {{"000 gemm part a[b]: c", 0, 1, 0, 7},
                           {"001 spin", 3, 1, 7, 11},
                           {"001 spin", 3, 2, 12, 16},
                           {"001 spin", 3, 3, 17, 21},
                           {"001 spin", 7, 3, 29, 31},
                           {"002 host_compute", 0, 1, 31, 29'000'000'000}};
  const Recorded read = from_text(to_text(recorded));
  EXPECT_EQ(read.lanes, recorded.lanes) << to_text(recorded);
  EXPECT_THAT(to_text(recorded), HasSubstr("  001 spin[3] part 1..3: 7 11 x3 +5\n"));
}

TEST(Recorded, LineThatSaysNothingIsRefused) {
  EXPECT_THROW(from_text("outcome completed\nlane a\n  003 gemm: 5\n"), std::runtime_error);
  EXPECT_THROW(from_text("outcome completed\nlane a\n  003 gemm[0..3]: 5 6 x1 +5\n"),
               std::runtime_error);
  EXPECT_THROW(from_text("op 000 host_barrier process 0 host, 152 ns\n"), std::runtime_error);
}

TEST(GoldenNotices, TwoSpansSwappedAreNoticed) {
  Recorded now = loop();
  auto& spans = now.lanes[kStream];
  std::swap(spans[20].instance, spans[21].instance);
  EXPECT_THAT(noticed(now), AllOf(HasSubstr("lane process 0 device 0 compute(0), span 21"),
                                  HasSubstr("expected 003 gemm[20]: 166732 173732"),
                                  HasSubstr("got      003 gemm[20]: 174632 181632")));
}

TEST(GoldenNotices, StartMovedByFiveNanosecondsIsNoticedAnywhere) {
  for (const std::string& lane : {kHost, kStream}) {
    for (std::size_t i = 0; i < loop().lanes[lane].size(); ++i) {
      Recorded now = loop();
      now.lanes[lane][i].begin_ns += 5;
      EXPECT_THAT(noticed(now), HasSubstr("lane " + lane + ", span " + std::to_string(i + 1)));
    }
  }
}

TEST(GoldenNotices, LaneThatBeginsFiveNanosecondsLaterIsNoticed) {
  Recorded now = loop();
  for (RecordedSpan& span : now.lanes[kStream]) span.begin_ns += 5, span.end_ns += 5;
  EXPECT_THAT(noticed(now), HasSubstr("span 1:"));
}

TEST(GoldenNotices, MissingSpanIsNoticed) {
  Recorded now = loop();
  now.lanes[kHost].erase(now.lanes[kHost].begin() + 33);
  EXPECT_THAT(noticed(now), AllOf(HasSubstr("lane process 0 main, span 34"),
                                  HasSubstr("expected 004 event_record[16]"),
                                  HasSubstr("got      no such span"), HasSubstr("1 such")));
}

TEST(GoldenNotices, AddedSpanIsNoticed) {
  Recorded now = loop();
  now.lanes[kStream].push_back({"005 spin", 0, 1, 400'000, 400'001});
  EXPECT_THAT(noticed(now), HasSubstr("got      005 spin[0]: 400000 400001"));
}

TEST(GoldenNotices, SpanOnAnotherLaneIsNoticed) {
  Recorded now = loop();
  now.lanes["process 0 device 0 copy(1)"].push_back(now.lanes[kStream].back());
  now.lanes[kStream].pop_back();
  EXPECT_THAT(noticed(now), HasSubstr("expected 003 gemm[39]"));
}

TEST(GoldenNotices, RegionBandAndOutcomeAreNoticed) {
  Recorded now = loop();
  now.region_ns["region loop process 1"] += 3;
  EXPECT_THAT(noticed(now), HasSubstr("region loop process 1:\n  expected 315965 ns"));
  now = loop();
  now.bands["op 003 gemm device fit"] = {{0.93196644, 1.074}};
  EXPECT_THAT(noticed(now), HasSubstr("band op 003 gemm device fit"));
  now = loop();
  now.bands["op 003 gemm device assumed"] = now.bands["op 003 gemm device fit"];
  now.bands.erase("op 003 gemm device fit");
  EXPECT_THAT(noticed(now), HasSubstr("2 such"));
  now = loop();
  now.outcome = "deadlock";
  EXPECT_THAT(noticed(now), HasSubstr("outcome"));
}

TEST(GoldenNotices, AnotherRoundingPasses) {
  Recorded now = loop();
  for (auto& [name, spans] : now.lanes) {
    for (std::size_t i = 0; i < spans.size(); ++i) spans[i].begin_ns += i % 2 == 0 ? 1 : -1;
  }
  EXPECT_EQ(noticed(now), "");
}

/// Each of the repository's goldens, not only the one of this file.
TEST(GoldenNotices, EveryGoldenNoticesItsLastSpanMissing) {
  namespace fs = std::filesystem;
  std::size_t files = 0;
  for (const auto& entry :
       fs::recursive_directory_iterator{data_directory() / "tests" / "golden"}) {
    if (entry.path().extension() != ".txt" || entry.path().filename() == "CMakeLists.txt") continue;
    const Recorded golden = from_text(read_file(entry.path()));
    EXPECT_EQ(difference(golden, golden), "");
    ++files;
    for (const auto& lane : golden.lanes) {
      Recorded expected;
      expected.lanes.insert(lane);
      Recorded now = expected;
      now.lanes[lane.first].pop_back();
      EXPECT_NE(difference(expected, now), "") << entry.path() << lane.first;
    }
  }
  EXPECT_GT(files, 200u);
}

}  // namespace
}  // namespace foretrace::test
