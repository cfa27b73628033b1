// What a captured step does with a GPU, and on what its predicted time rests.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "models/kernels/kernel_table.h"
#include "models/machine/machine.h"
#include "reports/timeline/timeline.h"
#include "scenarios/captured/expand.h"
#include "scenarios/program/program.h"

namespace foretrace::sim {

struct CapturedUsage {
  double step_ns = 0;  ///< of the last instance of the step's region, one step
  double busy_ns = 0;  ///< per step: something runs on the GPU of the first process
  /// Per step, sums over kernels, copies and fills of the first process.
  double products_ns = 0, communication_ns = 0, other_ns = 0;
  std::array<double, kernels::kBases> captured_ns{};  ///< of captured kernels, by kernels::Basis
};

/// Widens the band of a captured step by what its parameters do not say: kernels that no table
/// knows, by their share of the step, and several ranks.
void widen_bands(Timeline& timeline, const Machine& machine, const CapturedUsage& usage,
                 const Program& program);

/// The program is one that captured::expand() wrote.
CapturedUsage captured_usage(const Program& program, const Timeline& timeline);

/// Lines below the table of regions: what the GPU does, memory, on what the time rests.
std::string describe(const CapturedUsage& usage, const captured::Expansion& expansion,
                     const Machine& machine);

/// A sentence; empty where the step fits into a GPU's memory, or the machine says no size.
std::string why_it_does_not_fit(const captured::Expansion& expansion, const Machine& machine);

/// What each process's allocator holds at its peak.
std::vector<MemoryPeak> memory_peaks(const captured::Expansion& expansion, const Program& program);

}  // namespace foretrace::sim
