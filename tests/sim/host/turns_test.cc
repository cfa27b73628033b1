// Host threads that use one stream, or ask for events, take turns. A call takes 1 us, nothing else.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/sim/unit_machine.h"

namespace foretrace::test {
namespace {

const std::string kTurnObjects = R"(
streams: {a: {flags: non_blocking}, b: {flags: non_blocking}}
events: {e: {count: 2}}
)";

/// Until both of two threads have made ten calls `one` and `two`.
double both_make(const std::string& one, const std::string& two) {
  const Timeline t = predict(kTurnObjects + fmt::format(R"(
threads:
  first: [repeat: {{times: 10, ops: [{}]}}]
  second: [repeat: {{times: 10, ops: [{}]}}]
)",
                                                    one, two));
  std::int64_t end = 0;
  for (const std::string id : {"c", "d"}) {
    end = std::max(end, host_spans(t, id).back().end_ns);
  }
  return us(end);
}

TEST(Calls, OfTwoThreadsOnOneStreamTakeTurns) {
  EXPECT_EQ(both_make("{spin: {id: c, stream: a, duration: 1us}}",
                      "{spin: {id: d, stream: a, duration: 1us}}"),
            20);
  EXPECT_EQ(both_make("{spin: {id: c, stream: a, duration: 1us}}",
                      "{spin: {id: d, stream: b, duration: 1us}}"),
            10);
}

TEST(Calls, OfDifferentKindsOnOneStreamTakeTurnsToo) {
  EXPECT_EQ(both_make("{event_record: {id: c, stream: a, event: e(0)}}",
                      "{spin: {id: d, stream: a, duration: 1us}}"),
            20);
}

TEST(Query, OfTwoThreadsTakesTurnsWhateverTheyAskFor) {
  EXPECT_EQ(both_make("{event_query: {id: c, event: e(0)}}", "{stream_query: {id: d, stream: b}}"),
            20);
}

/// When a launch ends that begins while another thread waits for stream `a`.
double launch_beside_a_wait(const std::string& stream) {
  const Timeline t = predict(kTurnObjects + fmt::format(R"(
threads:
  waits:
    - spin: {{stream: a, duration: 500us}}
    - stream_synchronize: {{stream: a}}
  launches:
    - host_compute: {{duration: 50us}}
    - spin: {{id: late, stream: {}, duration: 1us}}
)",
                                                    stream));
  return us(host_spans(t, "late").at(0).end_ns);
}

TEST(StreamSynchronize, LetsNoOtherThreadLaunchIntoItsStream) {
  EXPECT_GT(launch_beside_a_wait("a"), 500);
  EXPECT_LT(launch_beside_a_wait("b"), 55);
}

TEST(StreamQuery, OfAnIdleStreamLooksAtTheOthersWork) {
  const Timeline t = predict(kTurnObjects + R"(
threads:
  main:
    - spin: {stream: a, duration: 500us}
    - repeat: {times: 2, ops: [{stream_query: {id: busy, stream: a}}]}
    - repeat: {times: 2, ops: [{stream_query: {id: idle, stream: b}}]}
    - device_synchronize: {}
    - repeat: {times: 2, ops: [{stream_query: {id: alone, stream: b}}]}
)",
                             load_machine("h200-nvswitch-8"));
  const auto second = [&t](const std::string& id) {
    const Span span = host_spans(t, id).at(1);
    return us(span.end_ns - span.begin_ns);
  };
  EXPECT_GT(second("idle"), 3 * second("busy"));
  EXPECT_EQ(second("alone"), second("busy"));
}

}  // namespace
}  // namespace foretrace::test
