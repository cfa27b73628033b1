// foretrace-hw on two hosts (each is this machine, by processes that share no memory), on a
// stand-in for the GPU: results, clocks, hangs and failures from both.
#include <gmock/gmock.h>

#include "tests/hw/fake_gpu/run.h"

namespace foretrace::hw {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::SizeIs;

TEST_F(FakeGpu, TwoHostsGiveOneResult) {
  const Ended ended =
      on_hosts("one:1,two:1", 2, "measure --repetitions 4 " + scenario("two", kTwoProcesses));
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  const Timeline timeline = result("two");
  ASSERT_THAT(timeline.regions, SizeIs(2));
  for (const RegionSamples& row : timeline.regions) EXPECT_THAT(row.samples_ns, SizeIs(4));
  EXPECT_THAT(timeline.lanes, ElementsAre(Field(&Lane::node, 0U), Field(&Lane::node, 1U)));
  EXPECT_THAT(timeline.origin.versions.at("data_checked"), HasSubstr("4 of 4 results"));
  EXPECT_EQ(timeline.origin.versions.at("hosts"), "2");
  EXPECT_THAT(timeline.origin.versions.at("clock_between_hosts"), HasSubstr("round trips"));
  EXPECT_GT(timeline.origin.clock_error_bound_ns, 0);
  ASSERT_THAT(timeline.origin.starts, SizeIs(1));
  const ProcessStart& start = timeline.origin.starts[0];
  EXPECT_THAT(start.environments, ElementsAre(start.environment, start.environment))
      << "both are this machine";
  // Both leave the barrier within what their clocks may be apart and a message takes.
  std::vector<std::int64_t> left;
  for (const Span& span : timeline.spans) {
    if (timeline.ops[span.op].kind == "host_barrier") left.push_back(span.end_ns);
  }
  ASSERT_THAT(left, SizeIs(2));
  EXPECT_LT(std::abs(left[0] - left[1]), 500'000'000);
}

TEST_F(FakeGpu, AHangOnTwoHostsIsExplainedByBoth) {
  const Ended ended = on_hosts("one:1,two:1", 2, "measure --timeout 2s " + scenario("hang", R"(
processes: 2
warmup: 0
buffers: {x: {memory: device, size: 4KiB}}
communicators: {world: {members: all_devices, init: rank}}
threads:
  rank_0: {process: 0, ops: [{host_compute: {duration: 20us}}]}
  rank_1:
    process: 1
    ops:
      - nccl_recv: {comm: world, buffer: x, type: float32, peer: 0}
      - device_synchronize: {}
)"));
  EXPECT_EQ(ended.exit_code, 1) << ended.output;
  EXPECT_THAT(result("hang").outcome.explanation,
              AllOf(Contains(HasSubstr("nccl_recv from rank 0 never completed")),
                    Contains(HasSubstr("device_synchronize never returned"))));
}

TEST_F(FakeGpu, AFailureOnTheOtherHostReachesTheResult) {
  const Ended ended = on_hosts("one:1,two:1", 2, "measure " + scenario("fault", R"(
processes: 2
warmup: 0
threads:
  zero: {process: 0, ops: [{host_barrier: {}}]}
  one: {process: 1, ops: [{fault: {}}, {device_synchronize: {}}, {host_barrier: {}}]}
)"));
  EXPECT_EQ(ended.exit_code, 1) << ended.output;
  EXPECT_THAT(result("fault").outcome.explanation,
              ElementsAre(HasSubstr("process 1, thread one, fault.yaml:8: device_synchronize")));
}

TEST_F(FakeGpu, AScenariosNodesAreTheHosts) {
  const std::string two_nodes = scenario("nodes", std::string{"\nnodes: 2"} + kTwoProcesses);
  const Ended one_host = measure(two_nodes, 2);
  EXPECT_EQ(one_host.exit_code, 3) << one_host.output;
  EXPECT_THAT(one_host.output, HasSubstr("is for 2 nodes, its 2 processes are on 1"));
  const Ended two_hosts = on_hosts("one:1,two:1", 2, "measure --repetitions 1 " + two_nodes);
  EXPECT_EQ(two_hosts.exit_code, 0) << two_hosts.output;
}

}  // namespace
}  // namespace foretrace::hw
