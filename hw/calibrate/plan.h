// What `foretrace-hw calibrate` measures: on the first node every scenario of DIR/calibration, and
// NCCL's sweeps by size (DIR/nccl) with 2 GPUs, half of them and all of them; over several nodes
// the same sweeps with all GPUs of 2, 4, 8, ... and all nodes. What cannot be run here stays in the
// plan, with the reason.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "scenarios/read/scenario.h"

namespace foretrace::hw {

/// What there is to measure on.
struct CalibrationNode {
  int processes = 1;         ///< that mpirun started on each node
  int gpus = 1;              ///< of each node
  bool peer_access = false;  ///< between GPUs 0 and 1, both ways
  int nodes = 1;
};

/// One scenario with one set of parameters.
struct CalibrationStep {
  std::string file;
  ParameterValues parameters;
  std::string folder;  ///< below the output directory: "" or "4_ranks"
  std::string name;    ///< the scenario's; the result goes to FOLDER/NAME/
  int processes = 1;
  bool sweep = false;   ///< one of NCCL's: long, and few repetitions do
  double seconds = 0;   ///< it takes about so long on 8 H200
  std::string why_not;  ///< why this node cannot run it; empty when it can
  std::string where() const { return folder.empty() ? name : folder + "/" + name; }
};

/// In the order to measure: few GPUs before many. Throws UsageError when `scenarios` has none.
std::vector<CalibrationStep> plan_calibration(const std::filesystem::path& scenarios,
                                              const CalibrationNode& node);

/// 2, half and all of `processes` of one node, then those of whole nodes, ascending; none for one
/// process alone.
std::vector<int> rank_counts(int processes, int nodes = 1);
/// The parameters of a sweep with so many ranks: every rank's share of the smallest size is a
/// whole number of 4 B elements, and 256 times `large` fits into the sweeps' 2 GiB buffers.
ParameterValues sweep_parameters(int ranks);

/// As text for the other processes.
std::string to_text(const std::vector<CalibrationStep>& steps);
std::vector<CalibrationStep> steps_from(const std::string& text);

}  // namespace foretrace::hw
