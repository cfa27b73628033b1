#include "sim/device/clock.h"

#include <algorithm>
#include <cmath>

#include "models/constants/constants.h"

namespace foretrace::sim {

ClockTimes clock_times(const Machine& machine, bool warm) {
  static const double kMixed = constant("device.clock_of_mixed");
  const auto time = [&](Param param) {
    return machine.has(param) ? machine.time(param) : Duration{0};
  };
  const bool known = machine.has(Param::ProductsClockSlope);
  return {.load = time(Param::ProductsLoadTime),
          .rest = time(Param::ProductsRestTime),
          .mixed = warm && machine.takes(Term::MixedClock) ? kMixed : 0,
          .idle = known ? -machine.get(Param::ProductsClockSlope).value *
                              machine.get(Param::ProductsFreeRandom).value
                        : 0};
}

double Clock::lost(TimePoint now) const {
  if (lost_ == towards_) return lost_;
  const Duration time = towards_ > lost_ || averages_ ? times_.load : times_.rest;
  if (time <= Duration{0}) return towards_;
  const double passed = to_seconds(now - since_) / to_seconds(time);
  return towards_ + (lost_ - towards_) * std::exp(-passed);
}

void Clock::towards(TimePoint now, double lost, bool averages) {
  if (lost == towards_ && averages == averages_) return;
  const bool first_load = is_rested_ && lost > 0;
  const double before = averages ? times_.mixed : 0;
  lost_ = first_load ? std::max(lost_, before * lost) : this->lost(now);
  if (first_load) is_rested_ = false;
  since_ = now;
  towards_ = lost;
  averages_ = averages;
}

}  // namespace foretrace::sim
