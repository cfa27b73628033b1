// The band of a ratio of two points of a sweep.
#include "sim/applications/sweep/paired.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "scenarios/base/text/errors.h"

namespace foretrace::sweep {
namespace {

using Json = nlohmann::ordered_json;

/// 100 us, of which so much is a link's (known to 30 %) and the rest a kernel's (known to 10 %).
Json region(double link, double us = 100) {
  const double off = std::hypot(link * 0.3, (1 - link) * 0.1);
  return {{"name", "step"},
          {"us", us},
          {"low_us", us / (1 + off)},
          {"high_us", us * (1 + off)},
          {"decided_by",
           {{{"parameter", "link"}, {"share", -link}, {"spread", 0.3}},
            {{"parameter", "kernel"}, {"share", 1 - link}, {"spread", 0.1}}}}};
}

TEST(PairedBand, OfTwoAlikeIsNothingAndOfTwoMachinesBoth) {
  EXPECT_NEAR(paired_off(region(0.5), region(0.5, 200), Kinship::Program), 0, 1e-9);
  const double both = std::hypot(std::hypot(0.15, 0.05), std::hypot(0.15, 0.05));
  EXPECT_NEAR(paired_off(region(0.5), region(0.5, 200), Kinship::None), both, 1e-9);
}

TEST(PairedBand, IsTheDifferenceOfTheShares) {
  // The link has 0.2 and 0.5 of the time, the kernel the rest: 0.3 of each is what they differ in.
  EXPECT_NEAR(paired_off(region(0.2), region(0.5), Kinship::Program),
              std::hypot(0.3 * 0.3, 0.3 * 0.1), 1e-9);
}

TEST(PairedBand, HoldsHalfOfWhatNoParameterExplainsWhereProgramsDiffer) {
  Json one = region(0.5);
  one["decided_by"] = Json::array();
  const double off = std::hypot(0.15, 0.05);
  EXPECT_NEAR(paired_off(one, one, Kinship::Program), 0, 1e-9);
  EXPECT_NEAR(paired_off(one, one, Kinship::Machine), off, 1e-9);  // sqrt(2 off^2 - off^2)
}

TEST(Against, IsTheFirstPointOrTheOneWithTheValue) {
  const std::vector<Axis> axes{{Kind::Machine, "", {"a", "b"}},
                               {Kind::Set, "ranks", {"2", "4", "8"}},
                               {Kind::With, "nvlink", {"1x", "0.5x"}}};
  EXPECT_EQ(Against(axes, {}).of(11), 0u);
  EXPECT_EQ(Against(axes, {"nvlink=1x"}).of(11), 10u);
  EXPECT_EQ(Against(axes, {"machine=a", "ranks=4"}).of(11), 3u);
  EXPECT_THROW(Against(axes, {"nvlink=2x"}), UsageError);
  EXPECT_THROW(Against(axes, {"nic=2x"}), UsageError);
}

TEST(Against, ComparesRowsAgainAndWithoutThoseThatFailed) {
  const std::vector<Axis> axes{{Kind::Machine, "", {"a"}},
                               {Kind::With, "nvlink", {"1x", "0.5x", "0x"}}};
  const auto row = [](const Json& regions) { return Json{{"machine", "a"}, {"regions", regions}}; };
  std::vector<Json> rows{row(Json::array({region(0.5)})), row(Json::array({region(0.8, 170)})),
                         Json::object({{"error", "no link"}})};
  compare(rows, Against{axes, {}});
  EXPECT_EQ(rows[1]["against"], 0);
  EXPECT_DOUBLE_EQ(rows[1]["regions"][0]["ratio"].get<double>(), 1.7);
  EXPECT_LT(rows[1]["regions"][0]["ratio_high"].get<double>(), 1.7 * 1.2);
  EXPECT_EQ(rows[0]["regions"][0]["ratio_high"], 1.0);
  EXPECT_FALSE(rows[2].contains("against"));
  const auto once = rows;
  compare(rows, Against{axes, {}});
  EXPECT_EQ(rows, once);
}

}  // namespace
}  // namespace foretrace::sweep
