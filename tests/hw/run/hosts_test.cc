// What processes on two hosts do together; run by mpirun with two processes on each of two "hosts"
// (several_hosts.sh). Both are this machine, so their clocks are the same one.
#include <gmock/gmock.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "hw/guard/host_messages.h"
#include "hw/run/host_barriers.h"
#include "hw/trace/clock.h"
#include "hw/trace/host_clocks.h"

namespace foretrace::hw {
namespace {

using namespace std::chrono_literals;

Processes world() { return Processes::of(MPI_COMM_WORLD); }

TEST(Hosts, AreCountedInTheOrderOfTheirRanks) {
  const Processes all = world();
  EXPECT_FALSE(all.one_host());
  EXPECT_EQ(all.hosts(), 2);
  EXPECT_EQ(all.host(), all.rank() / 2);
  EXPECT_EQ(all.local_rank(), all.rank() % 2);
  const Processes::Subset three = all.first(3);
  if (three.member) {
    EXPECT_EQ(three.processes.hosts(), 2);
    EXPECT_EQ(three.processes.host_of(2), 1);
  }
}

TEST(HostClocks, AreComparedWithinTheirBound) {
  const Processes all = world();
  const HostClocks clocks{all};
  const ClockOffset offset = clocks.offset();
  EXPECT_LE(std::abs(offset.ahead_ns), offset.bound_ns) << "it is the same clock";
  EXPECT_EQ(all.host() == 0, offset.bound_ns == 0);
  const std::int64_t bound = bound_between_hosts(all, offset.bound_ns);
  EXPECT_GT(bound, 0);
  EXPECT_EQ(all.largest(bound), bound);
}

TEST(HostClocks, LetAllLeaveAtOneMoment) {
  const Processes all = world();
  HostClocks clocks{all};
  for (int pass = 0; pass < 5; ++pass) {
    if (pass % all.count() == all.rank()) std::this_thread::sleep_for(2ms);
    const std::int64_t arrived = now_ns();
    const std::int64_t left = clocks.leave_together();
    EXPECT_GE(now_ns(), left);
    EXPECT_GT(left + bound_between_hosts(all, clocks.offset().bound_ns), arrived);
    const std::int64_t in_common = left - clocks.offset().ahead_ns;
    EXPECT_EQ(all.largest(in_common), in_common);
    EXPECT_EQ(all.largest(-in_common), -in_common);
  }
}

TEST(HostBarriers, HoldTheThreadsOfAllHosts) {
  const Processes all = world();
  Program program;
  program.processes = 4;
  program.barriers = {{"", {{0, 0}, {1, 0}, {1, 1}, {2, 0}, {3, 0}}}, {"ends", {{0, 0}, {3, 0}}}};
  SharedState shared{all, program.barriers.size()};
  HostBarriers barriers{program, all, shared};
  const auto process = static_cast<std::uint32_t>(all.rank());
  for (int round = 0; round < 20; ++round) {
    const bool is_late = round % all.count() == all.rank();
    if (is_late) std::this_thread::sleep_for(1ms);
    const std::int64_t arrived = now_ns();
    std::thread second;
    if (process == 1) second = std::thread{[&] { barriers.arrive_and_wait(BarrierId{0}, 1, 1); }};
    barriers.arrive_and_wait(BarrierId{0}, process, 0);
    const std::int64_t left = now_ns();
    if (second.joinable()) second.join();
    EXPECT_GE(-all.largest(-left), all.largest(arrived)) << "one left before all were there";
    if (process == 0 || process == 3) barriers.arrive_and_wait(BarrierId{1}, process, 0);
  }
  all.wait_for_all();
}

TEST(HostMessages, TellTheProgressOfTheOtherHostAndWhatFailed) {
  const Processes all = world();
  HostMessages messages{all};
  const std::uint64_t mine = all.host() == 0 ? 7 : 11;
  const std::uint64_t others = all.host() == 0 ? 11 : 7;
  std::optional<std::uint64_t> heard;
  for (int i = 0; i < 200 && heard.value_or(0) != others; ++i) {
    heard = messages.exchange(mine);
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(heard.has_value(), all.local_rank() == 0);
  if (heard) {
    EXPECT_EQ(*heard, others);
  }
  if (all.rank() == 3) tell_rank_0(Told::Failure, "it failed");
  if (all.rank() == 2) tell_rank_0(Told::Hang, "it hangs");
  all.wait_for_all();
  if (all.rank() != 0) return;
  std::array<std::optional<std::string>, 2> told;
  for (int i = 0; i < 200 && !(told[0] && told[1]); ++i) {
    if (!told[0]) told[0] = take_told(Told::Failure);
    if (!told[1]) told[1] = take_told(Told::Hang);
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(told[0], "it failed");
  EXPECT_EQ(told[1], "it hangs");
}

}  // namespace
}  // namespace foretrace::hw

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const foretrace::hw::Mpi mpi;
  return RUN_ALL_TESTS();
}
