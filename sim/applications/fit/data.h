// The measurements that a fit reads: which regions it may learn from, and which only judge it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "reports/timeline/timeline.h"
#include "scenarios/program/program.h"

namespace foretrace {

/// What is kept out of the fit, to judge it by.
struct HoldOut {
  bool every_other_size = true;     ///< of NCCL's sweeps
  std::set<int> ranks;              ///< sweeps with so many GPUs, completely
  std::set<std::string> scenarios;  ///< names, or the beginning of names and a star
  std::set<std::string> learn;      ///< the same, of no calibrations: learned from nevertheless
};

/// "every-other", "none" (of the sizes), "ranks=4", "scenario=NAME". Throws UsageError.
HoldOut parse_hold_out(const std::vector<std::string>& rules);

enum class Standing : std::uint8_t {
  Fit,           ///< the fit learns from it
  HeldOutSize,   ///< a size between two that are in the fit
  HeldOutRanks,  ///< a number of GPUs that is not in the fit
  Validation     ///< of a scenario that is no calibration
};

/// One program and its measurement, all process launches together.
struct FitRun {
  Program program;
  std::string where;  ///< the last directory it came from
  int gpus = 1;
  std::size_t first_target = 0, targets = 0;  ///< in FitData::targets
  double launch_ns = 0;  ///< what a launch took the host, the median of its starts; 0: not known
  /// How many times as fast as in the median run its host was (tell_hosts_apart): `--with host=`
  /// predicts it.
  double host = 1;
  double model_error = 0;  ///< relative: how far the model itself may be off in a region
};

/// One execution of a region: the figure that a prediction is held against.
struct FitTarget {
  std::size_t run{};
  std::uint32_t op{};
  std::uint64_t instance{};
  std::string region;  ///< "small_graph [3]"
  double measured_ns{};
  double spread{};  ///< relative: half of p5..p95 over all repetitions, at least 1 %
  Standing standing = Standing::Fit;
  std::uint64_t bytes = 0;  ///< of its NCCL operation, over all ranks
};

struct FitData {
  std::vector<FitRun> runs;
  std::vector<FitTarget> targets;     ///< run by run
  std::vector<std::string> left_out;  ///< one line for each measurement that cannot be used
  std::filesystem::path
      environment;  ///< environments/KEY.json of a run with the most GPUs; may be empty
  std::vector<double> launches_ns{};  ///< what a launch took the host, of each start that says it
};

/// Adds one measurement, of `program` itself.
void add_run(FitData& data, Program program, const Timeline& measured, const HoldOut& hold_out);

/// How many times as fast as `machine`'s the hosts of these measurements were, by what a launch
/// took: the median over the runs that say it.
std::optional<double> host_factor(const FitData& data, const Machine& machine);

/// Sets FitRun::host of the runs that say it: what `machine` has for a launch in so many processes
/// over what it took, beside the median of all. For a fit that learns what calls cost: it learns
/// the median's. A host that no host is (kSlowestHost) counts as not known.
void tell_hosts_apart(FitData& data, const Machine& machine);

/// Everything named measured.timeline.json below `roots`; several of one program are merged.
/// Throws UsageError when there is nothing that can be used.
FitData load_fit_data(const std::vector<std::filesystem::path>& roots, const HoldOut& hold_out);

}  // namespace foretrace
