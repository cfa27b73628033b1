#include "sim/applications/fit_products/residual.h"

#include <algorithm>
#include <cmath>
#include <future>
#include <numeric>
#include <random>

#include "reports/timeline/statistics.h"
#include "sim/applications/fit_products/kernel_plan.h"
#include "sim/applications/fit_products/network_fit.h"

namespace foretrace::fit_products {
namespace {

using products::Family;
using products::kResidualTraits;
using products::Network;

constexpr std::size_t kNetworks = 3;
constexpr std::size_t kLossFirst = 64, kLossSecond = 32;
constexpr int kLossEpochs = 60;
constexpr std::size_t kLossBatch = 256;
constexpr double kLossRate = 4e-3;
constexpr double kDecay = 0.05;
constexpr float kSpread = 0.06F;  // errors beyond it count linearly
constexpr float kMostLoss = 0.5F;

struct Kind {
  std::string name;
  std::vector<Family> families;
};

struct Lessons {
  Matrix in;
  Eigen::VectorXf residual;
};

/// What the GPU's file says too fast or too slow as a whole is the file's, not the kernels': the
/// median of the rows whose start does not decide.
void centre(std::vector<float>& residuals, const std::vector<double>& seconds, std::size_t from) {
  constexpr double kLong = 25e-6;
  std::vector<float> of_long;
  for (std::size_t i = from; i < residuals.size(); ++i) {
    if (seconds[i] >= kLong) of_long.push_back(residuals[i]);
  }
  if (of_long.empty()) return;
  std::ranges::nth_element(of_long, of_long.begin() + std::ssize(of_long) / 2);
  const float median = of_long[of_long.size() / 2];
  for (std::size_t i = from; i < residuals.size(); ++i) residuals[i] -= median;
}

/// The rows of one kind of kernel whose plan is recorded, and what their times are beside the
/// formula's at the clock that was measured with them.
Lessons lessons_of(const Kind& kind, const std::vector<Timed>& timed, bool judges) {
  std::vector<products::ResidualTraits> traits;
  std::vector<float> residuals;
  std::vector<double> seconds;
  for (const Timed& gpu : timed) {
    const std::size_t from = residuals.size();
    Reading read{gpu.machine};
    const double rested = rested_clock(gpu.rows);
    for (const Row& row : gpu.rows) {
      const Family family = family_of(row.shape);
      if (row.judges != judges || !row.plan || row.sustained_clock <= 0 || row.shape.cached < 1 ||
          std::ranges::count(kind.families, family) == 0) {
        continue;
      }
      const products::Speeds speeds = read_speeds(read, family);
      products::Plan plan = *row.plan;
      const products::Tile* const tile = tile_of(products::recorded_heuristics().at(family), plan);
      if (tile != nullptr) plan.slow = tile->slow;
      // What a quick table's clocks differ by is mostly their reading.
      constexpr double kSame = 0.96;
      const double share = row.sustained_clock / rested;
      const double clock = row.quick && share > kSame ? 1 : share;
      const double formula = time_of(row.shape, plan, speeds, clock, row.in_graph).total;
      const double measured = row.sustained - gap(read, row);
      if (measured <= 0) continue;
      traits.push_back(products::residual_traits(row.shape, plan, speeds));
      residuals.push_back(
          std::clamp(static_cast<float>(std::log(measured / formula)), -kMostLoss, kMostLoss));
      seconds.push_back(measured);
    }
    centre(residuals, seconds, from);
  }
  Lessons lessons{Matrix{std::ssize(traits), static_cast<Eigen::Index>(kResidualTraits)},
                  Eigen::VectorXf{std::ssize(residuals)}};
  for (std::size_t i = 0; i < traits.size(); ++i) {
    const auto at = static_cast<Eigen::Index>(i);
    lessons.in.row(at) = Eigen::Map<const Eigen::RowVectorXf>(traits[i].data(), kResidualTraits);
    lessons.residual[at] = residuals[i];
  }
  return lessons;
}

Network trained(const Lessons& lessons, std::uint32_t seed) {
  std::mt19937 random{seed};
  Network network =
      new_network(kLossFirst, kLossSecond, Network::Unit::Rectified, lessons.in, random);
  for (Eigen::Index i = 0; i < lessons.in.cols(); ++i) {
    network.least.push_back(lessons.in.col(i).minCoeff());
    network.most.push_back(lessons.in.col(i).maxCoeff());
  }
  const Matrix in = scaled(network, lessons.in);
  std::vector<Eigen::Index> order(static_cast<std::size_t>(in.rows()));
  std::iota(order.begin(), order.end(), 0);
  const std::size_t each = (order.size() + kLossBatch - 1) / kLossBatch;
  Adam adam{network.size(), each * kLossEpochs, kLossRate, kDecay};
  for (int epoch = 0; epoch < kLossEpochs; ++epoch) {
    std::ranges::shuffle(order, random);
    for (std::size_t i = 0; i < order.size(); i += kLossBatch) {
      const auto size = static_cast<Eigen::Index>(std::min(kLossBatch, order.size() - i));
      Matrix batch{size, in.cols()};
      Eigen::VectorXf wanted{size};
      for (Eigen::Index j = 0; j < size; ++j) {
        const Eigen::Index from = order[i + static_cast<std::size_t>(j)];
        batch.row(j) = in.row(from);
        wanted[j] = lessons.residual[from];
      }
      const Pass pass{network, batch};
      const Eigen::VectorXf error =
          ((pass.values() - wanted) / kSpread).cwiseMax(-1).cwiseMin(1) / static_cast<float>(size);
      adam.step(network.weights, pass.gradient(error));
    }
  }
  return network;
}

LearnedResiduals learned(const Kind& kind, const std::vector<Timed>& timed) {
  const Lessons lessons = lessons_of(kind, timed, false);
  const Lessons judges = lessons_of(kind, timed, true);
  LearnedResiduals result{.name = kind.name,
                          .residual = products::recorded_residual(kind.families.front())};
  result.residual.networks.clear();
  result.learned_from = static_cast<std::size_t>(lessons.residual.size());
  result.judged = static_cast<std::size_t>(judges.residual.size());
  if (result.learned_from == 0) return result;
  for (std::uint32_t seed = 1; seed <= kNetworks; ++seed) {
    result.residual.networks.push_back(trained(lessons, seed));
  }
  std::vector<double> before;
  std::vector<double> after;
  for (Eigen::Index i = 0; i < judges.residual.size(); ++i) {
    products::ResidualTraits traits{};
    Eigen::Map<Eigen::RowVectorXf>(traits.data(), kResidualTraits) = judges.in.row(i);
    const auto residual = static_cast<double>(judges.residual[i]);
    before.push_back(std::abs(residual));
    after.push_back(std::abs(residual - products::residual_of(traits, result.residual.networks)));
  }
  if (before.empty()) return result;
  constexpr double kMany = 0.9;
  result.before = median(before);
  result.before_90 = quantile(before, kMany);
  result.after = median(after);
  result.after_90 = quantile(after, kMany);
  return result;
}

}  // namespace

std::vector<LearnedResiduals> learn_residuals(const std::vector<Timed>& timed) {
  const std::vector<Kind> kinds{{"half", {Family::Half}},
                                {"half_pairs", {Family::HalfPairs}},
                                {"odd", {Family::HalfOdd, Family::Bf16Odd}},
                                {"float32", {Family::Float32}}};
  std::vector<std::future<LearnedResiduals>> all;
  for (const Kind& kind : kinds) {
    all.push_back(std::async(std::launch::async, [&] { return learned(kind, timed); }));
  }
  std::vector<LearnedResiduals> results;
  for (auto& one : all) results.push_back(one.get());
  return results;
}

}  // namespace foretrace::fit_products
