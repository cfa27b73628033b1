// The SMs' clock of one GPU, which products pull down: the power limit lowers it some tens of
// milliseconds after they begin, and a pause gives it back.
#pragma once

#include <cmath>

#include "models/machine/machine.h"
#include "sim/engine/engine.h"

namespace foretrace::sim {

inline Duration stretched(Duration time, double times) {
  return Duration{std::llround(static_cast<double>(time.count()) * times)};
}

/// Times after which 63 % of a change have happened; 0: at once.
struct ClockTimes {
  Duration load{};  ///< down
  Duration rest{};  ///< up again
  /// Of what the first load would take in the end: where it averages, so much is lost when it
  /// begins, since other kernels that take less have run before as well.
  double mixed = 0;
  /// Where power is averaged: what a GPU without work goes towards, below 0.
  double idle = 0;
};

/// As the machine has them; one that knows nothing of lost clocks has kernels that lose none.
/// `warm`: passes of the same program ran before.
ClockTimes clock_times(const Machine& machine, bool warm);

class Clock {
 public:
  explicit Clock(ClockTimes times) : times_{times} {}

  /// From `now` on, what runs would take this part of the rested clock in the end. `averages`: it
  /// comes back no faster than it is lost.
  void towards(TimePoint now, double lost, bool averages = false);
  /// Nothing runs. Behind kernels that average, a pause counts as long as it lasts and no more.
  void rest(TimePoint now) { averages_ ? towards(now, times_.idle, true) : towards(now, 0); }
  /// The part of the rested clock that is lost at `now`; below 0: nothing, and power to spare.
  double lost(TimePoint now) const;

 private:
  ClockTimes times_;
  TimePoint since_{};
  bool is_rested_ = true;
  double lost_ = 0;  ///< at since_
  double towards_ = 0;
  bool averages_ = false;
};

}  // namespace foretrace::sim
