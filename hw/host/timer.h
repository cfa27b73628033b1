// Seconds that something takes, on the harness' one clock.
#pragma once

#include "hw/trace/clock.h"

namespace foretrace::hw {

template <class Function>
double seconds_of(Function&& function) {
  const std::int64_t begin = now_ns();
  function();
  return static_cast<double>(now_ns() - begin) * 1e-9;
}

}  // namespace foretrace::hw
