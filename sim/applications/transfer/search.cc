#include "sim/applications/transfer/search.h"

#include <algorithm>
#include <cmath>

namespace foretrace::transfer {
namespace {

constexpr double kInBand = 0.82;  // of rows that a band shall hold
constexpr double kWorth = 1e-4;   // of the loss: less is no gain

using Loss = std::function<double(std::vector<double>&)>;

/// Each value a step up or down, where that helps.
bool improve(std::vector<double>& best, double& least, double step, const Loss& loss) {
  bool helps = false;
  for (std::size_t i = 0; i < best.size(); ++i) {
    for (const double factor : {1 + step, 1 / (1 + step)}) {
      std::vector<double> next = best;
      next[i] *= factor;
      const double now = loss(next);
      if (now >= least - kWorth) continue;
      least = now;
      best = std::move(next);
      helps = true;
      break;
    }
  }
  return helps;
}

}  // namespace

double quantile(std::vector<double>& values, double share) {
  std::ranges::sort(values);
  const double at = share * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

double loss_of(std::vector<double>& errors) {
  constexpr double kCut = 0.7, kTail = 0.3;
  double mean = 0;
  for (double& error : errors) {
    error = std::abs(error);
    mean += std::min(error, kCut);
  }
  return mean / static_cast<double>(errors.size()) + kTail * quantile(errors, 0.9);
}

Machine where_searches_begin() {
  Machine machine = load_machine("1xH200-SXM");
  read_over(machine, "kinds", "search_begins");
  return machine;
}

std::vector<double> search(std::vector<double> begin, const Loss& loss, int most_turns) {
  constexpr double kFirst = 0.4, kLast = 0.02;
  std::vector<double> best = std::move(begin);
  double least = loss(best);
  int turns = 0;
  for (double step = kFirst; step >= kLast && turns < most_turns; ++turns) {
    const std::vector<double> before = best;
    if (!improve(best, least, step, loss)) {
      step /= 2;
      continue;
    }
    std::vector<double> further = best;
    for (std::size_t i = 0; i < best.size(); ++i) further[i] *= best[i] / before[i];
    double then = loss(further);
    improve(further, then, step, loss);
    if (then >= least - kWorth) continue;
    least = then;
    best = std::move(further);
  }
  return best;
}

double band_of(const std::vector<Errors>& all, const std::string& precision,
               const std::string& but) {
  std::vector<double> off;
  for (const Errors& one : all) {
    if (one.precision != precision || one.errors.size() < kEnough || one.gpu == but) continue;
    for (const double error : one.errors) off.push_back(std::abs(error));
  }
  return off.empty() ? 0 : std::exp(quantile(off, kInBand)) - 1;
}

Judged judged_of(const Errors& one, double band) {
  Judged judged{.gpu = one.gpu,
                .precision = one.precision,
                .rows = one.errors.size(),
                .band = band,
                .too_few = one.errors.size() < kEnough,
                .own_median = {}};
  std::vector<double> off, with_sign;
  std::size_t in_band = 0;
  for (const double error : one.errors) {
    with_sign.push_back(std::expm1(error));
    off.push_back(std::abs(with_sign.back()));
    if (std::abs(error) <= std::log1p(band)) ++in_band;
  }
  judged.median = quantile(off, 0.5);
  judged.p90 = quantile(off, 0.9);
  judged.bias = quantile(with_sign, 0.5);
  judged.in_band = static_cast<double>(in_band) / static_cast<double>(off.size());
  return judged;
}

}  // namespace foretrace::transfer
