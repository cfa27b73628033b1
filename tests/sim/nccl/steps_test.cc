// How far a rank gets ahead of one that is late: by the eight steps of a connection's buffers.
#include <gtest/gtest.h>

#include "tests/sim/unit_machine.h"

namespace foretrace::test {
namespace {

std::string late_reader(const std::string& calls) {
  return R"(
streams: {s: {flags: non_blocking}}
communicators: {world: {members: all_devices, init: rank}}
processes: 2
buffers: {x: {memory: device, size: 1MB}, y: {memory: device, size: 2MB}}
threads:
  main:
    - repeat:
        times: 12
        ops:
          - host_compute: {duration: 1us + 500us * process}
)" + calls;
}

/// Rank 0 writes, and ends its last of twelve calls when rank 1 reads the fourth.
void expect_eight_ahead(const Timeline& t, const std::string& id) {
  const auto spans = device_spans(t, id);
  ASSERT_EQ(spans.size(), 24U);
  std::vector<Span> of_0, of_1;
  for (const Span& span : spans) (t.lanes[span.lane].process == 0 ? of_0 : of_1).push_back(span);
  EXPECT_LT(us(of_0[7].end_ns), 500) << "eight calls fill the buffers";
  EXPECT_GE(of_0[8].end_ns, of_1[0].begin_ns);
  EXPECT_LT(of_0[8].end_ns, of_1[1].begin_ns);
  EXPECT_GE(of_0[11].end_ns, of_1[3].begin_ns);
  EXPECT_LT(of_0[11].end_ns, of_1[4].begin_ns);
}

TEST(StepsAhead, OfAReductionAreEight) {
  expect_eight_ahead(predict(late_reader(R"(
          - nccl_reduce: {id: call, comm: world, stream: s, buffer: x, size: 4000B, type: float32, root: 1}
)")),
                     "call");
}

TEST(StepsAhead, OfAScatterAreEight) {
  expect_eight_ahead(predict(late_reader(R"(
          - nccl_scatter: {id: call, comm: world, stream: s, send_buffer: y, recv_buffer: x, size: 4000B, type: float32, root: 0}
)")),
                     "call");
}

/// The parts lie in the readers' buffers; none of them is done because another one is.
TEST(Scatter, IsReadByEachLateRankInItsOwnTime) {
  const Timeline t = predict(R"(
streams: {s: {flags: non_blocking}}
communicators: {world: {members: all_devices, init: rank}}
processes: 4
buffers: {x: {memory: device, size: 1MB}, y: {memory: device, size: 4MB}}
threads:
  main:
    - host_compute: {duration: 'min(process, 1) * 500us + process * 3us'}
    - nccl_scatter: {id: call, comm: world, stream: s, send_buffer: y, recv_buffer: x, size: 4000B, type: float32, root: 0}
    - device_synchronize: {}
)");
  EXPECT_EQ(t.outcome.kind, Outcome::Kind::Completed);
  const auto spans = device_spans(t, "call");
  ASSERT_EQ(spans.size(), 4U);
  EXPECT_LT(us(spans[0].end_ns), 500) << "the root leaves its data behind";
  for (const std::size_t late : {2U, 3U}) {
    EXPECT_EQ(spans[late].begin_ns, spans[1].begin_ns + 3000 * (static_cast<int>(late) - 1));
    EXPECT_EQ(spans[late].end_ns - spans[late].begin_ns, spans[1].end_ns - spans[1].begin_ns);
  }
}

}  // namespace
}  // namespace foretrace::test
