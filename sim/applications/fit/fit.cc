#include "sim/applications/fit/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "scenarios/base/text/print.h"
#include "sim/applications/fit/machine.h"
#include "sim/applications/fit/predict.h"
#include "sim/applications/fit/solver.h"

namespace foretrace {
namespace {

constexpr double kStep = 0.02;              ///< of a parameter, for the Jacobian
constexpr double kDeterminedColumn = 1e-3;  ///< d log(time) / d log(parameter) below: no influence
constexpr int kIterations = 15;
constexpr double kConverged = 1e-3;  ///< relative change of the cost in a step: no more to gain
constexpr double kRough = 5e-3;      ///< the same, before it is settled which parameters stay
constexpr double kCorrelated = 0.95;
/// So many neighbours in the catalogue are changed at once to see whether any has an influence.
constexpr std::size_t kTogether = 8;

using Index = Eigen::Index;

class Fit {
 public:
  Fit(const FitData& data, const Machine& start, const std::vector<std::string>& only)
      : data_{data}, start_{start}, machine_{start} {
    for (std::size_t t = 0; t < data.targets.size(); ++t) {
      if (data.targets[t].standing != Standing::Fit) continue;
      const std::size_t run = data.targets[t].run;
      if (runs_.empty() || runs_.back() != run) {
        runs_.push_back(run);
        first_row_.push_back(static_cast<Index>(rows_.size()));
      }
      rows_.push_back(t);
    }
    first_row_.push_back(static_cast<Index>(rows_.size()));
    spread_.resize(static_cast<Index>(rows_.size()));
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const FitTarget& target = data.targets[rows_[i]];
      spread_[static_cast<Index>(i)] = std::hypot(target.spread, data.runs[target.run].model_error);
    }
    for (std::size_t i = 0; i < kParamCount; ++i) {
      const auto param = static_cast<Param>(i);
      if (!start.has(param) || start.get(param).value <= 0) continue;
      const ParameterClass known_as = start.get(param).trusted_as();
      const bool open = known_as == ParameterClass::Fit || known_as == ParameterClass::Assumed;
      const bool wanted = only.empty() || std::ranges::any_of(only, [&](const auto& beginning) {
                            return info(param).key.starts_with(beginning);
                          });
      if (open && wanted && info(param).unit != ParamUnit::Count) params_.push_back(param);
    }
  }

  FitResult run(const FitWords& words) {
    find_influences();
    // Roughly first, with a Jacobian that is only corrected: what must be given up shows early.
    do {
      descend(kRough);
    } while (give_up_undetermined());
    renew_jacobian();
    descend(kConverged);
    renew_jacobian();  // the spreads need it
    while (give_up_undetermined()) descend(kRough);
    return result(&words);
  }

  FitResult judge() { return result(nullptr); }

 private:
  // ---- simulations ---------------------------------------------------------------------------

  /// log(predicted / measured) of the rows of one run; 0 where there is no prediction.
  void set_rows(std::size_t at, const std::vector<double>& times, Eigen::VectorXd& residual) const {
    const std::size_t first = data_.runs[runs_[at]].first_target;
    for (Index row = first_row_[at]; row < first_row_[at + 1]; ++row) {
      const std::size_t target = rows_[static_cast<std::size_t>(row)];
      const double ns = times[target - first];
      residual[row] = std::isnan(ns) ? 0 : std::log(ns / data_.targets[target].measured_ns);
    }
  }

  std::vector<std::vector<double>> simulate(const std::vector<PredictionJob>& jobs) {
    simulations_ += jobs.size();
    return predict_runs(data_, jobs);
  }

  Eigen::VectorXd residuals(const Machine& machine) {
    const auto shared = std::make_shared<const Machine>(machine);
    std::vector<PredictionJob> jobs;
    for (const std::size_t run : runs_) jobs.push_back({shared, run});
    const auto times = simulate(jobs);
    Eigen::VectorXd residual{spread_.size()};
    for (std::size_t at = 0; at < runs_.size(); ++at) set_rows(at, times[at], residual);
    return residual;
  }

  static void change(Machine& machine, Param param, double factor) {
    ParamValue value = machine.get(param);
    value.value *= factor;
    machine.set(param, std::move(value));
  }

