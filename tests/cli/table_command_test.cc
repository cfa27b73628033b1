// foretrace table: rules, rows, and the documents that show them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/base/text/data_directory.h"
#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kRule = R"(# The host is free while a kernel runs.
schema_version: 1
name: free_host
rule: documented
source: "A document, its section"
tags: [conformance, A1]
streams: {s: {flags: non_blocking}}
threads:
  main:
    - region:
        name: kernel
        ops:
          - spin: {id: kernel, stream: s, duration: 500us}
          - stream_synchronize: {stream: s}
expect:
  - host_free: {after: kernel, within: 100us}
)";

class TableCommand : public testing::Test {
 protected:
  TableCommand() {
    std::filesystem::create_directory(scratch_.path() / "rules");
    scratch_.write("rules/free_host.yaml", kRule);
  }
  /// What the simulator says passes for a measurement here.
  void measure() {
    scratch_.run("foretrace simulate rules/free_host.yaml -o measured/free_host");
    const std::filesystem::path run = scratch_.path() / "measured" / "free_host";
    std::string text = read_file(run / "predicted.timeline.json");
    const std::string predicted = R"("origin": "predicted")";
    text.replace(text.find(predicted), predicted.size(), R"("origin": "measured")");
    scratch_.write("measured/free_host/measured.timeline.json", text);
  }
  Scratch scratch_;
};

TEST_F(TableCommand, JudgesARuleOnThePrediction) {
  const Ran ran = scratch_.run("foretrace table rules --measured measured");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out,
              HasSubstr("| The host is free while a kernel runs. | free_host | documented: "
                        "A document, its section | holds     | -        |"));
  EXPECT_THAT(ran.out, HasSubstr("1 rule: 1 documented, 0 observed. Predicted: 1 holds. Measured: "
                                 "1 not there."));
}

TEST_F(TableCommand, FailsWhenARuleIsBrokenAndSaysWhichExpectation) {
  std::string text = kRule;
  text.replace(text.find("within: 100us"), 13, "within: 1ns");
  scratch_.write("rules/free_host.yaml", text);
  const Ran ran = scratch_.run("foretrace table rules --measured measured");
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.out, HasSubstr("| BROKEN"));
  EXPECT_THAT(ran.err, HasSubstr("rules/free_host.yaml:16: broken in the predicted timeline: host "
                                 "free after kernel at most 1 ns"));
}

TEST_F(TableCommand, ComparesTheRegionsOfARowWithTheMeasurement) {
  measure();
  const Ran ran = scratch_.run("foretrace table rules --by tag --measured measured --format csv");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("A1,free_host,holds,holds,kernel,"));
  EXPECT_THAT(ran.out, HasSubstr("+0.0 %"));
}

TEST_F(TableCommand, CallsAMeasurementOfAnotherProgramStale) {
  measure();
  std::string text = kRule;
  text.replace(text.find("duration: 500us"), 15, "duration: 600us");
  scratch_.write("rules/free_host.yaml", text);
  const Ran ran = scratch_.run("foretrace table rules --measured measured");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("| holds     | stale    |"));
}

TEST_F(TableCommand, WritesItselfIntoADocumentAndKnowsWhenThatIsStale) {
  scratch_.write("doc.md", "Before.\n<!-- begin: rules -->\n<!-- end: rules -->\nAfter.\n");
  const std::string table = "foretrace table rules --measured measured";
  const Ran stale = scratch_.run(table + " --check doc.md");
  EXPECT_EQ(stale.exit_code, 1);
  EXPECT_THAT(stale.err, HasSubstr("hint: renew it with 'foretrace table rules --by rule --write "
                                   "doc.md'"));
  EXPECT_EQ(scratch_.run(table + " --write doc.md").exit_code, 0);
  const std::string text = read_file(scratch_.path() / "doc.md");
  EXPECT_THAT(text, HasSubstr("[free_host](rules/free_host.yaml)"));
  EXPECT_THAT(text, HasSubstr("After.\n"));
  EXPECT_EQ(scratch_.run(table + " --check doc.md").exit_code, 0);
  EXPECT_EQ(scratch_.run(table + " --by tag --check doc.md").exit_code, 2);
}

TEST_F(TableCommand, NamesADirectoryThatIsNotThere) {
  const Ran ran = scratch_.run("foretrace table nowhere");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("nowhere: no such directory"));
}

// The tables in the documents are of now. To renew them: foretrace table ... --write, as the hint
// says.
TEST(Documents, ShowTheTablesOfNow) {
  const Scratch scratch;
  for (const char* table : {"scenarios/conformance --by rule --check scenarios/rules.md",
                            "scenarios --by tag --check scenarios/errors.md"}) {
    const Ran ran = scratch.run(std::string{"foretrace table "} + table);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
  }
}

TEST(Documents, ShowTheFigureOfTheLastBlindRound) {
  const Scratch scratch;
  const std::string root = data_directory().string();
  const Ran ran = scratch.run("foretrace accuracy --blind " + root + "/reports/blind --check " +
                              root + "/README.md");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
}

TEST(AccuracyCommand, ShowsBlindRoundsFirstAndKnowsAStaleFigure) {
  Scratch scratch;
  const Ran page = scratch.run("foretrace accuracy --blind-only");
  EXPECT_EQ(page.exit_code, 0) << page.err;
  EXPECT_THAT(page.out, HasSubstr("## Blind rounds"));
  scratch.write("doc.md", "<!-- begin: blind -->\nmedian error 0.1 %\n<!-- end: blind -->\n");
  const Ran stale = scratch.run("foretrace accuracy --check doc.md");
  EXPECT_EQ(stale.exit_code, 1);
  EXPECT_THAT(stale.err, HasSubstr("hint: renew it with 'foretrace accuracy --write doc.md'"));
  EXPECT_EQ(scratch.run("foretrace accuracy --write doc.md").exit_code, 0);
  EXPECT_EQ(scratch.run("foretrace accuracy --check doc.md").exit_code, 0);
  EXPECT_EQ(scratch.run("foretrace accuracy --blind nowhere").exit_code, 2);
}

}  // namespace
}  // namespace foretrace::test
