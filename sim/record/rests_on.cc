#include "sim/record/rests_on.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
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

const char* whose(const RestsOn& rests) {
  return rests.on_gpus ? "the GPUs' time" : "the host's time";
}

std::string parameters_text(const RestsOn& rests, const Machine& machine) {
  constexpr std::size_t kNamed = 3;
  std::vector<std::string> named;
  for (const auto& [param, share] : rests.parameters) {
    if (named.size() == kNamed) {
      named.emplace_back(fmt::format("{} more", rests.parameters.size() - kNamed));
      break;
    }
    named.push_back(
        fmt::format("{} {} ({})", info(param).key, percent(share), machine.get(param).from));
  }
  return fmt::format("{}", fmt::join(named, ", "));
}

}  // namespace

RestsOn rests_of(const Timeline& predicted, const Machine& machine) {
  RestsOn rests;
  Rest rest = rest_of(predicted, machine, true);
  rests.on_gpus = rest.all > 0;
  if (!rests.on_gpus) rest = rest_of(predicted, machine, false);
  if (rest.all <= 0) return rests;
  rests.assumed = std::min(1.0, rest.assumed / rest.all);
  rests.priced = std::min(1.0, rest.priced / rest.all);
  for (const auto& [parameter, ns] : rest.by_parameter) {
    rests.parameters.push_back({*param_named(parameter), std::min(1.0, ns / rest.all)});
  }
  std::ranges::stable_sort(rests.parameters, std::greater{}, &AssumedPart::share);
  return rests;
}

std::string rests_text(const RestsOn& rests, const Machine& machine) {
  std::string text;
  if (rests.assumed > kWorthSaying) {
    text += fmt::format("note: {} of {} rests on assumed parameters: {}\n", percent(rests.assumed),
                        whose(rests), parameters_text(rests, machine));
  }
  if (rests.priced > kWorthSaying) {
    text += fmt::format(
        "note: {} of {} is NCCL's own price of an operation: machine '{}' has no times of it\n",
        percent(rests.priced), whose(rests), machine.name);
  }
  return text;
}

nlohmann::ordered_json rests_json(const RestsOn& rests, const Machine& machine) {
  auto parameters = nlohmann::ordered_json::array();
  for (const auto& [param, share] : rests.parameters) {
    parameters.push_back(
        {{"parameter", info(param).key}, {"share", share}, {"from", machine.get(param).from}});
  }
  return {{"of", whose(rests)},
          {"assumed", rests.assumed},
          {"priced", rests.priced},
          {"parameters", std::move(parameters)}};
}

std::string rests_on(const Timeline& predicted, const Machine& machine) {
  return rests_text(rests_of(predicted, machine), machine);
}

std::vector<double> numbers_of(const RestsOn& rests) {
  std::vector<double> numbers{rests.on_gpus ? 1.0 : 0.0, rests.assumed, rests.priced};
  for (const auto& [param, share] : rests.parameters) {
    numbers.insert(numbers.end(), {static_cast<double>(param), share});
  }
  return numbers;
}

RestsOn rests_from(std::span<const double> numbers) {
  RestsOn rests{numbers[0] != 0, numbers[1], numbers[2], {}};
  for (std::size_t i = 3; i + 1 < numbers.size(); i += 2) {
    rests.parameters.push_back({static_cast<Param>(static_cast<int>(numbers[i])), numbers[i + 1]});
  }
  return rests;
}

}  // namespace foretrace
