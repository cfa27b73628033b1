#include "models/machine/value_text.h"

#include <fmt/format.h>

#include <cmath>
#include <initializer_list>

#include "scenarios/base/values/quantity.h"

namespace foretrace {
namespace {

constexpr std::string_view kFlopSuffix = "FLOP/s";

/// "49.5 TFLOP/s" as a plain number of FLOP/s; other texts unchanged.
std::string without_flop_unit(std::string text) {
  if (!text.ends_with(kFlopSuffix)) return text;
  text.resize(text.size() - kFlopSuffix.size());
  while (text.ends_with(' ')) text.pop_back();
  std::string_view scale = "1";
  if (text.ends_with('T')) scale = "1000000000000";
  if (text.ends_with('G')) scale = "1000000000";
  if (scale != "1") text.pop_back();
  return fmt::format("{} * {}", text, scale);
}

/// What is special about a unit: how it is written, and what no machine exceeds, in SI units, which
/// keeps everything that is computed of it finite.
struct UnitFacts {
  Unit written;
  double least, most;
  std::string_view si;
};

UnitFacts facts_of(ParamUnit unit) {
  switch (unit) {
    case ParamUnit::Time:
      return {kTime, 0, 3600, " s"};
    case ParamUnit::Size:
      return {kSize, 1, 0x1p60, " B"};
    case ParamUnit::Rate:
      return {kRate, 1e3, 1e18, " B/s"};
    case ParamUnit::FlopRate:
      return {kNumber, 1e6, 1e21, " FLOP/s"};
    case ParamUnit::Count:
      return {kNumber, 0, 0x1p31, ""};
    case ParamUnit::Ratio:
    case ParamUnit::NvlinkShare:
      break;
  }
  return {kNumber, 1e-9, 1e9, ""};
}

/// From a quantity's base units (bytes, picoseconds) to SI.
double to_si(const Quantity& quantity, Unit unit) {
  const auto value = quantity.constant.to_double();
  if (unit == kTime) return value * 1e-12;
  if (unit == kRate) return value * 1e12;
  return value;
}

struct Scale {
  double factor;
  const char* unit;
};

/// In the largest unit that leaves at least 1 before the point.
std::string scaled(double value, std::initializer_list<Scale> scales) {
  for (const Scale& scale : scales) {
    if (value >= scale.factor) return fmt::format("{:.5g}{}", value / scale.factor, scale.unit);
  }
  const Scale& last = *(scales.end() - 1);
  return fmt::format("{:.5g}{}", value / last.factor, last.unit);
}

}  // namespace

Parsed<double> parse_value(std::string_view text, ParamUnit unit) {
  const bool flops = unit == ParamUnit::FlopRate;
  const Parsed<Quantity> parsed =
      parse_constant(flops ? without_flop_unit(std::string{text}) : std::string{text});
  if (!parsed) return tl::unexpected{parsed.error()};
  const Unit expected = facts_of(unit).written;
  if (parsed->unit == expected) return to_si(*parsed, expected);
  return tl::unexpected{QuantityError{
      fmt::format("expected {}, found {}", describe(expected), describe(parsed->unit)),
      unit == ParamUnit::NvlinkShare ? "a share of nvlink.bandwidth, such as 371/450" : "", 0}};
}

std::optional<std::string> out_of_range(Param param, double value) {
  UnitFacts facts = facts_of(info(param).unit);
  if (param == Param::SmCount || param == Param::HostCores) facts.least = 1;  // whole ones share
  if (value >= facts.least && value <= facts.most) return {};
  if (value <= 0) return fmt::format("{} must be positive", info(param).key);
  return fmt::format("{} lies between {:g} and {:g}{}", info(param).key, facts.least, facts.most,
                     facts.si);
}

bool is_counted(Param param) {
  using enum Param;
  return param == SmCount || param == CopyEngines || param == HardwareQueues ||
         param == LaunchQueueDepth || param == HostCores;
}

std::string value_text(double value, ParamUnit unit) {
  switch (unit) {
    case ParamUnit::Time:
      return scaled(value, {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}});
    case ParamUnit::Size: {
      const bool decimal = std::fmod(value, 1e6) == 0;
      return decimal ? scaled(value, {{1e9, " GB"}, {1e6, " MB"}})
                     : scaled(value, {{0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}, {1, "B"}});
    }
    case ParamUnit::Rate:
      return fmt::format("{:.5g} GB/s", value * 1e-9);
    case ParamUnit::FlopRate:
      return fmt::format("{:.5g} TFLOP/s", value * 1e-12);
    case ParamUnit::Count:
    case ParamUnit::Ratio:
    case ParamUnit::NvlinkShare:
      break;
  }
  return fmt::format("{:.5g}", value);
}

}  // namespace foretrace
