// nccl-tests' table, predicted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "sim/applications/nccl_tests/plan.h"

namespace foretrace {

/// One line: its time is of one iteration, the mean over the ranks.
struct NcclTestsRow {
  NcclTestsSize size;
  double time_us = 0;
  double low_us = 0;  ///< the prediction's band: that of the timed region (models/trust/), or what
                      ///< tables of other owners were off (blind.tables.*)
  double high_us = 0;
  std::string algorithm, protocol;
  std::uint32_t channels = 0;
  std::string rests_on{};  ///< of the first row: what all of them rest on (sim/record/rests_on.h)
};

/// What is simulated instead of all iterations: at most 20, and 4 launches of a graph. Beyond them
/// a run goes on as steadily as it does there, so each has a shorter loop beside it that shows how
/// the time grows.
std::vector<NcclTestsLoop> simulated_loops(const NcclTestsPlan& plan);

/// The time of the whole region from those of the `loops` (in any unit).
double whole_time(const NcclTestsPlan& plan, const std::vector<NcclTestsLoop>& loops,
                  const std::vector<double>& times);

/// One simulation, so once per process. Throws UsageError when the scenario is refused: a variable
/// that may not be set, buffers larger than the GPU, a parameter that the machine lacks.
std::vector<NcclTestsRow> predict_nccl_tests(const NcclTestsPlan& plan, const Machine& machine);

/// Every plan in a child process of its own.
std::vector<std::vector<NcclTestsRow>> predict_nccl_tests(const std::vector<NcclTestsPlan>& plans,
                                                          const Machine& machine);

}  // namespace foretrace
