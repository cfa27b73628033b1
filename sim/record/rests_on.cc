#include "sim/record/rests_on.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace foretrace {
namespace {

constexpr double kWorthSaying = 0.2;

/// Of spans of one kind, in ns.
struct Rest {
  double all = 0;
  double assumed = 0;
  double priced = 0;  ///< by NCCL's own numbers
  std::map<std::string, double> by_parameter;
};

/// NCCL's own price: a choice of NCCL's, and no parameter behind its time.
bool is_price(const SpanDetail& detail) {
  return !detail.algorithm.empty() && detail.decided_by.empty() &&
         detail.parameters == ParameterClass::Assumed;
}

bool is_assumed(const Machine& machine, const std::string& key) {
  const auto param = param_named(key);
  return param && *param != Param::NvlinkBandwidth && machine.has(*param) &&
         machine.get(*param).trusted_as() == ParameterClass::Assumed;
}

/// Spans on GPUs, or on the host.
Rest rest_of(const Timeline& timeline, const Machine& machine, bool on_gpus) {
  std::vector<double> ns(timeline.details.size());
  Rest rest;
  for (const Span& span : timeline.spans) {
    const LaneKind kind = timeline.lanes[span.lane].kind;
    if (kind != (on_gpus ? LaneKind::Stream : LaneKind::HostThread)) continue;
    const auto length = static_cast<double>(span.end_ns - span.begin_ns);
    rest.all += length;
    if (span.detail < ns.size()) ns[span.detail] += length;
  }
  for (std::size_t i = 0; i < ns.size(); ++i) {
    const SpanDetail& detail = timeline.details[i];
    if (ns[i] <= 0) continue;
    if (is_price(detail)) rest.priced += ns[i];
    std::map<std::string, double> assumed;
    double share = 0;
    for (const auto& [parameter, part] : detail.decided_by) {
      if (!is_assumed(machine, parameter)) continue;
      share += std::abs(part);
      assumed[parameter] += std::abs(part);
    }
    // One makes a time longer that another makes shorter: together never more than all of it.
    const double scale = ns[i] / std::max(share, 1.0);
    for (const auto& [parameter, part] : assumed) rest.by_parameter[parameter] += scale * part;
    rest.assumed += scale * share;
  }
  return rest;
}

std::string percent(double part) { return fmt::format("{:.0f} %", 100 * part); }

std::string parameters_text(const Rest& rest, const Machine& machine) {
  constexpr std::size_t kNamed = 3;
  std::vector<std::pair<double, std::string>> largest;
  for (const auto& [parameter, ns] : rest.by_parameter) largest.emplace_back(ns, parameter);
  std::ranges::sort(largest, std::greater{});
  std::vector<std::string> named;
  for (const auto& [ns, parameter] : largest) {
    if (named.size() == kNamed) {
      named.emplace_back(fmt::format("{} more", largest.size() - kNamed));
      break;
    }
    named.push_back(fmt::format("{} {} ({})", parameter, percent(std::min(1.0, ns / rest.all)),
                                machine.get(*param_named(parameter)).from));
  }
  return fmt::format("{}", fmt::join(named, ", "));
}

}  // namespace

std::string rests_on(const Timeline& predicted, const Machine& machine) {
  Rest rest = rest_of(predicted, machine, true);
  const bool on_gpus = rest.all > 0;
  if (!on_gpus) rest = rest_of(predicted, machine, false);
  if (rest.all <= 0) return {};
  const char* const whose = on_gpus ? "the GPUs' time" : "the host's time";
  std::string text;
  if (rest.assumed > kWorthSaying * rest.all) {
    text += fmt::format("note: {} of {} rests on assumed parameters: {}\n",
                        percent(rest.assumed / rest.all), whose, parameters_text(rest, machine));
  }
  if (rest.priced > kWorthSaying * rest.all) {
    text += fmt::format(
        "note: {} of {} is NCCL's own price of an operation: machine '{}' has no times of it\n",
        percent(rest.priced / rest.all), whose, machine.name);
  }
  return text;
}

}  // namespace foretrace
