#include "tests/reports/compare/ordered_timeline.h"

#include <utility>

#include "tests/reports/timeline_builder.h"

namespace foretrace::test {

const std::string kOrderedScenario =
    "schema_version: 1\nname: ordered\ndevices: 2\nstreams: {a: {device: 0, flags: non_blocking}, "
    "b: {device: 1, flags: non_blocking}}\nevents: {e: {}}\nthreads:\n  main:\n"
    "    - spin: {stream: a, duration: 1us}\n    - event_record: {stream: a, event: e}\n"
    "    - stream_wait_event: {stream: b, event: e}\n"
    "    - spin: {stream: b, duration: 1us, blocks: 2}\n"
    "    - spin: {stream: b, duration: 1us, blocks: 3}\n";

Timeline ordered_timeline(const Program& program, const OrderedTimes& times) {
  TimelineBuilder builder{true, program.hash};
  builder.timeline.origin.file = "ordered.yaml";
  builder.timeline.origin.clock_error_bound_ns = times.bound;
  const auto a = builder.stream("a", 0, 0);
  const auto b = builder.stream("b", 0, 1);
  for (const Op& op : program.threads[0].ops) builder.op(kind_name(op.kind), op.line);
  builder.span(0, a, 0, times.first_end, 1);
  builder.span(3, b, times.second_begin, times.second_end, 1);
  builder.span(4, b, times.third_begin, times.third_begin + 10, 1);
  return std::move(builder.timeline);
}

}  // namespace foretrace::test
