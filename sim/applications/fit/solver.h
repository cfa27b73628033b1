// The arithmetic of a fit: robust weights, damped steps, covariance. Knows residuals and a
// Jacobian, no machine and no simulator.
#pragma once

#include <Eigen/Dense>
#include <vector>

namespace foretrace {

/// One sigma of log(parameter) before there are data: a factor of 4.5 either way.
inline constexpr double kPriorSigma = 1.5;
/// Residuals beyond this many spreads count linearly, not quadratically.
inline constexpr double kHuber = 2.0;

/// Of each residual: Huber's weight over its spread squared.
Eigen::VectorXd robust_weights(const Eigen::VectorXd& residual, const Eigen::VectorXd& spread);

/// What the fit makes small: Huber's loss of the residuals, and the distance from the prior.
double robust_cost(const Eigen::VectorXd& residual, const Eigen::VectorXd& spread,
                   const Eigen::VectorXd& from_prior);

/// The damped step to subtract from the log parameters; no component beyond 0.7 (a factor of 2).
Eigen::VectorXd damped_step(const Eigen::MatrixXd& jacobian, const Eigen::VectorXd& weight,
                            const Eigen::VectorXd& residual, const Eigen::VectorXd& from_prior,
                            double damping);

/// Of the log parameters. Not from the spreads alone: what the residuals really are counts too
/// (a sandwich estimate), since a model's error is often larger than the measurement's spread.
Eigen::MatrixXd covariance(const Eigen::MatrixXd& jacobian, const Eigen::VectorXd& weight,
                           const Eigen::VectorXd& residual, const Eigen::VectorXd& spread);

/// After a step the Jacobian's rows are corrected by what they failed to predict (Broyden), in
/// their non-zero places only (Schubert): a step's worth of change for no simulation.
void correct_jacobian(Eigen::MatrixXd& jacobian, const Eigen::VectorXd& step,
                      const Eigen::VectorXd& change);

/// The matrix without one of its columns.
void drop_column(Eigen::MatrixXd& matrix, Eigen::Index column);

/// Columns that the data cannot determine, in the order to give them up: again and again the one
/// with the largest sigma, while that is not at most half the prior's. Two columns that only
/// together matter lose one of them.
std::vector<Eigen::Index> undetermined_columns(const Eigen::MatrixXd& jacobian,
                                               const Eigen::VectorXd& weight,
                                               const Eigen::VectorXd& residual,
                                               const Eigen::VectorXd& spread);

}  // namespace foretrace
