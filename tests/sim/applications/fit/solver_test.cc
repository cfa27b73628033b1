// The arithmetic of the fit, on systems small enough to follow by hand.
#include "sim/applications/fit/solver.h"

#include <gmock/gmock.h>

#include <cmath>

namespace foretrace::test {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using testing::ElementsAre;
using testing::IsEmpty;

VectorXd vector_of(std::initializer_list<double> values) {
  VectorXd result{static_cast<Eigen::Index>(values.size())};
  Eigen::Index at = 0;
  for (const double value : values) result[at++] = value;
  return result;
}

TEST(FitSolver, WeighsByTheSpreadAndOutliersLess) {
  const VectorXd weight = robust_weights(vector_of({0.01, 0.04}), vector_of({0.01, 0.01}));
  EXPECT_DOUBLE_EQ(weight[0], 1e4);
  EXPECT_DOUBLE_EQ(weight[1], 0.5e4) << "four spreads away: 2 / 4 of the weight";
}

TEST(FitSolver, CountsSmallResidualsQuadraticallyAndLargeOnesLinearly) {
  const auto cost = [](double residual) {
    return robust_cost(vector_of({residual}), vector_of({1}), vector_of({0}));
  };
  EXPECT_DOUBLE_EQ(cost(1), 1);
  EXPECT_DOUBLE_EQ(cost(2), 4);
  EXPECT_DOUBLE_EQ(cost(4) - cost(3), cost(9) - cost(8)) << "linear beyond two spreads";
  EXPECT_DOUBLE_EQ(robust_cost(vector_of({0}), vector_of({1}), vector_of({kPriorSigma})), 1);
}

TEST(FitSolver, AStepUndoesTheResidualOfALinearModel) {
  // residual = J * (x - x0) with x - x0 = (0.1, -0.2); tight spreads, so the prior hardly counts.
  MatrixXd jacobian{3, 2};
  jacobian << 1, 0, 0, 1, 1, 1;
  const VectorXd residual = jacobian * vector_of({0.1, -0.2});
  const VectorXd weight = VectorXd::Constant(3, 1e6);
  const VectorXd step = damped_step(jacobian, weight, residual, vector_of({0, 0}), 0);
  EXPECT_NEAR(step[0], 0.1, 1e-6);
  EXPECT_NEAR(step[1], -0.2, 1e-6);
  const VectorXd far = damped_step(jacobian, weight, 100 * residual, vector_of({0, 0}), 0);
  EXPECT_DOUBLE_EQ(far[0], 0.7) << "never more than a factor of two";
}

TEST(FitSolver, ResidualsLargerThanTheSpreadsWidenTheCovariance) {
  const MatrixXd jacobian = MatrixXd::Ones(4, 1);
  const VectorXd spread = VectorXd::Constant(4, 0.01);
  const VectorXd exact = VectorXd::Zero(4);
  const VectorXd off = vector_of({0.1, -0.1, 0.1, -0.1});
  // Exact: four measurements of 1 %, mean of 0.5 %.
  EXPECT_NEAR(std::sqrt(covariance(jacobian, robust_weights(exact, spread), exact, spread)(0, 0)),
              0.005, 1e-4);
  // Off by 10 % each: sqrt(4 * 0.1^2) / 4 = 5 %.
  EXPECT_NEAR(std::sqrt(covariance(jacobian, robust_weights(off, spread), off, spread)(0, 0)), 0.05,
              1e-3);
}

TEST(FitSolver, WithoutDataTheCovarianceIsThePriors) {
  const MatrixXd jacobian = MatrixXd::Zero(2, 1);
  const VectorXd ones = VectorXd::Ones(2);
  EXPECT_NEAR(covariance(jacobian, ones, ones, ones)(0, 0), kPriorSigma * kPriorSigma, 1e-9);
}

TEST(FitSolver, CorrectsTheJacobianInItsNonZeroPlacesOnly) {
  MatrixXd jacobian{2, 2};
  jacobian << 1, 0, 1, 1;
  // The first row moved by 2 where 1 was predicted; the second as predicted.
  correct_jacobian(jacobian, vector_of({1, 0.5}), vector_of({2, 1.5}));
  EXPECT_DOUBLE_EQ(jacobian(0, 0), 2);
  EXPECT_DOUBLE_EQ(jacobian(0, 1), 0);
  EXPECT_DOUBLE_EQ(jacobian(1, 0), 1);
  EXPECT_DOUBLE_EQ(jacobian(1, 1), 1);
}

TEST(FitSolver, GivesUpOneOfTwoColumnsThatOnlyTogetherMatter) {
  MatrixXd jacobian{3, 3};
  jacobian << 0.5, 0.5, 0, 0.5, 0.5, 0, 0, 0, 1;
  const VectorXd spread = VectorXd::Constant(3, 0.01);
  const VectorXd residual = VectorXd::Zero(3);
  const auto columns =
      undetermined_columns(jacobian, robust_weights(residual, spread), residual, spread);
  ASSERT_EQ(columns.size(), 1U);
  EXPECT_LT(columns[0], 2);
}

TEST(FitSolver, GivesUpWhatIsHardlyMeasuredAndKeepsTheRest) {
  MatrixXd jacobian{2, 2};
  jacobian << 1, 0, 0, 0.001;  // 1 % of a time that is 0.1 % of the region
  const VectorXd spread = VectorXd::Constant(2, 0.01);
  const VectorXd residual = VectorXd::Zero(2);
  const VectorXd weight = robust_weights(residual, spread);
  EXPECT_THAT(undetermined_columns(jacobian, weight, residual, spread), ElementsAre(1));
  jacobian(1, 1) = 0.1;
  EXPECT_THAT(undetermined_columns(jacobian, weight, residual, spread), IsEmpty());
}

}  // namespace
}  // namespace foretrace::test
