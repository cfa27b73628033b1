#include "sim/fit.h"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>

#include "reports/compare.h"
#include "sim/children.h"
#include "sim/simulate.h"

namespace foretrace {
namespace {

constexpr double kStep = 0.02;              ///< of a parameter, for the Jacobian
constexpr double kLeastSpread = 0.01;       ///< no region is trusted more than this
constexpr double kPriorSigma = 1.5;         ///< of log(parameter): a factor of 4 either way
constexpr double kDeterminedColumn = 1e-3;  ///< d log(time) / d log(parameter) below: no influence
constexpr int kIterations = 12;
constexpr double kHuber = 2.0;  ///< residuals beyond this many spreads count linearly

struct Target {
  std::string scenario, region;
  double measured_ns, spread;
};

std::vector<Target> targets_of(const CalibrationRun& run) {
  std::vector<Target> targets;
  for (const RegionRow& row : compare_regions(run.measured, run.measured, 1)) {
    const RegionFigure& figure = *row.second;
    const double spread = (figure.p95_ns - figure.p5_ns) / 2 / figure.median_ns;
    targets.push_back(
        {run.program.name, row.name, figure.median_ns, std::max(spread, kLeastSpread)});
  }
  return targets;
}

/// Predicted times in the order of targets_of; NaN where the prediction has none.
std::vector<double> predict(const CalibrationRun& run, const Machine& machine) {
  std::vector<double> times;
  for (const RegionRow& row : compare_regions(simulate(run.program, machine), run.measured, 1)) {
    if (!row.second) continue;
    times.push_back(row.first ? row.first->median_ns : std::numeric_limits<double>::quiet_NaN());
  }
  return times;
}

class Fit {
 public:
  Fit(const std::vector<CalibrationRun>& runs, const Machine& start)
      : runs_{runs}, machine_{start} {
    for (const CalibrationRun& run : runs) {
      const auto targets = targets_of(run);
      targets_.insert(targets_.end(), targets.begin(), targets.end());
    }
    for (std::size_t i = 0; i < kParamCount; ++i) {
      const auto param = static_cast<Param>(i);
      if (!machine_.has(param) || machine_.get(param).value <= 0) continue;
      const ParameterClass source = machine_.get(param).source;
      const bool open = source == ParameterClass::Fit || source == ParameterClass::Assumed;
      if (open && info(param).unit != ParamUnit::Count) params_.push_back(param);
    }
  }

  FitResult run(const std::string& from) {
    drop_undetermined();
    const Eigen::VectorXd prior = logs();
    double damping = 1e-2;
    Eigen::VectorXd residual = residuals({machine_}).front();
    for (int iteration = 0; iteration < kIterations; ++iteration) {
      const Eigen::MatrixXd jacobian = jacobian_at(residual);
      const Eigen::VectorXd weight = weights(residual);
      const Eigen::VectorXd here = logs();
      normal_ = jacobian.transpose() * weight.asDiagonal() * jacobian;
      normal_.diagonal().array() += 1 / (kPriorSigma * kPriorSigma);
      const Eigen::VectorXd gradient = jacobian.transpose() * weight.asDiagonal() * residual +
                                       (here - prior) / (kPriorSigma * kPriorSigma);
      Eigen::MatrixXd damped = normal_;
      damped.diagonal() *= 1 + damping;
      const Eigen::VectorXd step = damped.ldlt().solve(gradient).cwiseMax(-0.7).cwiseMin(0.7);
      const Machine candidate = with(here - step);
      const Eigen::VectorXd next = residuals({candidate}).front();
      if (cost(next) < cost(residual)) {
        const bool done = cost(residual) - cost(next) < 1e-4 * cost(residual);
        machine_ = candidate;
        residual = next;
        damping = std::max(damping / 5, 1e-6);
        if (done) break;
      } else {
        damping *= 10;
        if (damping > 1e6) break;
      }
    }
    return result(residual, from);
  }

 private:
  std::vector<Eigen::VectorXd> residuals(const std::vector<Machine>& machines) const {
    std::vector<Job> jobs;
    for (const Machine& machine : machines) {
      for (const CalibrationRun& run : runs_) {
        jobs.push_back([&run, machine] { return predict(run, machine); });
      }
    }
    const auto times = run_in_children(jobs);
    std::vector<Eigen::VectorXd> all;
    for (std::size_t m = 0; m < machines.size(); ++m) {
      Eigen::VectorXd residual{static_cast<Eigen::Index>(targets_.size())};
      Eigen::Index at = 0;
      for (std::size_t r = 0; r < runs_.size(); ++r) {
        for (const double ns : times[m * runs_.size() + r]) {
          const Target& target = targets_[static_cast<std::size_t>(at)];
          residual[at++] = std::isnan(ns) || ns <= 0 ? 0 : std::log(ns / target.measured_ns);
        }
      }
      all.push_back(std::move(residual));
    }
    return all;
  }

