#include "sim/applications/fit_products/fit.h"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>

#include "sim/applications/fit/solver.h"
#include "sim/applications/fit_products/kernel_plan.h"

namespace foretrace::fit_products {
namespace {

using enum Param;

/// What is fitted together, and what it must come near.
struct Task {
  std::vector<Param> params;
  std::vector<Row> rows;
  std::function<double(Reading&, const Row&)> residual;
  double spread = 0.03;  ///< beyond two of these a residual counts linearly
};

Eigen::VectorXd residuals(const Task& task, const Machine& machine) {
  Eigen::VectorXd result{std::ssize(task.rows)};
  Reading read{machine};
  for (Eigen::Index i = 0; i < result.size(); ++i) {
    result[i] = task.residual(read, task.rows[static_cast<std::size_t>(i)]);
  }
  return result;
}

Machine moved(const Machine& machine, const Task& task, const Eigen::VectorXd& step) {
  Machine result = machine;
  for (std::size_t i = 0; i < task.params.size(); ++i) {
    ParamValue value = machine.get(task.params[i]);
    value.value *= std::exp(-step[static_cast<Eigen::Index>(i)]);
    result.set(task.params[i], value);
  }
  return result;
}

Eigen::VectorXd logs(const Machine& machine, const Task& task) {
  Eigen::VectorXd result{std::ssize(task.params)};
  for (Eigen::Index i = 0; i < result.size(); ++i) {
    result[i] = std::log(machine.get(task.params[static_cast<std::size_t>(i)]).value);
  }
  return result;
}

Eigen::MatrixXd jacobian_of(const Task& task, const Machine& machine,
                            const Eigen::VectorXd& residual) {
  constexpr double kNudge = 1e-3;
  Eigen::MatrixXd jacobian{residual.size(), std::ssize(task.params)};
  for (Eigen::Index i = 0; i < jacobian.cols(); ++i) {
    Eigen::VectorXd step = Eigen::VectorXd::Zero(jacobian.cols());
    step[i] = -kNudge;
    jacobian.col(i) = (residuals(task, moved(machine, task, step)) - residual) / kNudge;
  }
  return jacobian;
}

/// Levenberg and Marquardt's steps on the logarithms of the parameters. A parameter's spread
/// afterwards is what the residuals leave: of the parameter itself, or of what it predicts.
void solve(const Task& task, Machine& machine) {
  if (task.rows.empty()) return;
  const Eigen::VectorXd prior = logs(machine, task);
  const Eigen::VectorXd spread = Eigen::VectorXd::Constant(std::ssize(task.rows), task.spread);
  Eigen::VectorXd residual = residuals(task, machine);
  double damping = 1e-2;
  Eigen::MatrixXd jacobian;
  constexpr int kMostSteps = 40;
  for (int step = 0; step < kMostSteps; ++step) {
    jacobian = jacobian_of(task, machine, residual);
    const Eigen::VectorXd weight = robust_weights(residual, spread);
    const Eigen::VectorXd from_prior = logs(machine, task) - prior;
    const double before = robust_cost(residual, spread, from_prior);
    double after = before;
    for (int attempt = 0; attempt < 6 && after >= before; ++attempt) {
      const Machine next =
          moved(machine, task, damped_step(jacobian, weight, residual, from_prior, damping));
      const Eigen::VectorXd then = residuals(task, next);
      after = robust_cost(then, spread, logs(next, task) - prior);
      damping *= after < before ? 0.3 : 5;
      if (after < before) {
        machine = next;
        residual = then;
      }
    }
    if (before - after < 1e-5 * before) break;
  }
  const Eigen::VectorXd weight = robust_weights(residual, spread);
  const Eigen::VectorXd variance = covariance(jacobian, weight, residual, spread).diagonal();
  std::vector<double> sizes(residual.data(), residual.data() + residual.size());
  std::ranges::for_each(sizes, [](double& size) { size = std::abs(size); });
  std::ranges::nth_element(sizes, sizes.begin() + std::ssize(sizes) / 2);
  const double typical = 1.48 * sizes[sizes.size() / 2];
  for (std::size_t i = 0; i < task.params.size(); ++i) {
    ParamValue value = machine.get(task.params[i]);
    value.spread = std::max(typical, std::sqrt(variance[static_cast<Eigen::Index>(i)]));
    machine.set(task.params[i], value);
  }
}

template <class Wanted>
std::vector<Row> those(const std::vector<Row>& rows, const Wanted& wanted) {
  std::vector<Row> result;
  std::ranges::copy_if(rows, std::back_inserter(result),
                       [&](const Row& row) { return row.sustained_clock > 0 && wanted(row); });
  return result;
}

/// The sustained time at the clock that was measured with it.
auto at_measured_clock(const products::Heuristics& heuristics, double rested, bool recorded) {
  return [&heuristics, rested, recorded](Reading& read, const Row& row) {
    const double clock = row.sustained_clock / rested;
    return std::log(predict_at(read, heuristics, row, clock, recorded) / row.sustained);
  };
}

std::vector<Row> nvjet_rows(const std::vector<Row>& rows) {
  return those(rows, [](const Row& row) {
    return row.plan && family_of(row.shape) == products::Family::Half;
  });
}

void fit_half(Machine& machine, const products::Heuristics& heuristics,
              const std::vector<Row>& rows) {
  solve({.params = {ProductsStart, ProductsGraphStart, ProductsMemory, ProductsCache,
                    ProductsSplitStart, ProductsSplitRate, ProductsHalfRate, ProductsHalfRateApart,
                    ProductsHalfOperands, ProductsHalfResults, ProductsHalfStraddle},
         .rows = nvjet_rows(rows),
         .residual = at_measured_clock(heuristics, rested_clock(rows), true)},
        machine);
}

/// Kernels with a block for each tile: what they share, and how long a row must take to teach it.
struct OlderKernels {
  std::vector<products::Family> families;
  std::vector<Param> params;
  double shortest;  ///< s
};

const OlderKernels& float32_kernels() {
  static const OlderKernels kKernels{{products::Family::Float32},
                                     {ProductsSplitTurn, ProductsResidents, ProductsF32Rate,
                                      ProductsF32Operands, ProductsF32Results},
                                     15e-6};  // the start does not decide
  return kKernels;
}

/// Half precision whose leading dimensions are no whole 16 bytes.
const OlderKernels& older_half_kernels() {
  using enum products::Family;
  static const OlderKernels kKernels{
      {HalfPairs, HalfOdd, Bf16Odd},
      {ProductsOlderSumStart, ProductsOlderSumRate, ProductsPairsResidents, ProductsPairsRate,
       ProductsPairsOperands, ProductsPairsResults, ProductsOddResidents, ProductsOddRate,
       ProductsOddOperands, ProductsOddResults},
      7e-6};
  return kKernels;
}

std::vector<Row> teachers(const OlderKernels& kernels, const std::vector<Row>& rows) {
  std::vector<Row> result;
  std::ranges::copy_if(rows, std::back_inserter(result), [&](const Row& row) {
    const bool mine = std::ranges::count(kernels.families, family_of(row.shape)) > 0;
    return mine && row.plan && row.contents == products::Contents::Random &&
           row.sustained > kernels.shortest && row.sustained_clock > 0;
  });
  return result;
}

/// Has as many tiles as reside on the SMs at once: what its kernel can do at best.
bool fills_its_sms(const Row& row, const products::Speeds& speeds) {
  const products::Times times = time_of(row.shape, *row.plan, speeds);
  return static_cast<double>(times.tiles) >=
         speeds.sms * static_cast<double>(row.plan->resident) * 0.75;
}

void fit_older(const OlderKernels& kernels, Machine& machine,
               const products::Heuristics& heuristics, const std::vector<Row>& rows) {
  solve({.params = kernels.params,
         .rows = teachers(kernels, rows),
         .residual = at_measured_clock(heuristics, rested_clock(rows), true),
         .spread = 0.05},
        machine);
}

/// How much longer each kernel's tiles take than the machine's rates say: half of what the typical
/// row says where two rows have the kernel, most of it where many have.
void fit_tiles(const Machine& machine, products::Family family, products::Heuristics& heuristics,
               const std::vector<Row>& known, double rested) {
  constexpr double kRidge = 2;
  Reading read{machine};
  const products::Speeds speeds = read_speeds(read, family);
  const auto residual = at_measured_clock(heuristics, rested, true);
  for (products::Tile& tile : heuristics.at(family).tiles) {
    std::vector<double> sizes;
    for (const Row& row : known) {
      if (family_of(row.shape) != family) continue;
      const bool mine = tile_of(heuristics.at(family), *row.plan) == &tile;
      if (mine && fills_its_sms(row, speeds)) sizes.push_back(residual(read, row));
    }
    if (sizes.empty()) continue;
    std::ranges::nth_element(sizes, sizes.begin() + std::ssize(sizes) / 2);
    const auto count = static_cast<double>(sizes.size());
    tile.slow *= std::exp(-sizes[sizes.size() / 2] * count / (count + kRidge));
  }
}

Fit fit_kernels(const OlderKernels& kernels, const Machine& machine,
                const products::Heuristics& heuristics, const std::vector<Row>& rows) {
  constexpr int kRounds = 6;
  Fit result{machine, heuristics, kernels.params};
  const std::vector<Row> known = teachers(kernels, rows);
  for (int round = 0; round < kRounds; ++round) {
    fit_older(kernels, result.machine, result.heuristics, rows);
    for (const products::Family family : kernels.families) {
      fit_tiles(result.machine, family, result.heuristics, known, rested_clock(rows));
    }
  }
  return result;
}

void fit_others(Machine& machine, const products::Heuristics& heuristics,
                const std::vector<Row>& rows) {
  using products::Family;
  const std::vector<std::pair<Family, std::vector<Param>>> families{
      {Family::Tf32, {ProductsTf32Rate, ProductsTf32Operands, ProductsTf32Results}},
      {Family::Tf32Transposed,
       {ProductsTransposedRate, ProductsTransposedOperands, ProductsTransposedResults}},
      {Family::Tf32Odd, {ProductsTf32OddRate, ProductsTf32OddOperands, ProductsTf32OddResults}},
      {Family::Float64, {ProductsF64Rate, ProductsF64Operands, ProductsF64Results}}};
  for (const auto& [family, params] : families) {
    solve({.params = params,
           .rows = those(rows,
                         [wanted = family](const Row& row) {
                           return family_of(row.shape) == wanted &&
                                  row.contents == products::Contents::Random;
                         }),
           .residual = at_measured_clock(heuristics, rested_clock(rows), false),
           .spread = 0.05},
          machine);
  }
}

/// What is lost, in shares of the rested clock; where the SMs decide the time.
void fit_clock(Machine& machine, const std::vector<Row>& rows) {
  constexpr double kShort = 15e-6;
  const double rested = rested_clock(rows);
  solve({.params = {ProductsClockSlope, ProductsFreeZeros, ProductsFreeRandom, ProductsTf32Power,
                    ProductsF32Power, ProductsF64Power},
         .rows = those(rows, [](const Row& row) { return row.sustained > kShort; }),
         .residual =
             [rested](Reading& read, const Row& row) {
               const double clock = row.sustained_clock / rested;
               const products::Speeds speeds = read_speeds(read, family_of(row.shape));
               const double lost =
                   lost_clock(read, row.shape, row.sustained * clock, speeds, row.contents);
               return std::log((1 - lost) / clock);
             },
         .spread = 0.01},
        machine);
}

Fit fit_speeds(const OlderKernels& kernels, const Machine& machine,
               const products::Heuristics& heuristics, const std::vector<Row>& rows) {
  Fit result{machine, heuristics, kernels.params};
  fit_older(kernels, result.machine, heuristics, rows);
  return result;
}

Fit fit_machine(const Machine& machine, const products::Heuristics& heuristics,
                const std::vector<Row>& rows) {
  Fit result{machine, heuristics, {}};
  fit_half(result.machine, heuristics, rows);
  fit_older(float32_kernels(), result.machine, heuristics, rows);
  fit_older(older_half_kernels(), result.machine, heuristics, rows);
  fit_others(result.machine, heuristics, rows);
  fit_clock(result.machine, rows);
  for (Param param = ProductsStart; param < ProductsLoadTime;
       param = static_cast<Param>(static_cast<int>(param) + 1)) {
    const bool peak = param == ProductsHalfPeak || param == ProductsTf32Peak ||
                      param == ProductsF32Peak || param == ProductsF64Peak;
    if (!peak) result.fitted.push_back(param);
  }
  return result;
}

/// How slow older kernels' tiles are, and all speeds.
Fit fit_all(const Machine& machine, const products::Heuristics& heuristics,
            const std::vector<Row>& rows) {
  Machine first = machine;
  fit_half(first, heuristics, rows);
  const products::Heuristics learned =
      fit_kernels(float32_kernels(), first, heuristics, rows).heuristics;
  return fit_machine(first, fit_kernels(older_half_kernels(), first, learned, rows).heuristics,
                     rows);
}

Fit fit_straddling(const Machine& machine, const products::Heuristics& heuristics,
                   const std::vector<Row>& rows) {
  Machine beside = machine;  // the starts of this table's run are no other run's
  solve({.params = {ProductsHalfStraddle, ProductsStart, ProductsGraphStart},
         .rows = nvjet_rows(rows),
         .residual = at_measured_clock(heuristics, rested_clock(rows), true)},
        beside);
  Fit result{machine, heuristics, {ProductsHalfStraddle}};
  result.machine.set(ProductsHalfStraddle, beside.get(ProductsHalfStraddle));
  return result;
}

}  // namespace

Fit fit(const Machine& machine, const products::Heuristics& heuristics,
        const std::vector<Row>& rows, Part part, bool learns_tiles) {
  switch (part) {
    case Part::All:
      return (learns_tiles ? fit_all : fit_machine)(machine, heuristics, rows);
    case Part::Float32:
    case Part::OlderHalf: {
      const OlderKernels& kernels =
          part == Part::Float32 ? float32_kernels() : older_half_kernels();
      return (learns_tiles ? fit_kernels : fit_speeds)(kernels, machine, heuristics, rows);
    }
    case Part::Straddle:
      break;
  }
  return fit_straddling(machine, heuristics, rows);
}

}  // namespace foretrace::fit_products
