// A scenario of two streams with one order between them, and a timeline of it with chosen times.
#pragma once

#include <cstdint>
#include <string>

#include "reports/timeline/timeline.h"
#include "scenarios/program/program.h"

namespace foretrace::test {

/// Operation 0 is a kernel on stream a, 1 its record, 2 the wait of stream b, 3 and 4 kernels on b.
extern const std::string kOrderedScenario;

/// The three kernels of kOrderedScenario, from and to these times in ns.
struct OrderedTimes {
  std::int64_t first_end = 10, second_begin = 20, second_end = 30, third_begin = 30;
  std::int64_t bound = 0;
};

/// `program` is kOrderedScenario's.
Timeline ordered_timeline(const Program& program, const OrderedTimes& times);

}  // namespace foretrace::test
