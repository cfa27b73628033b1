#include "sim/applications/sweep/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "reports/page/curves.h"
#include "reports/page/sections.h"
#include "reports/table/text_table.h"
#include "scenarios/base/values/quantity.h"

namespace foretrace::sweep {
namespace {

using Row = nlohmann::ordered_json;

constexpr std::size_t kMostCurves = 4;    // of a picture: more cannot be told apart
constexpr std::size_t kMostRegions = 12;  // pictures
constexpr std::size_t kMostRows = 2'000;  // of the table

/// "64", "8388608B", "0.5x" as a number; none for words.
std::optional<double> number_in(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  const std::string rest{end};
  if (end != text.c_str() && (rest.empty() || rest == "x")) return value;
  const auto parsed = parse_constant(text);
  if (!parsed) return {};
  return parsed->constant.to_double();
}

bool is_of_numbers(const Axis& axis) {
  return axis.kind != Kind::Machine && axis.values.size() > 1 &&
         std::ranges::all_of(axis.values, [](const std::string& value) {
           const auto number = number_in(value);
           return number && *number > 0;
         });
}

const std::string& axis_name(const Axis& axis) {
  static const std::string kMachine = "machine";
  return axis.kind == Kind::Machine ? kMachine : axis.name;
}

std::string value_in(const Row& row, const Axis& axis) {
  if (axis.kind == Kind::Machine) return row.at("machine");
  return row.at(axis.kind == Kind::Set ? "set" : "with").at(axis.name);
}

std::vector<std::string> regions_in(const std::vector<Row>& rows) {
  std::vector<std::string> names;
  for (const Row& row : rows) {
    for (const Row& region : row.value("regions", Row::array())) {
      const std::string name = region.at("name");
      if (std::ranges::count(names, name) == 0) names.push_back(name);
    }
  }
  return names;
}

/// The region's time over `axis`; a curve for each combination of the other axes.
Chart chart_of(const Sweep& sweep, const std::vector<Row>& rows, const Axis& over,
               const std::string& name) {
  std::vector<std::pair<std::string, Curve>> curves;
  for (const Row& row : rows) {
    for (const Row& region : row.value("regions", Row::array())) {
      if (region.at("name") != name) continue;
      std::string words;
      for (const Axis& axis : sweep.axes) {
        if (&axis == &over || axis.values.size() < 2) continue;
        words +=
            fmt::format("{}{} {}", words.empty() ? "" : ", ", axis_name(axis), value_in(row, axis));
      }
      auto curve = std::ranges::find(curves, words, [](const auto& one) { return one.first; });
      if (curve == curves.end()) {
        if (curves.size() == kMostCurves) continue;
        const auto look = static_cast<Curve::Look>(curves.size());
        curves.push_back(
            {words, {.name = words.empty() ? name : words, .look = look, .points = {}}});
        curve = std::prev(curves.end());
      }
      curve->second.points.push_back({.x = *number_in(value_in(row, over)),
                                      .y = region.at("us"),
                                      .low = region.at("low_us").get<double>(),
                                      .high = region.at("high_us").get<double>()});
    }
  }
  Chart chart{.title = name,
              .x = {.title = over.name, .scale = ChartAxis::Scale::Log2},
              .y = {.title = "us"},
              .curves = {}};
  for (auto& [words, curve] : curves) {
    std::ranges::stable_sort(curve.points, {}, &CurvePoint::x);
    chart.curves.push_back(std::move(curve));
  }
  return chart;
}

std::string range_text(double low, double high) {
  return fmt::format("{:.3g} .. {:.3g}", low, high);
}

/// A line for each region of each row.
Section table_of(const Sweep& sweep, const std::vector<Row>& rows) {
  Section table{.heading = "All points", .words = {}, .columns = {{.text = "point"}}, .rows = {}};
  for (const Axis& axis : sweep.axes) {
    table.columns.push_back({.text = axis_name(axis), .is_number = false});
  }
  table.columns.push_back({.text = "region", .is_number = false});
  for (const char* name : {"time", "band", "against", "ratio", "its band"}) {
    table.columns.push_back({.text = name});
  }
  for (const Row& row : rows) {
    std::vector<Section::Cell> head{{.text = row.at("point").dump()}};
    for (const Axis& axis : sweep.axes) {
      head.push_back({.text = value_in(row, axis), .is_number = false});
    }
    if (row.contains("error")) {
      head.push_back({.text = row.at("error").get<std::string>(), .is_number = false});
      table.rows.push_back(std::move(head));
      continue;
    }
    for (const Row& region : row.at("regions")) {
      auto line = head;
      const auto us = [&](const char* key) {
        return format_time(region.at(key).get<double>() * 1e3);
      };
      line.push_back({.text = region.at("name").get<std::string>(), .is_number = false});
      line.push_back({.text = us("us")});
      line.push_back({.text = us("low_us") + " .. " + us("high_us")});
      if (region.contains("ratio")) {
        line.push_back({.text = row.at("against").dump()});
        line.push_back({.text = fmt::format("{:.3g}", region.at("ratio").get<double>())});
        line.push_back({.text = range_text(region.at("ratio_low"), region.at("ratio_high"))});
      }
      table.rows.push_back(std::move(line));
    }
  }
  if (table.rows.size() > kMostRows) {
    table.words = fmt::format("The first {} of {} lines; the rest is in the CSV.", kMostRows,
                              table.rows.size());
    table.rows.resize(kMostRows);
  }
  return table;
}

}  // namespace

std::string page_of(const Sweep& sweep, const std::vector<Row>& rows) {
  Section curves{.heading = "Curves", .words = {}, .columns = {}, .rows = {}};
  const auto over = std::ranges::find_if(sweep.axes, is_of_numbers);
  const auto regions = regions_in(rows);
  std::size_t drawn = 0;
  for (const std::string& name : regions) {
    if (over == sweep.axes.end() || drawn == kMostRegions) break;
    curves.svg += draw_curves(chart_of(sweep, rows, *over, name), fmt::format("region{}", ++drawn));
  }
  const auto failed =
      std::ranges::count_if(rows, [](const Row& row) { return row.contains("error"); });
  SectionPage page{
      .kicker = "foretrace sweep",
      .heading = sweep.file,
      .headline = fmt::format("{} points, {} of them failed.", rows.size(), failed),
      .meaning =
          "Time: the process that takes longest. Band: how far the prediction may be off. Ratio: "
          "to "
          "the point that it is against; both are off by the same machine, so its band is narrower "
          "than the two.",
      .sections = {}};
  if (!curves.svg.empty()) page.sections.push_back(curves);
  page.sections.push_back(table_of(sweep, rows));
  return html_of(page);
}

}  // namespace foretrace::sweep