  // ---- who influences what -------------------------------------------------------------------

  /// Fills touches_: first groups of parameters on each run, then the Jacobian tells them apart.
  void find_influences() {
    residual_ = residuals(machine_);
    std::vector<PredictionJob> jobs;
    for (std::size_t begin = 0; begin < params_.size(); begin += kTogether) {
      Machine moved = machine_;
      for (std::size_t i = begin; i < std::min(begin + kTogether, params_.size()); ++i) {
        // Different factors: the changes of two parameters do not cancel.
        change(moved, params_[i], 1 + kStep * (1 + 0.37 * static_cast<double>(i - begin)));
      }
      const auto shared = std::make_shared<const Machine>(std::move(moved));
      for (const std::size_t run : runs_) jobs.push_back({shared, run});
    }
    const auto times = simulate(jobs);
    touches_.assign(params_.size(), std::vector<bool>(runs_.size(), false));
    std::size_t job = 0;
    for (std::size_t begin = 0; begin < params_.size(); begin += kTogether) {
      for (std::size_t at = 0; at < runs_.size(); ++at, ++job) {
        Eigen::VectorXd moved = residual_;
        set_rows(at, times[job], moved);
        if ((moved - residual_).cwiseAbs().maxCoeff() == 0) continue;
        for (std::size_t i = begin; i < std::min(begin + kTogether, params_.size()); ++i) {
          touches_[i][at] = true;
        }
      }
    }
    renew_jacobian();
    for (std::size_t i = 0; i < params_.size(); ++i) {
      for (std::size_t at = 0; at < runs_.size(); ++at) {
        const auto part = jacobian_.col(static_cast<Index>(i))
                              .segment(first_row_[at], first_row_[at + 1] - first_row_[at]);
        touches_[i][at] = touches_[i][at] && part.cwiseAbs().maxCoeff() > 0;
      }
    }
    std::vector<std::size_t> without;
    for (std::size_t i = 0; i < params_.size(); ++i) {
      const double most = jacobian_.col(static_cast<Index>(i)).cwiseAbs().maxCoeff();
      if (most <= kDeterminedColumn) without.push_back(i);
    }
    for (const std::size_t i : without) {
      refused_.push_back({params_[i], "no measured region depends on it"});
    }
    drop(without);
    say("{} parameters have an influence on {} regions of {} runs", params_.size(), rows_.size(),
        runs_.size());
  }

  void renew_jacobian() {
    std::vector<PredictionJob> jobs;
    for (std::size_t i = 0; i < params_.size(); ++i) {
      Machine moved = machine_;
      change(moved, params_[i], 1 + kStep);
      const auto shared = std::make_shared<const Machine>(std::move(moved));
      for (std::size_t at = 0; at < runs_.size(); ++at) {
        if (touches_[i][at]) jobs.push_back({shared, runs_[at]});
      }
    }
    const auto times = simulate(jobs);
    jacobian_.setZero(spread_.size(), static_cast<Index>(params_.size()));
    std::size_t job = 0;
    for (std::size_t i = 0; i < params_.size(); ++i) {
      Eigen::VectorXd moved = residual_;
      for (std::size_t at = 0; at < runs_.size(); ++at) {
        if (touches_[i][at]) set_rows(at, times[job++], moved);
      }
      jacobian_.col(static_cast<Index>(i)) = (moved - residual_) / std::log1p(kStep);
    }
    is_new_ = true;
  }

  /// Takes parameters (by index) out of the fit, at their first values.
  void drop(std::vector<std::size_t> gone) {
    std::ranges::sort(gone, std::greater{});
    for (const std::size_t i : gone) {
      machine_.set(params_[i], start_.get(params_[i]));
      params_.erase(params_.begin() + static_cast<std::ptrdiff_t>(i));
      touches_.erase(touches_.begin() + static_cast<std::ptrdiff_t>(i));
      drop_column(jacobian_, static_cast<Index>(i));
    }
  }

  // ---- the way down --------------------------------------------------------------------------

