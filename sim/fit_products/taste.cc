#include "sim/fit_products/taste.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

namespace foretrace::fit_products {
namespace {

constexpr Eigen::Index kWeights = products::kTraits;
/// Squares of what is liked cost this much: a tile that was chosen once is hardly liked.
constexpr double kTileRidge = 0.1;
constexpr double kWeightRidge = 1e-3;

/// One product: what it could get, and what it got.
struct Decision {
  Eigen::MatrixXd known;  ///< a row for each plan: its traits
  std::vector<Eigen::Index> tile;
  Eigen::Index chosen{};
};

bool alike(const products::Plan& one, const products::Plan& other) {
  if ((one.split > 1) != (other.split > 1) || one.inside != other.inside) return false;
  const auto ratio = static_cast<double>(one.split) / static_cast<double>(other.split);
  return std::abs(std::log(ratio)) < 0.2;
}

double apart(const products::Plan& one, const products::Plan& other) {
  return std::abs(std::log(static_cast<double>(one.split) / static_cast<double>(other.split)));
}

std::optional<Decision> decision(const Row& row, const products::Speeds& speeds,
                                 const products::Taste& taste) {
  const products::Tile* const tile = tile_of(taste, *row.plan);
  if (tile == nullptr) return std::nullopt;
  const auto plans = plans_for(row.shape, speeds, taste);
  Decision decision;
  decision.chosen = -1;
  decision.known.resize(static_cast<Eigen::Index>(plans.size()), kWeights);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const products::Traits traits = products::traits(row.shape, plans[i], speeds);
    const auto at = static_cast<Eigen::Index>(i);
    decision.known.row(at) = Eigen::Map<const Eigen::RowVectorXd>(traits.data(), kWeights);
    const products::Tile* const mine = tile_of(taste, plans[i]);
    decision.tile.push_back(mine - taste.tiles.data());
    if (mine != tile || !alike(plans[i], *row.plan)) continue;
    const auto chosen = static_cast<std::size_t>(decision.chosen);
    if (decision.chosen < 0 || apart(plans[i], *row.plan) < apart(plans[chosen], *row.plan)) {
      decision.chosen = at;
    }
  }
  if (decision.chosen < 0) return std::nullopt;
  return decision;
}

/// Adds what one decision says to gradient and Hessian; returns minus the logarithm of its chance.
double add(const Decision& decision, const Eigen::VectorXd& values, Eigen::VectorXd& gradient,
           Eigen::MatrixXd& hessian) {
  const Eigen::Index plans = decision.known.rows();
  Eigen::VectorXd chance = decision.known * values.head(kWeights);
  for (Eigen::Index i = 0; i < plans; ++i) {
    chance[i] += values[kWeights + decision.tile[static_cast<std::size_t>(i)]];
  }
  chance = (chance.array() - chance.maxCoeff()).exp();
  chance /= chance.sum();
  Eigen::MatrixXd features = Eigen::MatrixXd::Zero(plans, values.size());
  features.leftCols(kWeights) = decision.known;
  for (Eigen::Index i = 0; i < plans; ++i) {
    features(i, kWeights + decision.tile[static_cast<std::size_t>(i)]) = 1;
  }
  const Eigen::VectorXd mean = features.transpose() * chance;
  gradient += mean - features.row(decision.chosen).transpose();
  const Eigen::MatrixXd centred = features.rowwise() - mean.transpose();
  hessian += centred.transpose() * chance.asDiagonal() * centred;
  return -std::log(std::max(1e-300, chance[decision.chosen]));
}

double loss(const std::vector<Decision>& decisions, const Eigen::VectorXd& values,
            Eigen::VectorXd& gradient, Eigen::MatrixXd& hessian) {
  Eigen::VectorXd ridge = Eigen::VectorXd::Constant(values.size(), 2 * kTileRidge);
  ridge.head(kWeights).setConstant(2 * kWeightRidge);
  gradient = ridge.cwiseProduct(values);
  hessian = ridge.asDiagonal();
  double sum = 0.5 * values.dot(gradient);
  for (const Decision& each : decisions) sum += add(each, values, gradient, hessian);
  return sum;
}

}  // namespace

products::Taste fit_taste(const Machine& machine, products::Family family,
                          const products::Taste& taste, const std::vector<Row>& rows) {
  Reading read{machine};
  const products::Speeds speeds = read_speeds(read, family);
  std::vector<Decision> decisions;
  for (const Row& row : rows) {  // both contents get the same kernel: once is enough
    if (!row.plan || row.contents != products::Contents::Zeros) continue;
    if (family_of(row.shape) != family) continue;
    if (!is_known(row.shape, {{family, taste}})) continue;
    if (auto known = decision(row, speeds, taste)) decisions.push_back(std::move(*known));
  }
  Eigen::VectorXd values = Eigen::VectorXd::Zero(kWeights + std::ssize(taste.tiles));
  values[0] = 20;
  Eigen::VectorXd gradient;
  Eigen::MatrixXd hessian;
  double best = loss(decisions, values, gradient, hessian);
  constexpr int kMostSteps = 40;
  for (int step = 0; step < kMostSteps; ++step) {
    const Eigen::VectorXd direction = hessian.ldlt().solve(gradient);
    double length = 1;
    const double before = best;
    const Eigen::VectorXd from = values;
    do {
      values = from - length * direction;
      best = loss(decisions, values, gradient, hessian);
      length /= 2;
    } while (best > before && length > 1e-4);
    if (before - best < 1e-4) break;
  }
  products::Taste result = taste;
  std::copy_n(values.data(), products::kTraits, result.weights.begin());
  for (std::size_t i = 0; i < result.tiles.size(); ++i) {
    result.tiles[i].liked = values[kWeights + static_cast<Eigen::Index>(i)];
  }
  return result;
}

products::Taste recorded_tiles(products::Family family, const std::vector<Row>& rows) {
  products::Taste taste{.tiles = {}, .weights = {}};
  for (const Row& row : rows) {
    if (!row.plan || family_of(row.shape) != family || tile_of(taste, *row.plan) != nullptr) {
      continue;
    }
    taste.tiles.push_back({.m = row.plan->tile_m,
                           .n = row.plan->tile_n,
                           .cooperative = row.plan->cooperative,
                           .liked = 0,
                           .resident = row.plan->resident,
                           .padded = row.plan->padded});
  }
  std::ranges::sort(taste.tiles, {}, [](const products::Tile& tile) {
    return std::tuple{tile.padded, tile.m, tile.n, tile.resident};
  });
  return taste;
}

}  // namespace foretrace::fit_products
