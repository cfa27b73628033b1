#include "sim/applications/sweep/paired.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "scenarios/base/text/errors.h"

namespace foretrace::sweep {
namespace {

using Json = nlohmann::ordered_json;

/// Correlation of what two regions of different programs are off by for other reasons than the
/// parameters that decide them. Chosen on blind round 4: 82 % of its pairs are within their bands
/// (with 0 86 %, with 0.8 79 %), 83 % of round 3's; of those whose band is at most half as wide as
/// two that share nothing (which hold 94 and 96 %), 63 and 67 %.
constexpr double kOtherProgram = 0.5;

struct Off {
  double share = 0, other_share = 0, spread = 0;
};

double off_of(const Json& region) {
  const double us = region.at("us");
  return us > 0 ? region.at("high_us").get<double>() / us - 1 : 0;
}

double square(double value) { return value * value; }

std::string name_of(const Axis& axis) { return axis.kind == Kind::Machine ? "machine" : axis.name; }

Kinship kinship_of(const Json& row, const Json& other) {
  if (row.at("machine") != other.at("machine")) return Kinship::None;
  return row.value("set", Json{}) == other.value("set", Json{}) ? Kinship::Program
                                                                : Kinship::Machine;
}

const Json* region_named(const Json& row, const Json& name) {
  if (!row.contains("regions")) return nullptr;
  for (const Json& region : row.at("regions")) {
    if (region.at("name") == name) return &region;
  }
  return nullptr;
}

}  // namespace

Against::Against(const std::vector<Axis>& axes, const std::vector<std::string>& texts) {
  std::map<std::string, std::string> wanted;
  for (const std::string& text : texts) {
    const auto equals = std::min(text.find('='), text.size());
    wanted[text.substr(0, equals)] = equals < text.size() ? text.substr(equals + 1) : "";
  }
  std::size_t stride = 1;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {  // the last varies fastest
    Kept kept{.stride = stride, .values = axis->values.size(), .value = 0};
    stride *= axis->values.size();
    if (const auto one = wanted.extract(name_of(*axis)); !one.empty()) {
      const auto found = std::ranges::find(axis->values, one.mapped());
      if (found == axis->values.end()) {
        throw UsageError{fmt::format("--against {}={}: {} takes no such value in this sweep",
                                     one.key(), one.mapped(), one.key())};
      }
      kept.value = static_cast<std::size_t>(found - axis->values.begin());
    } else if (!texts.empty()) {
      continue;  // its own value
    }
    kept_.push_back(kept);
  }
  if (!wanted.empty()) {
    throw UsageError{
        fmt::format("--against {}={}: this sweep has no axis of that name\n  hint: NAME=VALUE of "
                    "--set, --with, or machine=NAME",
                    wanted.begin()->first, wanted.begin()->second)};
  }
}

std::size_t Against::of(std::size_t point) const {
  std::size_t other = point;
  for (const auto& [stride, values, value] : kept_) {
    other -= point / stride % values * stride;
    other += value * stride;
  }
  return other;
}

double paired_off(const Json& region, const Json& other, Kinship kinship) {
  const double a = off_of(region);
  const double b = off_of(other);
  const double apart = std::hypot(a, b);
  if (kinship == Kinship::None) return apart;
  const double common = kinship == Kinship::Program ? 1 : kOtherProgram;
  std::map<std::string, Off> offs;
  for (const Json& by : region.at("decided_by")) {
    offs[by.at("parameter")] = {
        .share = by.at("share"), .other_share = 0, .spread = by.at("spread")};
  }
  for (const Json& by : other.at("decided_by")) {
    Off& off = offs[by.at("parameter")];
    off.other_share = by.at("share");
    off.spread = std::max(off.spread, by.at("spread").get<double>());
  }
  double squares = 0, of_one = 0, of_other = 0;
  for (const auto& [parameter, off] : offs) {
    squares += square((off.share - off.other_share) * off.spread);
    of_one += square(off.share * off.spread);
    of_other += square(off.other_share * off.spread);
  }
  const double rest = std::sqrt(std::max(0.0, a * a - of_one));
  const double other_rest = std::sqrt(std::max(0.0, b * b - of_other));
  squares += rest * rest + other_rest * other_rest - 2 * common * rest * other_rest;
  return std::min(std::sqrt(squares), apart);
}

void compare(std::vector<Json>& rows, const Against& against) {
  const auto rounded = [](double value) { return std::round(value * 1e4) / 1e4; };
  for (std::size_t point = 0; point < rows.size(); ++point) {
    Json& row = rows[point];
    const std::size_t number = against.of(point);
    const Json& other = rows.at(number);
    row.erase("against");
    if (!row.contains("regions") || !other.contains("regions")) continue;
    for (Json& region : row.at("regions")) {
      for (const char* key : {"ratio", "ratio_low", "ratio_high"}) region.erase(key);
      const Json* const same = region_named(other, region.at("name"));
      if (same == nullptr || !(same->at("us") > 0)) continue;
      const double ratio = region.at("us").get<double>() / same->at("us").get<double>();
      const bool itself = number == point;
      const double off = itself ? 0 : paired_off(region, *same, kinship_of(row, other));
      region["ratio"] = rounded(ratio);
      region["ratio_low"] = rounded(ratio / (1 + off));
      region["ratio_high"] = rounded(ratio * (1 + off));
    }
    row["against"] = number;
  }
}

}  // namespace foretrace::sweep