  /// The solver's parameters are in these units.
  Eigen::VectorXd units() const {
    Eigen::VectorXd all{static_cast<Index>(params_.size())};
    for (Index i = 0; i < all.size(); ++i) {
      all[i] = prior_unit(start_.get(params_[static_cast<std::size_t>(i)]));
    }
    return all;
  }
  Eigen::MatrixXd in_units() const { return jacobian_ * units().asDiagonal(); }

  /// Of the logs from those of the first guess, in units.
  Eigen::VectorXd from_prior() const {
    Eigen::VectorXd distance{static_cast<Index>(params_.size())};
    for (Index i = 0; i < distance.size(); ++i) {
      const Param param = params_[static_cast<std::size_t>(i)];
      distance[i] = std::log(machine_.get(param).value / start_.get(param).value);
    }
    return distance.cwiseQuotient(units());
  }

  Machine moved_by(const Eigen::VectorXd& step) const {
    Machine machine = machine_;
    for (std::size_t i = 0; i < params_.size(); ++i) {
      change(machine, params_[i], std::exp(-step[static_cast<Index>(i)]));
    }
    return machine;
  }

  /// Steps until the cost no longer falls; the Jacobian is corrected after each, and made anew when
  /// a corrected one leads nowhere.
  void descend(double enough) {
    double damping = 1e-2;
    double cost = robust_cost(residual_, spread_, from_prior());
    for (int iteration = 0; iteration < kIterations && damping < 1e4; ++iteration) {
      const Eigen::VectorXd in_unit = damped_step(in_units(), robust_weights(residual_, spread_),
                                                  residual_, from_prior(), damping);
      const Eigen::VectorXd step = in_unit.cwiseProduct(units());
      Machine candidate = moved_by(step);
      const Eigen::VectorXd next = residuals(candidate);
      const double next_cost = robust_cost(next, spread_, from_prior() - in_unit);
      if (next_cost < cost) {
        const bool last = cost - next_cost < enough * cost;
        machine_ = std::move(candidate);
        correct_jacobian(jacobian_, -step, next - residual_);
        residual_ = next;
        cost = next_cost;
        damping = std::max(damping / 5, 1e-6);
        is_new_ = false;
        say("step {}: mean |error| {:.2f} %", iteration + 1, mean_error() * 100);
        if (last) break;
      } else if (!is_new_) {
        renew_jacobian();
      } else {
        damping *= 10;
      }
    }
  }

  double mean_error() const {
    double sum = 0;
    for (Index i = 0; i < residual_.size(); ++i) sum += std::abs(std::expm1(residual_[i]));
    return sum / static_cast<double>(std::max<Index>(1, residual_.size()));
  }

  /// False when everything left is determined.
  bool give_up_undetermined() {
    const Eigen::VectorXd weight = robust_weights(residual_, spread_);
    const auto columns = undetermined_columns(in_units(), weight, residual_, spread_);
    if (columns.empty()) return false;
    std::vector<std::size_t> gone;
    for (const Index column : columns) {
      gone.push_back(static_cast<std::size_t>(column));
      refused_.push_back(
          {params_[gone.back()], "its spread after the fit is not below half of that before it"});
    }
    drop(gone);
    residual_ = residuals(machine_);
    say("{} parameters are not determined, {} are left", gone.size(), params_.size());
    return true;
  }

  // ---- what comes out ------------------------------------------------------------------------

  FitResult result(const FitWords* words) {
    FitResult result;
    result.machine = machine_;
    if (words != nullptr) add_spreads(result, *words);
    result.refused = refused_;
    std::ranges::sort(result.refused, {}, &Refused::param);
    result.predicted_ns = predict_everything();
    result.simulations = simulations_;
    return result;
  }

