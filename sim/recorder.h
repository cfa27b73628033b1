// Spans, lanes and regions of the predicted timeline, as they happen.
#pragma once

#include <cstdint>
#include <vector>

#include "models/machine.h"
#include "reports/timeline.h"
#include "scenarios/program.h"
#include "sim/work.h"

namespace foretrace::sim {

class Recorder {
 public:
  Recorder(const Program& program, const Machine& machine);

  std::uint32_t add_lane(Lane lane);
  void span(std::uint32_t lane, const Execution& execution, std::uint16_t part, TimePoint begin,
            TimePoint end, std::uint16_t detail = 0) {
    timeline_.spans.push_back({execution.op->id.value, lane, execution.instance,
                               round_to_ns(begin.time_since_epoch()),
                               round_to_ns(end.time_since_epoch()), part, detail});
  }
  void region(const Execution& execution, std::uint32_t process, TimePoint begin, TimePoint end);
  std::uint16_t detail(const SpanDetail& detail) { return intern(timeline_, detail); }

  Timeline finish(Outcome outcome) &&;

 private:
  Timeline timeline_;
};

}  // namespace foretrace::sim
