// What two things take that share one load.
#pragma once

#include <cmath>

#include "models/machine/reading.h"

namespace foretrace::nccl {

/// The norm of two times: their sum for an exponent of 1, the longer one for a large exponent.
inline double overlapped(double one_seconds, double other_seconds, double exponent) {
  return std::pow(std::pow(one_seconds, exponent) + std::pow(other_seconds, exponent),
                  1 / exponent);
}

/// Two bottlenecks that all bytes pass: neither hides the other completely.
inline double overlapped(Reading& read, double one_seconds, double other_seconds) {
  return overlapped(one_seconds, other_seconds, read.value(Param::NcclOverlap));
}

}  // namespace foretrace::nccl
