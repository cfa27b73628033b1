#include "sim/applications/nccl_tests/host_factor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

/// The factor that is least off, between a half and three: in steps of a quarter octave, then of a
/// sixteenth.
double best_factor(const Half& half, const Machine& machine) {
  double best = 1;
  double least = mean_size(errors_at(half, machine, 1));
  const auto look = [&](double around, double step, int steps) {
    for (int i = -steps; i <= steps; ++i) {
      const double factor = around * std::exp2(step * i);
      if (i == 0 || factor < 0.5 || factor > 3) continue;
      const double size = mean_size(errors_at(half, machine, factor));
      if (size >= least) continue;
      least = size;
      best = factor;
    }
  };
  look(1, 0.25, 6);
  look(best, 1.0 / 16, 2);
  return best;
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
