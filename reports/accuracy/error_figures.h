// The figures of many errors: of a blind round, a class of programs, or the shipped scenarios.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace foretrace {

/// One region: how far its prediction is from its measurement, and how sure both are.
struct ErrorSample {
  double error{};  ///< predicted / measured - 1; measured: the median over process launches
  std::optional<bool> in_band;   ///< the measured median lies in the predicted band
  std::optional<double> spread;  ///< of the measurement: (slowest - fastest start) / median
};

/// Fractions, not percent; of |error| but for the bias.
struct ErrorFigures {
  std::size_t regions{};
  double median{}, mean{}, p90{}, p95{}, worst{};
  double bias{};                  ///< median of the signed errors
  std::optional<double> in_band;  ///< share of the samples that tell
  std::optional<double> spread;   ///< median of the samples that tell
};

/// Zeros and nothing for no samples.
ErrorFigures figures_of(std::span<const ErrorSample> samples);

}  // namespace foretrace
