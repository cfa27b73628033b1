#include "sim/applications/nccl_tests/host_factor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "models/what_if/what_if.h"
#include "reports/table/text_table.h"
#include "reports/timeline/statistics.h"

namespace foretrace {
namespace {

constexpr std::uint64_t kSmall = 1u << 20;
constexpr std::uint32_t kMostRanks = 64;  // simulating more takes longer than the answer is worth
constexpr std::size_t kFewest = 4;        // rows of each half

struct Half {
  std::vector<NcclTestsPlan> plans;
  std::vector<std::vector<double>> measured;  ///< us, of each plan's sizes

  std::size_t rows() const {
    std::size_t all = 0;
    for (const auto& of_plan : measured) all += of_plan.size();
    return all;
  }
};

/// Every other small size, from the first or the second one on.
Half half_of(const std::vector<NcclTestsComparison>& comparisons, std::size_t first) {
  Half half;
  for (const NcclTestsComparison& one : comparisons) {
    if (one.plan.ranks() > kMostRanks) continue;
    NcclTestsPlan plan = one.plan;
    plan.sizes.clear();
    std::vector<double> measured;
    for (std::size_t i = first; i < one.rows.size(); i += 2) {
      const NcclTestsComparedRow& row = one.rows[i];
      if (row.predicted.size.bytes >= kSmall) continue;
      plan.sizes.push_back(row.predicted.size);
      measured.push_back(row.median_us);
    }
    if (plan.sizes.empty()) continue;
    half.plans.push_back(std::move(plan));
    half.measured.push_back(std::move(measured));
  }
  return half;
}

/// log(predicted / measured) of all rows on a host so many times as fast.
std::vector<double> errors_at(const Half& half, const Machine& machine, double factor) {
  Machine other = machine;
  if (factor != 1) apply_what_ifs(other, {fmt::format("host={:.4f}x", factor)});
  const auto predicted = predict_nccl_tests(half.plans, other);
  std::vector<double> errors;
  for (std::size_t i = 0; i < half.plans.size(); ++i) {
    for (std::size_t k = 0; k < half.measured[i].size(); ++k) {
      errors.push_back(std::log(predicted[i][k].time_us / half.measured[i][k]));
    }
  }
  return errors;
}

double mean_size(const std::vector<double>& errors) {
  double sum = 0;
  for (const double error : errors) sum += std::abs(error);
  return sum / static_cast<double>(errors.size());
}

double median_error(const std::vector<double>& errors) {
  std::vector<double> sizes;
  for (const double error : errors) sizes.push_back(std::abs(std::exp(error) - 1));
  return median(sizes);
}

/// The factor next to one that has most of what the best one gains, between a half and three: in
/// steps of a quarter octave, then of a sixteenth. A host that no longer bounds anything may be
/// faster still, which no size tells.
double best_factor(const Half& half, const Machine& machine) {
  constexpr double kMost = 0.9;    // of the gain
  constexpr double kLeast = 0.01;  // mean |log error|: less says nothing of the host
  std::map<double, double> errors{{1, mean_size(errors_at(half, machine, 1))}};
  const auto best = [&] {
    return std::ranges::min_element(errors, {}, [](const auto& one) { return one.second; })->second;
  };
  const auto next_to_one = [&] {
    const double now = errors.at(1), enough = now - kMost * (now - best());
    double nearest = 1;
    for (const auto& [factor, error] : errors) {
      const bool is_nearer =
          nearest == 1 || std::abs(std::log(factor)) < std::abs(std::log(nearest));
      if (factor != 1 && error <= enough && is_nearer) nearest = factor;
    }
    return now - best() < kLeast ? 1 : nearest;
  };
  const auto look = [&](double around, double step, int steps) {
    for (int i = -steps; i <= steps; ++i) {
      const double factor = around * std::exp2(step * i);
      if (factor < 0.5 || factor > 3 || errors.contains(factor)) continue;
      errors[factor] = mean_size(errors_at(half, machine, factor));
    }
  };
  look(1, 0.25, 6);
  look(next_to_one(), 1.0 / 16, 3);
  return next_to_one();
}

}  // namespace

std::optional<NcclTestsHost> fit_host(const std::vector<NcclTestsComparison>& comparisons,
                                      const Machine& machine) {
  const Half fitted = half_of(comparisons, 0), judged = half_of(comparisons, 1);
  if (fitted.rows() < kFewest || judged.rows() < kFewest) return {};
  NcclTestsHost host;
  host.fitted = fitted.rows();
  host.judged = judged.rows();
  host.factor = best_factor(fitted, machine);
  host.before = median_error(errors_at(judged, machine, 1));
  host.after =
      host.factor == 1 ? host.before : median_error(errors_at(judged, machine, host.factor));
  return host;
}

std::string host_text(const NcclTestsHost& host, const Machine& machine) {
  constexpr double kAlike = 0.03;  // a table says no more
  if (std::abs(std::log(host.factor)) < kAlike) {
    return fmt::format("this host is as fast as that of {} ({} sizes below 1 MiB)\n", machine.name,
                       host.fitted);
  }
  return fmt::format(
      "this host is {:.2f} times as fast as that of {}: with --with host={:.2f}x the median error "
      "of {} other sizes below 1 MiB is {} instead of {}\n",
      host.factor, machine.name, host.factor, host.judged, format_percent(host.after),
      format_percent(host.before));
}

}  // namespace foretrace
