// Spans, lanes and regions of the predicted timeline, as they happen.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "models/machine/machine.h"
#include "reports/timeline/timeline.h"
#include "scenarios/program/program.h"
#include "sim/device/work.h"
#include "sim/record/span_bands.h"

namespace foretrace::sim {

class Recorder {
 public:
  Recorder(const Program& program, const Machine& machine);

  std::uint32_t add_lane(Lane lane);
  /// `node`: the operation whose work it is, where that is part of a graph's launch.
  void span(std::uint32_t lane, const Execution& execution, std::uint16_t part, TimePoint begin,
            TimePoint end, std::uint16_t detail = 0, const Op* node = nullptr) {
    const OpId op = (node == nullptr ? execution.op : node)->id;
    const std::uint16_t banded = bands_.detail_of(timeline_, op.value, part, detail);
    const Span& span = timeline_.spans.emplace_back(Span{
        execution.op->id.value, lane, execution.instance, round_to_ns(begin.time_since_epoch()),
        round_to_ns(end.time_since_epoch()), part, banded});
    if (banded != 0) add_to_total(span);
  }
  void begin_region(const Execution& execution, std::uint32_t process);
  void region(const Execution& execution, std::uint32_t process, TimePoint begin, TimePoint end);
  std::uint16_t detail(const SpanDetail& detail) { return intern(timeline_, detail); }

  Timeline finish(Outcome outcome) &&;

 private:
  /// Durations of what has a band, as they are and at its ends.
  struct Total {
    double ns = 0;
    double low_ns = 0;
    double high_ns = 0;
  };
  using RegionKey = std::tuple<std::uint32_t, std::uint64_t, std::uint32_t>;
  static RegionKey key_of(const Execution& execution, std::uint32_t process) {
    return {execution.op->id.value, execution.instance, process};
  }
  void add_to_total(const Span& span);

  Timeline timeline_;
  SpanBands bands_;
  std::vector<Total> totals_;          ///< by process, since the run's begin
  std::map<RegionKey, Total> opened_;  ///< the process' total when the region began
};

}  // namespace foretrace::sim
