#include "models/trust/trust.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "models/constants/constants.h"
#include "models/trust/blind.h"
#include "scenarios/base/values/quantity.h"

namespace foretrace {
namespace {

constexpr double kMost = 1.0;  // a factor of two

std::optional<double> bytes_in(std::string_view text) {
  const Parsed<Quantity> parsed = parse_constant(text);
  if (!parsed || parsed->unit != kSize) return std::nullopt;
  return parsed->constant.to_double();
}

/// "48 B..2 GiB". Ranges of other things (calls in a row) say nothing about a size.
bool is_outside(const std::string& range, Bytes size) {
  const std::size_t dots = range.find("..");
  if (size.count == 0 || dots == std::string::npos) return false;
  const auto low = bytes_in(std::string_view{range}.substr(0, dots));
  const auto high = bytes_in(std::string_view{range}.substr(dots + 2));
  const auto bytes = static_cast<double>(size.count);
  return low && high && (bytes < *low || bytes > *high);
}

/// A fit, or what was learned from measurements, used outside of their sizes.
bool is_learned_elsewhere(const ParamValue& value, Bytes size) {
  return value.trusted_as() == ParameterClass::Fit && is_outside(value.range, size);
}

Band band(double off, ParameterClass parameters) {
  const double factor = 1 + std::min(off, kMost);
  return {1 / factor, factor, parameters};
}

}  // namespace

ParameterClass source_of(const Machine& machine, Param param, Bytes size) {
  const ParamValue& value = machine.get(param);
  return is_learned_elsewhere(value, size) ? ParameterClass::Assumed : value.source;
}

double uncertainty_of(const Machine& machine, Param param, Bytes size) {
  const ParamValue& value = machine.get(param);
  const double spread = value.spread;
  switch (is_learned_elsewhere(value, size) ? ParameterClass::Assumed : value.trusted_as()) {
    case ParameterClass::Fit:
      if (spread > 0) return spread;
      return value.source == ParameterClass::Published ? constant("trust.published")
                                                       : constant("trust.fit");
    case ParameterClass::Published:
      return std::max(constant("trust.published"), spread);
    case ParameterClass::Datasheet:
      return std::max(constant("trust.datasheet"), spread);
    case ParameterClass::Assumed:
      break;
  }
  return std::max(constant("trust.assumed"), spread);
}

double spread_of(const Machine& machine, Param param) {
  const std::optional<double> shown = blind_spread(machine, param);
  return shown ? *shown : uncertainty_of(machine, param, {});
}

Band band_of(const Machine& machine, std::span<const Share> shares, Bytes size) {
  if (shares.empty()) return {};
  const std::optional<double> shown = blind_spread(machine, shares);
  const double classes = shown ? *shown : borrowed_spread(machine, shares);
  double squares = classes * classes;
  auto worst = ParameterClass::Fit;
  const std::optional<double> between = network_spread(machine, shares);
  if (!shown) squares += between.value_or(0) * between.value_or(0);
  for (const auto& [param, share] : shares) {
    // A nominal rate that others are given as shares of: what is not known of them is theirs.
    if (param == Param::NvlinkBandwidth) continue;
    const double off = share * uncertainty_of(machine, param, size);
    const bool is_told = shown || (between && is_of_network(param));  // blind_spread has the rest
    if (!is_told || is_learned_elsewhere(machine.get(param), size)) squares += off * off;
    if (std::abs(share) < kDecidingShare) continue;
    worst = std::max(worst, source_of(machine, param, size));
  }
  return band(std::sqrt(squares), worst);
}

Band with_guessed(Band known, double guessed) {
  if (guessed <= 0) return known;
  return band(std::hypot(known.high - 1, guessed * constant("trust.assumed")),
              ParameterClass::Assumed);
}

Band band_of_a_guess() { return band(constant("trust.assumed"), ParameterClass::Assumed); }

}  // namespace foretrace
