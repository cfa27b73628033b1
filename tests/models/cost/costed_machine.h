// Machines of a few round numbers, for times that can be derived on the page.
#pragma once

#include <initializer_list>
#include <utility>

#include "models/machine/reading.h"

namespace foretrace::cost {

inline Machine machine_of(std::initializer_list<std::pair<Param, double>> values) {
  Machine machine;
  for (const auto& [param, value] : values) {
    machine.set(param, {value, 0, ParameterClass::Assumed, "", ""});
  }
  return machine;
}

/// A cost function's answer: answer(machine, cost::gap, neighbours).
template <class Function, class... Args>
auto answer(const Machine& machine, const Function& function, const Args&... args) {
  Reading read{machine};
  return function(read, args...);
}

}  // namespace foretrace::cost
