// What GPUs do in a training step, moment by moment; and what of the time in NCCL's kernels is
// waiting for a rank that has not begun its own.
//
// hw/pytorch/shares.py says the same of the traces of a step's ranks.
#pragma once

#include <cstdint>
#include <map>

#include "reports/timeline/timeline.h"

namespace foretrace::sim {

/// Of a process's step: each moment is the first of these that it can be.
struct StepShares {
  double computing = 0;      ///< anything but a kernel of NCCL runs
  double communication = 0;  ///< a kernel of NCCL that all its ranks have begun
  double waiting = 0;        ///< one that another rank has not begun
  double idle = 0;           ///< nothing runs: the GPU waits for its host thread
  double bubble = 0;  ///< of communication and waiting: only transfers between stages run

  /// What one rank's trace shows of NCCL: nothing else runs.
  double exposed() const { return communication + waiting; }
};

struct TimeWindow {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
};

/// By process.
using ProcessShares = std::map<std::uint32_t, StepShares>;

/// What the GPUs of each of these processes do in its window.
ProcessShares shares_in(const Timeline& timeline,
                        const std::map<std::uint32_t, TimeWindow>& windows);

/// Over processes: of those that are alike and simulated once, once.
StepShares mean_of(const ProcessShares& shares);

/// `first` for so many seconds, and then `second` for so many.
StepShares one_behind_the_other(const StepShares& first, double first_seconds,
                                const StepShares& second, double second_seconds);

}  // namespace foretrace::sim
