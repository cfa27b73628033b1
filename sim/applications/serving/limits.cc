#include "sim/applications/serving/limits.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <string_view>
#include <tuple>

#include "scenarios/serving/grid.h"

namespace foretrace::serving {
namespace {

using Part = double Parts::*;

struct Named {
  Part part;
  const char* what;
  const char* change;  ///< empty: none
};
constexpr Named kAllParts[] = {
    {&Parts::memory, "reading weights and cache", "memory twice as fast"},
    {&Parts::arithmetic, "arithmetic", "arithmetic twice as fast"},
    {&Parts::links, "links between GPUs", "links twice as fast"},
    {&Parts::starts, "kernels' starts", ""},
    {&Parts::host, "the host, with copies to and from it", "half the host's work"}};

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// What a parameter of the machine is about, by its name.
Part part_of(std::string_view parameter) {
  if (parameter.starts_with("nccl.") || has(parameter, "link") || has(parameter, "nic")) {
    return &Parts::links;
  }
  if (parameter.starts_with("copy.") || parameter.starts_with("host.")) return &Parts::host;
  if (parameter.ends_with(".base") || parameter.ends_with(".start") || has(parameter, "latency")) {
    return &Parts::starts;
  }
  const bool is_memory = has(parameter, "memory") || has(parameter, "hbm") ||
                         has(parameter, "l2") || parameter.ends_with(".rate");
  return is_memory ? &Parts::memory : &Parts::arithmetic;
}

void add_kernel(Parts& parts, const OpRow& op, const SpanDetail& detail, double seconds) {
  double all = 0;
  for (const ParameterShare& one : detail.decided_by) all += std::abs(one.share);
  if (op.kind.starts_with("nccl") || all == 0) {
    parts.*(op.kind.starts_with("nccl") ? &Parts::links : &Parts::starts) += seconds;
    return;
  }
  for (const ParameterShare& one : detail.decided_by) {
    parts.*part_of(one.parameter) += seconds * std::abs(one.share) / all;
  }
}

double logarithm(std::int64_t count) { return std::log2(static_cast<double>(count + 1)); }

/// How far two batches are apart: by their tokens, and by what attention reads.
double distance(const Batch& a, const Batch& b) {
  const auto ratio = [](std::int64_t x, std::int64_t y) {
    return std::abs(logarithm(x) - logarithm(y));
  };
  constexpr double kOfAttention = 0.1;  // fewer tokens are another kind of kernel
  return ratio(a.tokens(), b.tokens()) +
         kOfAttention * ratio(a.decode_keys + a.chunk_keys, b.decode_keys + b.chunk_keys) +
         ((a.chunk_tokens > 0) == (b.chunk_tokens > 0) ? 0 : 1);
}

constexpr double kNsOfMs = 1e6;

}  // namespace

std::vector<Parts> parts_of(const Timeline& iterations) {
  std::vector<Parts> parts(iterations.regions.size());
  for (const Span& span : iterations.spans) {
    if (iterations.lanes[span.lane].kind != LaneKind::Stream) continue;
    const auto after =
        std::ranges::upper_bound(iterations.regions, span.op, {}, &RegionSamples::op);
    if (after == iterations.regions.begin()) continue;  // captured before
    const auto region = static_cast<std::size_t>(after - iterations.regions.begin()) - 1;
    add_kernel(parts[region], iterations.ops[span.op], iterations.details[span.detail],
               static_cast<double>(span.end_ns - span.begin_ns) * 1e-9);
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const double all = static_cast<double>(iterations.regions[i].samples_ns.front()) * 1e-9;
    parts[i].host += std::max(0.0, all - parts[i].sum());
  }
  return parts;
}

std::vector<ServingFacts::Share> limits_of(const Serving& serving, const Predicted& predicted,
                                           const Timeline& iterations) {
  const std::vector<Parts> parts = parts_of(iterations);
  const std::vector<Batch> batches = batches_of(grid_of(serving));
  std::map<std::tuple<bool, int, int>, const Parts*> known;  // batches of about one size
  const auto near = [&](const Batch& of) -> const Parts& {
    const auto about = [](std::int64_t n) { return static_cast<int>(8 * logarithm(n)); };
    const Parts*& found =
        known[{of.chunk_tokens > 0, about(of.tokens()), about(of.decode_keys + of.chunk_keys)}];
    if (found == nullptr) {
      const auto at = std::ranges::min_element(
          batches, {}, [&](const Batch& batch) { return distance(batch, of); });
      found = &parts[static_cast<std::size_t>(at - batches.begin())];
    }
    return *found;
  };
  Parts whole;
  for (const Served& engine :
       std::span{predicted.engines}.last(static_cast<std::size_t>(serving.replicas))) {
    for (const Iteration& one : engine.iterations) {
      const Parts& found = near(one.batch);
      const double seconds = static_cast<double>(one.end_ns - one.begin_ns) * 1e-9;
      for (const Named& named : kAllParts) {
        if (found.sum() > 0) whole.*named.part += seconds * found.*named.part / found.sum();
      }
    }
  }
  std::vector<ServingFacts::Share> shares;
  for (const Named& named : kAllParts) {
    if (whole.*named.part > 0) shares.push_back({named.what, whole.*named.part / whole.sum()});
  }
  std::ranges::stable_sort(shares, std::ranges::greater{}, &ServingFacts::Share::share);
  return shares;
}

std::vector<ServingFacts::WhatIf> what_ifs(const std::vector<Serving>& kinds,
                                           const Predicted& predicted, const Machine& machine,
                                           const std::vector<std::vector<RegionTime>>& times,
                                           const Timeline& iterations) {
  std::vector<ServingFacts::WhatIf> found;
  if (kinds.size() > 1) return found;
  const auto add = [&](std::string change, const Summary& summary) {
    found.push_back({.change = std::move(change),
                     .ttft_p50_ns = std::llround(summary.ttft.percentiles[0] * kNsOfMs),
                     .ttft_p90_ns = std::llround(summary.ttft.percentiles[1] * kNsOfMs),
                     .tpot_p50_ns = std::llround(summary.tpot.percentiles[0] * kNsOfMs),
                     .tokens_per_s = summary.output_tokens_per_s});
  };
  add("as predicted", predicted.middle);
  const std::vector<Parts> parts = parts_of(iterations);
  for (const Named& named : kAllParts) {
    if (std::string_view{named.change}.empty()) continue;
    auto quicker = times;
    bool any = false;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      RegionTime& region = quicker.front()[i];
      const double less = std::min(parts[i].*named.part / 2, region.time.seconds);
      any = any || less > 0;
      const double left = 1 - less / region.time.seconds;
      region.time.seconds *= left;
      region.time.low *= left;
      region.time.high *= left;
    }
    if (any) add(named.change, predict(kinds, machine, quicker).middle);
  }
  std::vector<Serving> more = kinds;
  more.front().replicas *= 2;
  if (more.front().replicas <= predicted.middle.requests) {
    add("twice as many engines", predict(more, machine, times).middle);
  }
  return found;
}

}  // namespace foretrace::serving
