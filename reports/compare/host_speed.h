// What a kernel's launch cost the host that measured, beside what the prediction says: hosts of one
// kind differ by half, and one host from start to start, so an error may be none of the model's.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "reports/timeline/timeline.h"

namespace foretrace {

/// Calls of a launch, in nanoseconds: of each start the mean over its processes.
struct HostSpeed {
  double predicted_ns{};
  double measured_ns{};  ///< median over the starts
  double fastest_ns{}, slowest_ns{};
  std::size_t starts{};  ///< those that say it

  /// How many times as fast as predicted this host called: what `--with host=` takes.
  double factor() const { return predicted_ns / measured_ns; }
};

/// None unless one side is a prediction that says it and the other a measurement that does.
std::optional<HostSpeed> host_speed(const Origin& predicted, const Origin& measured);

/// For people, in one sentence or two; with what to do where the host was faster or slower by more
/// than a twentieth. Empty where nothing is known.
std::string host_speed_words(const Origin& predicted, const Origin& measured);

}  // namespace foretrace
