// A sweep's axes as they are written, and the points of their grid.
#include "sim/applications/sweep/points.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/base/text/errors.h"

namespace foretrace::sweep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> values(const std::string& text) {
  return parse_axis(Kind::Set, text, "--set").values;
}

TEST(SweepAxis, ListsValuesAsTheyAreWritten) {
  EXPECT_THAT(values("size=1MiB,64KiB"), ElementsAre("1MiB", "64KiB"));
  EXPECT_THAT(values("mode=fsdp"), ElementsAre("fsdp"));
}

TEST(SweepAxis, GoesByFactorsOrBySteps) {
  EXPECT_THAT(values("size=1KiB..4KiB:x2"), ElementsAre("1024B", "2048B", "4096B"));
  EXPECT_THAT(values("n=1..4"), ElementsAre("1", "2", "3", "4"));
  EXPECT_THAT(values("n=1..6:+2"), ElementsAre("1", "3", "5"));
  EXPECT_THAT(values("t=1us..3us:+1us"), ElementsAre("1000000ps", "2000000ps", "3000000ps"));
  EXPECT_THAT(values("n=1..2,8"), ElementsAre("1", "2", "8"));
}

TEST(SweepAxis, KeepsWhatIfsAsTheyAre) {
  const Axis axis = parse_axis(Kind::With, "nic=50 GB/s,0.5x", "--with");
  EXPECT_THAT(axis.values, ElementsAre("50 GB/s", "0.5x"));
}

struct WrongAxis {
  const char* name;
  const char* text;
  const char* because;
  friend std::ostream& operator<<(std::ostream& out, const WrongAxis& w) { return out << w.text; }
};
class RefusedAxis : public testing::TestWithParam<WrongAxis> {};
INSTANTIATE_TEST_SUITE_P(
    All, RefusedAxis,
    testing::Values(WrongAxis{"NoValues", "size", "it is NAME=VALUES"},
                    WrongAxis{"NoName", "=1", "it is NAME=VALUES"},
                    WrongAxis{"Empty", "n=1,,2", "a value is missing"},
                    WrongAxis{"Units", "n=1..2MiB", "different units"},
                    WrongAxis{"Backwards", "n=4..1", "ends before it begins"},
                    WrongAxis{"NoEnd", "n=1..", "has no begin or no end"},
                    WrongAxis{"NoStep", "n=1..4:2", "'2' is no step"},
                    WrongAxis{"Stays", "n=1..4:x1", "does not lead on"},
                    WrongAxis{"ByNothing", "n=1..4:+0", "does not lead on"},
                    WrongAxis{"FromZero", "n=0..4:x2", "begins above 0"},
                    WrongAxis{"TooMany", "n=1..2000000", "more than 50000 values"},
                    WrongAxis{"TooManyTogether", "n=1..40000,1..20000", "more than 50000 values"}),
    [](const auto& wrong) { return wrong.param.name; });

TEST_P(RefusedAxis, NamesTheFlagAndTheCause) {
  try {
    values(GetParam().text);
    FAIL() << "taken";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr(std::string{"--set "} + GetParam().text));
    EXPECT_THAT(error.what(), HasSubstr(GetParam().because));
  }
}

TEST(SweepPoints, AreEveryCombinationAndTheLastAxisVariesFastest) {
  const std::vector<Axis> axes{machine_axis("a,b"), parse_axis(Kind::Set, "n=1,2,3", "--set"),
                               parse_axis(Kind::With, "nic=1x,2x", "--with")};
  const std::vector<Point> points = points_of(axes);
  ASSERT_EQ(points.size(), 12u);
  EXPECT_EQ(points[9].number, 9u);
  EXPECT_EQ(points[9].machine(axes), "b");
  EXPECT_EQ(points[9].parameters(axes).at("n"), "2");
  EXPECT_THAT(points[9].what_ifs(axes), ElementsAre("nic=2x"));
}

TEST(SweepPoints, OfAnAxisTwiceAreRefused) {
  EXPECT_THROW(points_of({machine_axis("a"), parse_axis(Kind::Set, "n=1", "--set"),
                          parse_axis(Kind::Set, "n=2", "--set")}),
               UsageError);
}

}  // namespace
}  // namespace foretrace::sweep
