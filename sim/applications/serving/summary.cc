#include "sim/applications/serving/summary.h"

#include <algorithm>
#include <numeric>

#include "reports/timeline/statistics.h"

namespace foretrace::serving {
namespace {

constexpr double kMs = 1e-6;  // of a nanosecond
constexpr double kHundred = 100;

Times times_of(std::vector<double> values) {
  Times times;
  if (values.empty()) return times;
  times.mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  std::vector<double> shares;
  for (const int percent : kPercentiles) shares.push_back(percent / kHundred);
  std::ranges::copy(quantiles(values, shares), times.percentiles);
  return times;
}

/// Slope of a line through points by least squares; 0 where all lie at one place.
double slope(const std::vector<std::pair<double, double>>& points) {
  double x = 0, y = 0, xx = 0, xy = 0;
  const auto n = static_cast<double>(points.size());
  for (const auto& [a, b] : points) {
    x += a / n;
    y += b / n;
  }
  for (const auto& [a, b] : points) {
    xx += (a - x) * (a - x);
    xy += (a - x) * (b - y);
  }
  return xx > 0 ? xy / xx : 0;
}

/// An engine that is too slow by a tenth falls behind by a tenth of a second in each: more than
/// that is overload. One that keeps up may still let most requests wait.
Verdict verdict_of(const Serving& serving, const Summary& summary) {
  constexpr double kBehind = 0.1;
  constexpr double kQueue = 4;  // times the usual time to the first token
  if (serving.traffic.arrivals == Arrivals::Closed) return Verdict::ClosedLoop;
  if (summary.falls_behind > kBehind) return Verdict::Overloaded;
  const bool waits = summary.ttft.percentiles[1] > kQueue * summary.ttft.percentiles[0];
  return waits ? Verdict::Backlogged : Verdict::Stable;
}

}  // namespace

double waiting_share(const std::vector<Served>& engines) {
  double waits = 0, all = 0;
  for (const Served& engine : engines) {
    for (const Request& one : engine.requests) {
      all += static_cast<double>(one.token_ns.back() - one.arrival_ns);
      waits += static_cast<double>(one.admitted_ns.front() - one.arrival_ns);
      for (std::size_t i = 0; i < one.preempted_ns.size(); ++i) {
        waits += static_cast<double>(one.admitted_ns[i + 1] - one.preempted_ns[i]);
      }
    }
  }
  return all > 0 ? waits / all : 0;
}

Summary summary_of(const Serving& serving, const std::vector<Served>& engines) {
  Summary summary;
  std::vector<double> ttft, tpot, itl, whole;
  std::vector<std::pair<double, double>> waits;
  std::int64_t first = 0, last = 0, tokens = 0;
  double running = 0, busy = 0;
  for (const Served& engine : engines) {
    for (const Request& one : engine.requests) {
      const bool is_first = summary.requests++ == 0;
      first = is_first ? one.arrival_ns : std::min(first, one.arrival_ns);
      last = std::max(last, one.token_ns.back());
      tokens += one.output;
      const auto waited = static_cast<double>(one.token_ns.front() - one.arrival_ns);
      ttft.push_back(waited * kMs);
      waits.emplace_back(static_cast<double>(one.arrival_ns) * 1e-9, waited * 1e-9);
      whole.push_back(static_cast<double>(one.token_ns.back() - one.arrival_ns) * kMs);
      for (std::size_t i = 1; i < one.token_ns.size(); ++i) {
        if (one.token_ns[i] == one.token_ns[i - 1]) continue;  // guessed: they come together
        itl.push_back(static_cast<double>(one.token_ns[i] - one.token_ns[i - 1]) * kMs);
      }
      if (one.output < 2) continue;
      tpot.push_back(static_cast<double>(one.token_ns.back() - one.token_ns.front()) * kMs /
                     static_cast<double>(one.output - 1));
    }
    for (const Iteration& one : engine.iterations) {
      const auto took = static_cast<double>(one.end_ns - one.begin_ns);
      busy += took;
      running += took * static_cast<double>(one.batch.requests());
      const double used = static_cast<double>(one.blocks) / static_cast<double>(engine.blocks);
      summary.most_of_cache = std::max(summary.most_of_cache, used);
    }
    summary.iterations += static_cast<std::int64_t>(engine.iterations.size());
    summary.preemptions += engine.preemptions;
  }
  summary.has_tpot = !tpot.empty();
  summary.ttft = times_of(std::move(ttft));
  summary.tpot = times_of(std::move(tpot));
  summary.itl = times_of(std::move(itl));
  summary.end_to_end = times_of(std::move(whole));
  summary.seconds = static_cast<double>(last - first) * 1e-9;
  summary.requests_per_s = static_cast<double>(summary.requests) / summary.seconds;
  summary.output_tokens_per_s = static_cast<double>(tokens) / summary.seconds;
  summary.mean_running = busy > 0 ? running / busy : 0;
  summary.busy = busy * 1e-9 / summary.seconds / static_cast<double>(engines.size());
  summary.falls_behind = slope(waits);
  summary.verdict = verdict_of(serving, summary);
  return summary;
}

}  // namespace foretrace::serving
