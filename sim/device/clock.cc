#include "sim/device/clock.h"

#include <algorithm>
#include <cmath>

namespace foretrace::sim {

ClockTimes clock_times(const Machine& machine, bool warm) {
  constexpr double kBefore = 0.75;
  const auto time = [&](Param param) {
    return machine.has(param) ? machine.time(param) : Duration{0};
  };
  return {time(Param::ProductsLoadTime), time(Param::ProductsRestTime), warm ? kBefore : 0};
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
  const bool first_load = is_rested_ && lost > 0 && !averages;
  lost_ = first_load ? std::max(lost_, times_.before * lost) : this->lost(now);
  if (first_load) is_rested_ = false;
  since_ = now;
  towards_ = lost;
  averages_ = averages;
}

}  // namespace foretrace::sim
