// What is measured of a host, and how often: all probes in turn, round after round, until the time
// is over. So each one sees the host's fast and slow moments.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace foretrace::hw {

/// s, bytes/s, flop/s, -, Hz, bytes
enum class MeasuredUnit { Time, Rate, FlopRate, Ratio, Clock, Size };

/// One quantity. `key` is a machine parameter's ("host.touch_bandwidth"), or words for people.
struct Quantity {
  std::string key;
  MeasuredUnit unit = MeasuredUnit::Time;
  std::string size{};  ///< "64MiB"; empty where no size belongs to it
};

/// Measures some quantities once; returns one value for each, in SI units. A value that is not
/// positive counts as not measured.
struct Probe {
  std::vector<Quantity> quantities;
  std::function<std::vector<double>()> once;
};

struct Measured {
  Quantity quantity;
  double value = 0;   ///< median
  double spread = 0;  ///< relative: half of what lies between the 16th and the 84th percentile
  std::size_t samples = 0;
};

/// The median and the spread of positive values; value 0 where there is none.
Measured summary(const Quantity& quantity, std::vector<double> values);

/// Runs all probes in turn, at least `least_rounds` times and then until `seconds` are over. The
/// first round warms up and is not counted. What a probe throws is thrown.
std::vector<Measured> measure(const std::vector<Probe>& probes, double seconds,
                              int least_rounds = 3);

}  // namespace foretrace::hw
