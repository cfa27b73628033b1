#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "reports/accuracy/blind_round.h"
#include "reports/accuracy/error_figures.h"
#include "reports/accuracy/page.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kColumns =
    "program,class,gpus,region,instance,process,predicted_us,low_us,high_us,measured_us,error,"
    "in_band,starts,spread,counts\n";

/// Rounds in a directory of their own.
class BlindRounds : public testing::Test {
 protected:
  BlindRounds() { fs::remove_all(root_); }
  ~BlindRounds() override { fs::remove_all(root_); }
  void write(int number, const std::string& machine, const std::string& lines,
             const std::string& name = "round-") {
    const fs::path round = root_ / (name + std::to_string(number));
    fs::create_directories(round);
    std::ofstream{round / ("evaluation-" + machine + ".csv")} << kColumns << lines;
  }
  std::string error() const {
    try {
      load_blind_rounds(root_);
    } catch (const UsageError& refused) {
      return refused.what();
    }
    return "";
  }
  fs::path root_ =
      fs::path{testing::TempDir()} / testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST(ErrorFigures, AreOfSizesButTheBiasIsSigned) {
  const std::vector<ErrorSample> samples{{-0.10, true, 0.02}, {0.20, false, 0.04}, {-0.30, {}, {}}};
  const ErrorFigures figures = figures_of(samples);
  EXPECT_EQ(figures.regions, 3U);
  EXPECT_DOUBLE_EQ(figures.median, 0.20);
  EXPECT_DOUBLE_EQ(figures.mean, 0.20);
  EXPECT_DOUBLE_EQ(figures.worst, 0.30);
  EXPECT_DOUBLE_EQ(figures.p90, 0.28);
  EXPECT_DOUBLE_EQ(figures.bias, -0.10);
  EXPECT_DOUBLE_EQ(*figures.in_band, 0.5);
  EXPECT_DOUBLE_EQ(*figures.spread, 0.03);
}

TEST_F(BlindRounds, AreReadInOrderAndCountARegionOfTwoProcessesOnce) {
  write(10, "m", "a,training,2,step,0,0,110,90,120,100,0.1,1,3,0.05,1\n");
  write(2, "m",
        "a,training,2,step,0,0,50,40,60,100,-0.5,0,3,0.05,1\n"
        "a,training,2,step,0,1,50,40,60,90,-0.4,0,3,0.05,0\n");
  const auto rounds = load_blind_rounds(root_);
  ASSERT_EQ(rounds.size(), 2U);
  EXPECT_EQ(rounds[0].number, 2);
  EXPECT_EQ(rounds[1].number, 10);
  ASSERT_EQ(rounds[0].regions.size(), 1U);
  EXPECT_DOUBLE_EQ(rounds[0].regions[0].sample.error, -0.5);
  EXPECT_FALSE(*rounds[0].regions[0].sample.in_band);
  EXPECT_TRUE(*rounds[1].regions[0].sample.in_band);
}

TEST_F(BlindRounds, NameTheLineThatIsNoNumber) {
  write(1, "m", "a,training,2,step,0,0,fifty,40,60,100,-0.5,0,3,0.05,1\n");
  EXPECT_THAT(error(), HasSubstr("evaluation-m.csv:2: predicted_us is 'fifty', not a number"));
}

TEST_F(BlindRounds, RefuseATimeOfNothing) {
  write(1, "m", "a,training,2,step,0,0,50,40,60,0,-0.5,0,3,0.05,1\n");
  EXPECT_THAT(error(), HasSubstr("evaluation-m.csv:2: measured_us is not above 0"));
}

TEST_F(BlindRounds, RefuseALineOfTooFewCells) {
  write(1, "m", "a,training,2\n");
  EXPECT_THAT(error(), HasSubstr("evaluation-m.csv:2: 3 cells; the table has 15 columns"));
}

TEST_F(BlindRounds, SayWhatIsMissingWhenThereAreNone) {
  fs::create_directories(root_);
  EXPECT_THAT(error(), HasSubstr("no round-N/evaluation-MACHINE.csv in it"));
}

TEST_F(BlindRounds, AreATableByNumberOfGpusAndByWhosePrograms) {
  write(1, "m-8", "a,training,2,step,0,0,50,40,60,100,-0.5,0,3,0.05,1\n");
  write(2, "m-8",
        "b,training,1,step,0,0,110,90,120,100,0.1,1,3,0.05,1\n"
        "c,training,2,step,0,0,130,110,150,100,0.3,0,3,0.05,1\n");
  write(2, "other", "b,training,1,step,0,0,120,90,120,100,0.2,1,3,0.05,1\n");
  write(1, "m-8", "d,collectives,8,step,0,0,60,40,60,100,-0.4,0,3,0.05,1\n", "eight-gpus-");
  write(3, "m-8", "e,written,2,step,0,0,97,90,120,100,-0.03,1,3,0.05,1\n", "written-");
  std::ofstream{root_ / "written-3/NOTES.md"};
  EXPECT_EQ(
      by_whose_programs(load_blind_rounds(root_), root_),
      "| Programs | GPUs | Measured on | Regions | Median error | 90th percentile | In the band |\n"
      "| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
      "| random, [round 2](round-2/evaluation.md#m-8) | 1 | M, OTHER | 2 | 15.0 % | 19 % | 100 % "
      "|\n"
      "| random, [round 2](round-2/evaluation.md#m-8) | 2 | M | 1 | 30.0 % | 30 % | 0 % |\n"
      "| random, [eight-gpus-1](eight-gpus-1/evaluation.md#m-8) | 8 | M | 1 | 40.0 % | 40 % | 0 % "
      "|\n"
      "| by other authors, [written-3](written-3/NOTES.md) | 2 | M | 1 | 3.0 % | 3 % | 100 % |\n");
}

TEST_F(BlindRounds, ArePredictedByAModelOfManyGpusAndSayOnHowManyTheyRan) {
  write(2, "m-8",
        "b,training,1,step,0,0,110,90,120,100,0.1,1,3,0.05,1\n"
        "c,training,2,step,0,0,110,90,120,100,0.1,1,3,0.05,1\n");
  const auto rounds = load_blind_rounds(root_);
  EXPECT_THAT(accuracy_page(rounds, {}, "m-8", root_).headline,
              HasSubstr("(2 regions of 2 random programs on 1 and 2 GPUs, predicted by m-8, blind "
                        "round 2)."));
  EXPECT_THROW(accuracy_page(rounds, {}, "nobody", root_), UsageError);
}

TEST_F(BlindRounds, OfMoreGpusComeLastEachWithTablesOfItsOwnAndGiveNoHeadline) {
  write(2, "m", "a,collectives,8,step,0,0,60,40,60,100,-0.4,0,3,0.05,1\n", "eight-gpus-");
  write(7, "m", "a,collectives,4,step,0,0,70,40,60,100,-0.3,0,3,0.05,1\n", "four-gpus-");
  write(1, "m", "b,training,2,step,0,0,110,90,120,100,0.1,1,3,0.05,1\n");
  const auto rounds = load_blind_rounds(root_);
  ASSERT_EQ(rounds.size(), 3U);
  EXPECT_EQ(rounds[0].name(), "1");
  EXPECT_EQ(rounds[1].name(), "four-gpus-7");
  EXPECT_EQ(rounds[2].name(), "eight-gpus-2");
  const std::string text = accuracy_markdown(accuracy_page(rounds, {}, "m", root_));
  EXPECT_THAT(text, HasSubstr("median error 10.0 %"));
  EXPECT_THAT(text, HasSubstr("| [four-gpus-7, m](four-gpus-7/evaluation.md#m) | 1 | 30.0 % |"));
  EXPECT_THAT(text, HasSubstr("| [2 GPUs, m, 1](round-1/evaluation.md#m) | 1 | 10.0 % |"));
  EXPECT_LT(text.find("| [2 GPUs, m, 1]"), text.find("| [4 GPUs, m, four-gpus-7]"));
  EXPECT_LT(text.find("| [4 GPUs, m, four-gpus-7]"), text.find("| [8 GPUs, m, eight-gpus-2]"));
  EXPECT_THAT(text, HasSubstr("## Round eight-gpus-2 on m, by kind of program"));
  EXPECT_THAT(text, HasSubstr("| 8 GPUs | 1 | 40.0 % |"));
}

TEST_F(BlindRounds, OfProgramsByOthersHaveTheirFiguresAndNoPartInRandomOnes) {
  write(1, "m", "b,training,2,step,0,0,110,90,120,100,0.1,1,3,0.05,1\n");
  write(1, "m", "a,written,2,step,0,0,60,40,60,100,-0.4,0,3,0.05,1\n", "written-");
  const auto rounds = load_blind_rounds(root_);
  const std::string text = accuracy_markdown(accuracy_page(rounds, {}, "m", root_));
  EXPECT_THAT(text, HasSubstr("median error 10.0 %"));
  EXPECT_THAT(text, HasSubstr("| [written-1, m](written-1/evaluation.md#m) | 1 | 40.0 % |"));
  EXPECT_THAT(text, HasSubstr("| [2 GPUs, m, 1](round-1/evaluation.md#m) | 1 | 10.0 % |"));
  EXPECT_THAT(text, HasSubstr("[a](written-1/programs/written/a.yaml)"));
  fs::create_directories(root_ / "written-1/programs/one_gpu");
  std::ofstream{root_ / "written-1/programs/one_gpu/a.yaml"};
  EXPECT_THAT(accuracy_markdown(accuracy_page(rounds, {}, "m", root_)),
              HasSubstr("[a](written-1/programs/one_gpu/a.yaml)"))
      << "wherever it lies";
  fs::remove_all(root_ / "written-1/programs");
  std::ofstream{root_ / "written-1.tar.gz"};
  EXPECT_THAT(accuracy_markdown(accuracy_page(rounds, {}, "m", root_)),
              HasSubstr("[a](written-1.tar.gz)"))
      << "once it is recorded";
}

TEST_F(BlindRounds, SayWhatIsLeftWhereTheHostsSpeedIsKnown) {
  write(3, "m", "a,training,1,step,0,0,60,40,60,100,-0.4,0,3,0.05,1\n");
  write(4, "other", "a,training,1,step,0,0,60,40,60,100,-0.4,0,3,0.05,1\n");
  EXPECT_THAT(accuracy_markdown(accuracy_page(load_blind_rounds(root_), {}, "m", root_)),
              Not(HasSubstr("speed known")));
  std::ofstream{root_ / "round-4/known-host-other.csv"}
      << kColumns << "a,training,1,step,0,0,90,80,99,100,-0.1,0,3,0.05,1\n";
  const auto rounds = load_blind_rounds(root_);
  ASSERT_EQ(rounds.size(), 2U) << "it is no evaluation of its own";
  EXPECT_THAT(accuracy_markdown(accuracy_page(rounds, {}, "m", root_)),
              HasSubstr("| [4, other](round-4/evaluation.md#other-host-known) | 1 | 10.0 % |"));
}

TEST_F(BlindRounds, StandFirstOnThePageThenPredictionsThenFits) {
  write(1, "m", "a|b,training,2,step,0,0,50,40,60,100,-0.5,0,3,0.05,1\n");
  const std::vector<ShippedRegion> shipped{{"x.yaml", "one", true, 1, 2, {-0.5, {}, {}}},
                                           {"y.yaml", "two", false, 3, 2, {0.5, true, {}}}};
  const AccuracyPage page = accuracy_page(load_blind_rounds(root_), shipped, "m", root_);
  const std::string text = accuracy_markdown(page);
  EXPECT_LT(text.find("## Blind rounds"), text.find("## Shipped scenarios"));
  EXPECT_LT(text.find("| prediction | 1 |"), text.find("| fit | 1 |"));
  EXPECT_THAT(text, HasSubstr("[a\\|b](round-1/programs/training/a|b.yaml)"));
  EXPECT_THAT(text, testing::Not(HasSubstr("[x](")));  // a fit is no prediction to be ashamed of
  const std::string html = accuracy_html(page);
  EXPECT_THAT(html, HasSubstr("<a href=\"round-1/programs/training/a|b.yaml\">a|b</a>"));
  EXPECT_THAT(html, HasSubstr("prefers-color-scheme: dark"));
}

}  // namespace
}  // namespace foretrace::test
