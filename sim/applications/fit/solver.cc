#include "sim/applications/fit/solver.h"

#include <algorithm>
#include <cmath>

namespace foretrace {
namespace {

constexpr double kPriorWeight = 1 / (kPriorSigma * kPriorSigma);
constexpr double kLargestStep = 0.7;

Eigen::MatrixXd normal_matrix(const Eigen::MatrixXd& jacobian, const Eigen::VectorXd& weight) {
  Eigen::MatrixXd normal = jacobian.transpose() * weight.asDiagonal() * jacobian;
  normal.diagonal().array() += kPriorWeight;
  return normal;
}

Eigen::MatrixXd without(const Eigen::MatrixXd& matrix, const std::vector<Eigen::Index>& kept) {
  Eigen::MatrixXd result{matrix.rows(), static_cast<Eigen::Index>(kept.size())};
  for (std::size_t i = 0; i < kept.size(); ++i) {
    result.col(static_cast<Eigen::Index>(i)) = matrix.col(kept[i]);
  }
  return result;
}

}  // namespace

Eigen::VectorXd robust_weights(const Eigen::VectorXd& residual, const Eigen::VectorXd& spread) {
  Eigen::VectorXd weight{residual.size()};
  for (Eigen::Index i = 0; i < residual.size(); ++i) {
    const double scaled = std::abs(residual[i]) / spread[i];
    weight[i] = (scaled > kHuber ? kHuber / scaled : 1) / (spread[i] * spread[i]);
  }
  return weight;
}

double robust_cost(const Eigen::VectorXd& residual, const Eigen::VectorXd& spread,
                   const Eigen::VectorXd& from_prior) {
  double sum = from_prior.squaredNorm() * kPriorWeight;
  for (Eigen::Index i = 0; i < residual.size(); ++i) {
    const double x = std::abs(residual[i]) / spread[i];
    sum += x > kHuber ? kHuber * (2 * x - kHuber) : x * x;
  }
  return sum;
}

Eigen::VectorXd damped_step(const Eigen::MatrixXd& jacobian, const Eigen::VectorXd& weight,
                            const Eigen::VectorXd& residual, const Eigen::VectorXd& from_prior,
                            double damping) {
  Eigen::MatrixXd normal = normal_matrix(jacobian, weight);
  normal.diagonal() *= 1 + damping;
  const Eigen::VectorXd gradient =
      jacobian.transpose() * weight.asDiagonal() * residual + from_prior * kPriorWeight;
  return normal.ldlt().solve(gradient).cwiseMax(-kLargestStep).cwiseMin(kLargestStep);
}

Eigen::MatrixXd covariance(const Eigen::MatrixXd& jacobian, const Eigen::VectorXd& weight,
                           const Eigen::VectorXd& residual, const Eigen::VectorXd& spread) {
  const Eigen::Index params = jacobian.cols();
  const Eigen::MatrixXd inverse =
      normal_matrix(jacobian, weight).ldlt().solve(Eigen::MatrixXd::Identity(params, params));
  const Eigen::ArrayXd variance = residual.array().square() + spread.array().square();
  const Eigen::VectorXd inner = weight.array().square() * variance;
  return inverse * normal_matrix(jacobian, inner) * inverse;
}

void correct_jacobian(Eigen::MatrixXd& jacobian, const Eigen::VectorXd& step,
                      const Eigen::VectorXd& change) {
  for (Eigen::Index row = 0; row < jacobian.rows(); ++row) {
    const Eigen::VectorXd mine = (jacobian.row(row).transpose().array() != 0)
                                     .select(step, Eigen::VectorXd::Zero(step.size()));
    const double length = mine.squaredNorm();
    if (length < 1e-8) continue;
    const double missed = change[row] - jacobian.row(row).dot(step);
    jacobian.row(row) += (missed / length) * mine.transpose();
  }
}

void drop_column(Eigen::MatrixXd& matrix, Eigen::Index column) {
  const Eigen::Index right = matrix.cols() - column - 1;
  const Eigen::MatrixXd tail = matrix.rightCols(right);
  matrix.middleCols(column, right) = tail;
  matrix.conservativeResize(Eigen::NoChange, matrix.cols() - 1);
}

std::vector<Eigen::Index> undetermined_columns(const Eigen::MatrixXd& jacobian,
                                               const Eigen::VectorXd& weight,
                                               const Eigen::VectorXd& residual,
                                               const Eigen::VectorXd& spread) {
  std::vector<Eigen::Index> kept;
  for (Eigen::Index i = 0; i < jacobian.cols(); ++i) kept.push_back(i);
  std::vector<Eigen::Index> given_up;
  while (!kept.empty()) {
    const Eigen::VectorXd variance =
        covariance(without(jacobian, kept), weight, residual, spread).diagonal();
    Eigen::Index worst = 0;
    if (std::sqrt(variance.maxCoeff(&worst)) <= kPriorSigma / 2) break;
    given_up.push_back(kept[static_cast<std::size_t>(worst)]);
    kept.erase(kept.begin() + worst);
  }
  return given_up;
}

}  // namespace foretrace
