#include "reports/page/curves.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foretrace {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string in_units(double value) { return fmt::format("{:g} units", value); }

Chart chart_of(std::vector<CurvePoint> points) {
  Chart chart;
  chart.title = "bus bandwidth";
  chart.x = {"size", ChartAxis::Scale::Log2, nullptr};
  chart.y = {"GB/s", ChartAxis::Scale::Linear, in_units};
  chart.curves.push_back({"measured", Curve::Look::Measured, std::move(points)});
  return chart;
}

TEST(Curves, PlaceLogarithmsEvenlyAndLinearValuesFromZero) {
  // x: 1, 4, 16 at 66, 285 and 504 of a plot from 66 to 504; y: 0 .. 100 on 256 .. 48
  const std::string svg = draw_curves(chart_of({{1, 0}, {4, 50}, {16, 100}}), "c");
  EXPECT_THAT(svg, HasSubstr("d=\"M66.0 256.0L285.0 152.0L504.0 48.0\""));
  EXPECT_THAT(svg, HasSubstr("measured: 50 units at 4"));
}

TEST(Curves, DrawABandWhereAPointHasOne) {
  EXPECT_THAT(draw_curves(chart_of({{1, 50, 40, 60}, {4, 50, 25, 100}}), "c"),
              HasSubstr("d=\"M66.0 131.2L504.0 48.0L504.0 204.0L66.0 172.8Z\""));
  EXPECT_THAT(draw_curves(chart_of({{1, 50}, {4, 50}}), "c"), Not(HasSubstr("class=\"band")));
}

TEST(Curves, LeaveOutWhatALogarithmDoesNotHave) {
  const std::string svg = draw_curves(chart_of({{0, 7}, {1, 50}, {4, 100}}), "c");
  EXPECT_THAT(svg, Not(HasSubstr("7 units")));
  EXPECT_EQ(draw_curves(chart_of({{0, 7}}), "c"), "");
}

TEST(Curves, TellWhatTheyShowToThoseWhoDoNotSeeThem) {
  Chart chart = chart_of({{1, 50}, {4, 100}});
  chart.title = "a < b";
  EXPECT_THAT(
      draw_curves(chart, "c"),
      HasSubstr("<title id=\"c-title\">a &lt; b: GB/s over size; measured: 100 units at 4"));
}

}  // namespace
}  // namespace foretrace
