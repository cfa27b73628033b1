#include "reports/calls/join_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "reports/calls/executions.h"
#include "reports/spans/span_join.h"
#include "reports/timeline/origin.h"
#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

/// The steps of a region that lie inside it: the loops of its own, then a loop of `per` steps.
struct Steps {
  std::uint32_t region{};  ///< its OpId
  std::size_t outer{};     ///< how many loops are around the region
  bool has_loop = false;   ///< its steps are a loop inside it
  std::uint64_t turn{};    ///< the region's last instance
  std::uint64_t steps = 1;

  /// Which step of the turn an instance of `op` is; none for other turns.
  bool is_first(const OpRow& op, std::uint64_t instance) const {
    std::uint64_t inner = 1;
    for (std::size_t i = outer + (has_loop ? 1 : 0); i < op.loops.size(); ++i) inner *= op.loops[i];
    return instance / inner == turn * (has_loop ? steps : 1);
  }
};

std::optional<Steps> steps_of(const Timeline& predicted, const std::string& name) {
  for (const RegionSamples& region : predicted.regions) {
    if (region.name != name) continue;
    Steps found{.region = region.op, .outer = predicted.ops[region.op].loops.size()};
    for (const RegionSamples& other : predicted.regions) {
      if (other.op == region.op) found.turn = std::max(found.turn, other.instance);
    }
    for (std::size_t op = region.op + 1; op <= region.op + predicted.ops[region.op].inside; ++op) {
      const auto& loops = predicted.ops[op].loops;
      if (loops.size() <= found.outer || loops[found.outer] != region.per) continue;
      found.has_loop = region.per > 1;
      found.steps = region.per;
      break;
    }
    return found;
  }
  return std::nullopt;
}

/// Of the prediction what its first step of the last turn did, from the step's begin on.
Timeline one_step(const Timeline& predicted, const Steps& steps) {
  Timeline one = predicted;
  const OpRow& region = predicted.ops[steps.region];
  const auto is_inside = [&](const Span& span) {
    return span.op > steps.region && span.op <= steps.region + region.inside &&
           steps.is_first(predicted.ops[span.op], span.instance);
  };
  std::erase_if(one.spans, [&](const Span& span) { return !is_inside(span); });
  std::erase_if(one.regions, [&](const RegionSamples& sample) {
    return sample.op != steps.region || sample.instance != steps.turn;
  });
  one.flows.clear();
  const std::int64_t begin = first_begin_ns(one);
  for (Span& span : one.spans) {
    span.begin_ns -= begin;
    span.end_ns -= begin;
  }
  return one;
}

using CallKey = std::pair<std::uint32_t, std::uint64_t>;           // an operation's execution
using CallPartners = std::map<std::uint32_t, std::map<CallKey, CallKey>>;  // by process: measured to predicted

/// Pairs the n-th of one name with the n-th of that name. What has found a partner leaves.
void pair_by(std::vector<Execution>& first, std::vector<Execution>& second,
             std::string Execution::*name, std::map<CallKey, CallKey>& partners) {
  std::map<std::string, std::vector<std::size_t>> waiting;
  for (std::size_t i = first.size(); i-- > 0;) {
    if (!(first[i].*name).empty()) waiting[first[i].*name].push_back(i);
  }
  std::vector<bool> is_taken(first.size());
  std::erase_if(second, [&](const Execution& one) {
    const auto found = waiting.find(one.*name);
    if (found == waiting.end() || found->second.empty()) return false;
    const std::size_t i = found->second.back();
    found->second.pop_back();
    is_taken[i] = true;
    partners[{one.op, one.instance}] = {first[i].op, first[i].instance};
    return true;
  });
  std::vector<Execution> left;
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (!is_taken[i]) left.push_back(std::move(first[i]));
  }
  first = std::move(left);
}

CallPartners call_partners(const Timeline& predicted, const Timeline& measured) {
  CallPartners partners;
  auto ours = executions_of(predicted);
  for (auto& [process, theirs] : executions_of(measured)) {
    std::vector<Execution> left = theirs;
    pair_by(ours[process], left, &Execution::exact, partners[process]);
    pair_by(ours[process], left, &Execution::operation, partners[process]);
  }
  return partners;
}

}  // namespace

bool is_measured_step(const Timeline& timeline) {
  return timeline.origin.program_hash == kMeasuredStepHash;
}

JoinedStep join_calls(const Timeline& predicted, const Timeline& measured) {
  const std::string name = measured.regions.empty() ? "step" : measured.regions.front().name;
  const auto steps = steps_of(predicted, name);
  if (!steps) {
    throw UsageError{
        fmt::format("{}: the measured step '{}' has no region of that name in the prediction\n  "
                    "hint: capture the "
                    "script that was measured, with the same --region",
                    predicted.origin.file, name)};
  }
  JoinedStep joined{one_step(predicted, *steps), measured};
  Timeline& second = joined.measured;
  const CallPartners partners = call_partners(joined.predicted, measured);
  std::vector<OpRow> rows = joined.predicted.ops;
  std::map<std::uint32_t, std::uint32_t> alone;  // rows of what has no partner
  for (Span& span : second.spans) {
    const auto process = partners.find(second.lanes[span.lane].process);
    const bool is_known =
        process != partners.end() && process->second.contains({span.op, span.instance});
    if (is_known) {
      std::tie(span.op, span.instance) = process->second.at({span.op, span.instance});
      continue;
    }
    const auto [row, is_new] = alone.try_emplace(span.op, static_cast<std::uint32_t>(rows.size()));
    if (is_new) rows.push_back(measured.ops[span.op]);
    span.op = row->second;
  }
  for (RegionSamples& region : second.regions) {
    region.op = steps->region;
    region.instance = steps->turn;
  }
  second.ops = rows;
  joined.predicted.ops = std::move(rows);
  second.origin.program_hash = predicted.origin.program_hash;
  second.origin.is_joined_by_calls = true;
  return joined;
}

}  // namespace foretrace