  /// The measurements that say something of a parameter (a column of the Jacobian).
  std::vector<LearnedFrom> learned_from(Index column) const {
    std::vector<LearnedFrom> all;
    for (std::size_t at = 0; at < runs_.size(); ++at) {
      const FitRun& run = data_.runs[runs_[at]];
      std::optional<ByteRange> sizes;
      bool any = false;
      for (Index row = first_row_[at]; row < first_row_[at + 1]; ++row) {
        if (std::abs(jacobian_(row, column)) <= kDeterminedColumn) continue;
        any = true;
        const std::uint64_t bytes = data_.targets[rows_[static_cast<std::size_t>(row)]].bytes;
        if (bytes == 0) continue;
        if (!sizes) sizes = ByteRange{bytes, bytes};
        sizes = ByteRange{std::min(sizes->least, bytes), std::max(sizes->most, bytes)};
      }
      if (!any) continue;
      const auto targets = std::span{data_.targets}.subspan(run.first_target, run.targets);
      all.push_back({.scenario = run.program.name,
                     .other = {},
                     .ranks = {static_cast<std::uint32_t>(run.gpus)},
                     .sizes = sizes,
                     .every_other = std::ranges::count(targets, Standing::HeldOutSize,
                                                       &FitTarget::standing) > 0,
                     .data = run.where});
    }
    return all;
  }

  std::shared_ptr<const Source> source_of(Index column, const FitWords& words) const {
    Source source{.id = "fit",
                  .kind = ParameterClass::Fit,
                  .text = words.text,
                  .learned_from = learned_from(column),
                  .command = words.command};
    const auto& all = source.learned_from;
    const bool one = std::ranges::all_of(
        all, [&](const LearnedFrom& entry) { return entry.scenario == all.front().scenario; });
    if (one && !all.empty()) source.id = all.front().scenario;
    return std::make_shared<const Source>(std::move(source));
  }

  void add_spreads(FitResult& result, const FitWords& words) const {
    const Eigen::VectorXd weight = robust_weights(residual_, spread_);
    const Eigen::VectorXd unit = units();
    const Eigen::MatrixXd variance =
        unit.asDiagonal() * covariance(in_units(), weight, residual_, spread_) * unit.asDiagonal();
    const Eigen::VectorXd sigma = variance.diagonal().cwiseMax(0).cwiseSqrt();
    for (std::size_t i = 0; i < params_.size(); ++i) {
      const auto at = static_cast<Index>(i);
      ParamValue value = machine_.get(params_[i]);
      value.origin = source_of(at, words);
      value.source = value.origin->kind;
      value.from = value.origin->text;
      value.spread = sigma[at];
      result.machine.set(params_[i], std::move(value));
      result.fitted.push_back(params_[i]);
      for (Index other = 0; other < at; ++other) {
        const double correlation = variance(at, other) / (sigma[at] * sigma[other]);
        if (std::abs(correlation) <= kCorrelated) continue;
        result.correlated.push_back(
            {params_[static_cast<std::size_t>(other)], params_[i], correlation});
      }
    }
    std::ranges::sort(result.correlated, std::greater{},
                      [](const Correlated& pair) { return std::abs(pair.correlation); });
  }

  std::vector<double> predict_everything() {
    const auto shared = std::make_shared<const Machine>(machine_);
    std::vector<PredictionJob> jobs;
    for (std::size_t run = 0; run < data_.runs.size(); ++run) jobs.push_back({shared, run});
    std::vector<double> all;
    for (const auto& times : simulate(jobs)) all.insert(all.end(), times.begin(), times.end());
    return all;
  }

  template <class... Args>
  static void say(fmt::format_string<Args...> format, Args&&... args) {
    print_error("fit: {}\n", fmt::format(format, std::forward<Args>(args)...));
  }

  const FitData& data_;
  const Machine& start_;
  Machine machine_;
  std::vector<std::size_t> rows_;  ///< the targets that the fit learns from, run by run
  std::vector<std::size_t> runs_;  ///< that have such targets
  std::vector<Index> first_row_;   ///< of each of them, and one behind the last
  Eigen::VectorXd spread_, residual_;
  std::vector<Param> params_;
  std::vector<std::vector<bool>> touches_;  ///< parameter by run (both by index)
  Eigen::MatrixXd jacobian_;
  bool is_new_ = false;  ///< the Jacobian is of here, not corrected from elsewhere
  std::vector<Refused> refused_;
  std::size_t simulations_ = 0;
};

}  // namespace

FitResult fit(const FitData& data, const Machine& start, const FitWords& words,
              const std::vector<std::string>& only) {
  return Fit{data, start, only}.run(words);
}

FitResult judge(const FitData& data, const Machine& machine) {
  return Fit{data, machine, {}}.judge();
}

}  // namespace foretrace