  Eigen::VectorXd logs() const {
    Eigen::VectorXd values{static_cast<Eigen::Index>(params_.size())};
    for (std::size_t i = 0; i < params_.size(); ++i) {
      values[static_cast<Eigen::Index>(i)] = std::log(machine_.get(params_[i]).value);
    }
    return values;
  }

  Machine with(const Eigen::VectorXd& values) const {
    Machine machine = machine_;
    for (std::size_t i = 0; i < params_.size(); ++i) {
      ParamValue value = machine.get(params_[i]);
      value.value = std::exp(values[static_cast<Eigen::Index>(i)]);
      machine.set(params_[i], std::move(value));
    }
    return machine;
  }

  Eigen::MatrixXd jacobian_at(const Eigen::VectorXd& residual) const {
    std::vector<Machine> machines;
    for (const Param param : params_) {
      ParamValue value = machine_.get(param);
      value.value *= 1 + kStep;
      machines.push_back(machine_);
      machines.back().set(param, std::move(value));
    }
    const auto moved = residuals(machines);
    Eigen::MatrixXd jacobian{residual.size(), static_cast<Eigen::Index>(params_.size())};
    for (std::size_t i = 0; i < moved.size(); ++i) {
      jacobian.col(static_cast<Eigen::Index>(i)) = (moved[i] - residual) / std::log1p(kStep);
    }
    return jacobian;
  }

  /// A parameter that no measured region depends on cannot be fitted.
  void drop_undetermined() {
    const Eigen::MatrixXd jacobian = jacobian_at(residuals({machine_}).front());
    std::vector<Param> kept;
    for (std::size_t i = 0; i < params_.size(); ++i) {
      const double most = jacobian.col(static_cast<Eigen::Index>(i)).cwiseAbs().maxCoeff();
      (most > kDeterminedColumn ? kept : undetermined_).push_back(params_[i]);
    }
    params_ = std::move(kept);
  }

  Eigen::VectorXd weights(const Eigen::VectorXd& residual) const {
    Eigen::VectorXd weight{residual.size()};
    for (Eigen::Index i = 0; i < residual.size(); ++i) {
      const double sigma = targets_[static_cast<std::size_t>(i)].spread;
      const double scaled = std::abs(residual[i]) / sigma;
      weight[i] = (scaled > kHuber ? kHuber / scaled : 1) / (sigma * sigma);
    }
    return weight;
  }

  double cost(const Eigen::VectorXd& residual) const {
    double sum = 0;
    for (Eigen::Index i = 0; i < residual.size(); ++i) {
      const double x = std::abs(residual[i]) / targets_[static_cast<std::size_t>(i)].spread;
      sum += x > kHuber ? kHuber * (2 * x - kHuber) : x * x;
    }
    return sum;
  }

  FitResult result(const Eigen::VectorXd& residual, const std::string& from) {
    FitResult result{machine_, params_, undetermined_, {}};
    const double freedom =
        std::max(1.0, static_cast<double>(residual.size()) - static_cast<double>(params_.size()));
    const double scale = std::max(1.0, cost(residual) / freedom);
    const Eigen::MatrixXd covariance = normal_.inverse() * scale;
    for (std::size_t i = 0; i < params_.size(); ++i) {
      const auto at = static_cast<Eigen::Index>(i);
      ParamValue value = machine_.get(params_[i]);
      value.source = ParameterClass::Fit;
      value.from = from;
      value.spread = std::sqrt(std::max(0.0, covariance(at, at)));
      result.machine.set(params_[i], std::move(value));
    }
    result.machine.fit_scenarios.clear();
    for (const CalibrationRun& run : runs_)
      result.machine.fit_scenarios.push_back(run.program.name);
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      const Target& target = targets_[i];
      result.residuals.push_back(
          {target.scenario, target.region, target.measured_ns,
           target.measured_ns * std::exp(residual[static_cast<Eigen::Index>(i)]), target.spread});
    }
    return result;
  }

  const std::vector<CalibrationRun>& runs_;
  Machine machine_;
  std::vector<Target> targets_;
  std::vector<Param> params_;
  std::vector<Param> undetermined_;
  Eigen::MatrixXd normal_;
};

}  // namespace

FitResult fit(const std::vector<CalibrationRun>& runs, const Machine& start,
              const std::string& from) {
  return Fit{runs, start}.run(from);
}

}  // namespace foretrace
