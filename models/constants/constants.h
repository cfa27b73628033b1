// Numbers of the model that every machine is given: models/constants/constants.yaml, each with what
// it was seen on. What differs from machine to machine is a parameter (models/machine) instead.
#pragma once

#include <cstdint>
#include <string_view>

#include "scenarios/base/values/units.h"

namespace foretrace {

/// In SI units: seconds, bytes, bytes/s, or plain. The first call reads the file; it throws
/// UsageError where that is damaged or has no such name. Callers keep the number in a static.
double constant(std::string_view name);

Duration constant_time(std::string_view name);
Bytes constant_size(std::string_view name);
/// Rounded.
std::int64_t constant_count(std::string_view name);

}  // namespace foretrace
