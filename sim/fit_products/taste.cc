#include "sim/fit_products/taste.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <optional>

namespace foretrace::fit_products {
namespace {

constexpr Eigen::Index kWeights = 5;
/// Squares of what is liked cost this much: a tile that was chosen once is hardly liked.
constexpr double kTileRidge = 0.1;
constexpr double kWeightRidge = 1e-3;

/// One product: what it could get, and what it got.
struct Decision {
  Eigen::MatrixXd known;  ///< a row for each plan: the five weighted numbers
  std::vector<Eigen::Index> tile;
  Eigen::Index chosen{};
};

bool alike(const products::Plan& one, const products::Plan& other) {
  if (one.tile_m != other.tile_m || one.tile_n != other.tile_n) return false;
  if ((one.split > 1) != (other.split > 1)) return false;
  const auto ratio = static_cast<double>(one.split) / static_cast<double>(other.split);
  return std::abs(std::log(ratio)) < 0.2;
}

std::optional<Decision> decision(const Row& row, const products::Speeds& speeds,
                                 const products::Taste& taste) {
  const auto plans = plans_for(row.shape, products::Family::Half, speeds, taste);
  const auto chosen =
      std::ranges::find_if(plans, [&](const auto& plan) { return alike(plan, *row.plan); });
  if (chosen == plans.end()) return std::nullopt;
  Decision decision;
  decision.chosen = chosen - plans.begin();
  decision.known.resize(static_cast<Eigen::Index>(plans.size()), kWeights);
  const double tall = std::log(static_cast<double>(row.shape.m) / static_cast<double>(row.shape.n));
  for (const products::Plan& plan : plans) {
    const products::Times times = time_of(row.shape, plan, speeds);
    const double tile_tall =
        std::log(static_cast<double>(plan.tile_m) / static_cast<double>(plan.tile_n));
    decision.known.row(static_cast<Eigen::Index>(decision.tile.size())) << -std::log(times.total),
        -std::log(static_cast<double>(times.waves)), plan.split > 1 ? 1.0 : 0.0,
        std::log(static_cast<double>(plan.split)), tile_tall * tall;
    const auto tile = std::ranges::find_if(taste.tiles, [&](const products::Tile& known) {
      return known.m == plan.tile_m && known.n == plan.tile_n;
    });
    decision.tile.push_back(tile - taste.tiles.begin());
  }
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

products::Taste fit_taste(const Machine& machine, const products::Taste& taste,
                          const std::vector<Row>& rows) {
  Reading read{machine};
  const products::Speeds speeds = read_speeds(read, products::Family::Half);
  std::vector<Decision> decisions;
  for (const Row& row : rows) {  // both contents get the same kernel: once is enough
    if (!row.plan || row.contents != products::Contents::Zeros) continue;
    if (family_of(row.shape) != products::Family::Half) continue;
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
  result.weights = {values[0], values[1], values[2], values[3], values[4]};
  for (std::size_t i = 0; i < result.tiles.size(); ++i) {
    result.tiles[i].liked = values[kWeights + static_cast<Eigen::Index>(i)];
  }
  return result;
}

}  // namespace foretrace::fit_products
