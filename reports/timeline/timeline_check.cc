#include "reports/timeline/timeline_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <vector>

#include "scenarios/serving/served_facts_json.h"

namespace foretrace {
namespace {

constexpr std::uint32_t kMostDevices = 1 << 16;                   // of a process
constexpr std::uint32_t kMostProcesses = 1 << 20;                 // and process launches
constexpr std::uint64_t kMostInstances = std::uint64_t{1} << 62;  // as scenarios have it

using Wrong = std::optional<std::string>;

Wrong outside(std::uint64_t index, std::uint64_t size, const char* what) {
  if (index < size) return std::nullopt;
  return fmt::format("{} {} of {}", what, index, size);
}

bool is_time(std::int64_t ns) { return ns >= -kLongestTimelineNs && ns <= kLongestTimelineNs; }
bool is_launch(std::int64_t ns) { return ns > 0 && is_time(ns); }

/// A band around 1 is not asked for: what a parameter is off by may have one sign.
bool is_band(double low, double high) { return low > 0 && low <= high && std::isfinite(high); }

bool are_finite(const std::vector<ParameterShare>& shares) {
  return std::ranges::all_of(shares, [](const auto& one) { return std::isfinite(one.share); });
}

/// How often each operation may run: the product of its loops.
std::vector<std::uint64_t> instances_of(const std::vector<OpRow>& ops) {
  std::vector<std::uint64_t> all;
  all.reserve(ops.size());
  for (const OpRow& op : ops) {
    std::uint64_t product = 1;
    for (const std::uint64_t times : op.loops) {
      if (__builtin_mul_overflow(product, times, &product)) product = kMostInstances + 1;
    }
    all.push_back(product);
  }
  return all;
}

Wrong wrong_op(const OpRow& op, std::uint64_t instances) {
  if (instances > kMostInstances) return "too many loops";
  if (!op.sizes.empty() && op.sizes.size() != instances) {
    return fmt::format("{} sizes for {} executions", op.sizes.size(), instances);
  }
  const bool is_product =
      (op.shape.size() == 3 || op.shape.size() == 4) && !std::ranges::count(op.shape, 0U);
  if (!op.shape.empty() && !is_product) return "a shape that is not m, n, k and how many";
  if (op.ranks >= kMostProcesses) return fmt::format("{} ranks", op.ranks);
  return std::nullopt;
}

Wrong wrong_lane(const Lane& lane) {
  if (lane.device != kNoDevice && lane.device >= kMostDevices) {
    return fmt::format("lane '{}' is of device {}: no process has so many", lane.name, lane.device);
  }
  if (lane.process >= kMostProcesses || lane.node >= kMostProcesses) {
    return fmt::format("lane '{}' is of process {}, node {}: no run has so many", lane.name,
                       lane.process, lane.node);
  }
  return std::nullopt;
}

Wrong wrong_detail(const SpanDetail& detail) {
  if (is_band(detail.low_factor, detail.high_factor) && are_finite(detail.decided_by)) {
    return std::nullopt;
  }
  return fmt::format("a detail has a band from {} to {}", detail.low_factor, detail.high_factor);
}

Wrong wrong_span(const Timeline& t, const Span& span, const std::vector<std::uint64_t>& instances) {
  if (auto wrong = outside(span.op, t.ops.size(), "a span's op is")) return wrong;
  if (auto wrong = outside(span.lane, t.lanes.size(), "a span's lane is")) return wrong;
  if (auto wrong = outside(span.detail, t.details.size(), "a span's detail is")) return wrong;
  if (auto wrong = outside(span.instance, instances[span.op], "a span's instance is")) return wrong;
  if (is_time(span.begin_ns) && is_time(span.end_ns) && span.begin_ns <= span.end_ns) {
    return std::nullopt;
  }
  return fmt::format("a span lasts from {} ns to {} ns", span.begin_ns, span.end_ns);
}

Wrong wrong_region(const Timeline& t, const RegionSamples& region,
                   const std::vector<std::uint64_t>& instances) {
  if (auto wrong = outside(region.op, t.ops.size(), "a region's op is")) return wrong;
  const OpRow& op = t.ops[region.op];
  if (op.kind != "region" && op.kind != "event_elapsed_time") {
    return fmt::format("region '{}' points at a {} of line {}", region.name, op.kind, op.line);
  }
  if (auto wrong = outside(region.instance, instances[region.op], "a region's instance is")) {
    return wrong;
  }
  if (region.process >= kMostProcesses) {
    return fmt::format("region '{}' is of process {}", region.name, region.process);
  }
  if (region.per == 0) return fmt::format("region '{}' is 'per' 0", region.name);
  if (!region.starts.empty() && region.starts.size() != region.samples_ns.size()) {
    return fmt::format("region '{}' has {} starts for {} samples", region.name,
                       region.starts.size(), region.samples_ns.size());
  }
  const auto is_start = [](std::uint32_t start) { return start < kMostProcesses; };
  if (!std::ranges::all_of(region.starts, is_start)) {
    return fmt::format("region '{}' has a start above {}", region.name, kMostProcesses);
  }
  const auto is_duration = [](std::int64_t ns) { return ns >= 0 && ns <= kLongestTimelineNs; };
  if (!std::ranges::all_of(region.samples_ns, is_duration) ||
      !is_duration(region.traced_ns.value_or(0))) {
    return fmt::format("region '{}' has a sample that is no time", region.name);
  }
  if (!is_band(region.low_factor, region.high_factor) || !are_finite(region.decided_by)) {
    return fmt::format("region '{}' has a band from {} to {}", region.name, region.low_factor,
                       region.high_factor);
  }
  return std::nullopt;
}

Wrong wrong_regions(const Timeline& t, const std::vector<std::uint64_t>& instances) {
  std::set<std::tuple<std::uint32_t, std::uint64_t, std::uint32_t>> seen;
  for (const RegionSamples& region : t.regions) {
    if (auto wrong = wrong_region(t, region, instances)) return wrong;
    if (!seen.insert({region.op, region.instance, region.process}).second) {
      return fmt::format("region '{}' is there twice (instance {}, process {})", region.name,
                         region.instance, region.process);
    }
  }
  return std::nullopt;
}

}  // namespace

Wrong what_is_wrong(const Timeline& t) {
  if (t.details.empty()) return "'details' is empty";
  const std::vector<std::uint64_t> instances = instances_of(t.ops);
  for (std::size_t i = 0; i < t.ops.size(); ++i) {
    if (auto wrong = wrong_op(t.ops[i], instances[i])) {
      return fmt::format("op {} has {}", i, *wrong);
    }
  }
  for (std::size_t i = program_ops(t); i < t.ops.size(); ++i) {
    if (!t.ops[i].captured) return fmt::format("op {} is behind a captured one and is none", i);
  }
  for (const Lane& lane : t.lanes) {
    if (auto wrong = wrong_lane(lane)) return wrong;
  }
  for (const SpanDetail& detail : t.details) {
    if (auto wrong = wrong_detail(detail)) return wrong;
  }
  for (const Span& span : t.spans) {
    if (auto wrong = wrong_span(t, span, instances)) return wrong;
  }
  for (const Flow& flow : t.flows) {
    if (auto wrong = outside(flow.from, t.spans.size(), "a flow comes from span")) return wrong;
    if (auto wrong = outside(flow.to, t.spans.size(), "a flow goes to span")) return wrong;
  }
  for (const ProcessStart& start : t.origin.starts) {
    if (start.start >= kMostProcesses) return fmt::format("a start has the number {}", start.start);
    if (!std::ranges::all_of(start.launch_ns, is_launch)) {
      return fmt::format("start {} has a launch that took no time, or years", start.start);
    }
  }
  if (t.serving) {
    if (auto wrong = what_is_wrong(*t.serving)) return wrong;
  }
  if (t.origin.launch_ns && !is_launch(*t.origin.launch_ns)) {
    return fmt::format("a launch takes {} ns", *t.origin.launch_ns);
  }
  if (t.origin.clock_error_bound_ns < 0 || !is_time(t.origin.clock_error_bound_ns)) {
    return fmt::format("clocks that differ by {} ns", t.origin.clock_error_bound_ns);
  }
  return wrong_regions(t, instances);
}

}  // namespace foretrace
