// What several processes do together; run by mpirun with three processes, each runs every test.
#include <gmock/gmock.h>

#include <cstring>

#include "hw/guard/together.h"
#include "hw/run/pass_barrier.h"
#include "hw/run/processes.h"

namespace foretrace::hw {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int kProcesses = 3;

Processes world() { return Processes::of(MPI_COMM_WORLD); }

TEST(Processes, KnowTheirRankAndHost) {
  const Processes all = world();
  EXPECT_EQ(all.count(), kProcesses);
  EXPECT_EQ(all.local_count(), kProcesses);
  EXPECT_EQ(all.local_rank(), all.rank());
  EXPECT_TRUE(all.one_host());
}

TEST(Processes, BroadcastAndGatherTextsOfAnyLength) {
  const Processes all = world();
  const std::string mine(static_cast<std::size_t>(all.rank()) * 100'000, 'a');
  const auto gathered = all.gather(mine);
  if (all.rank() == 0) {
    ASSERT_EQ(gathered.size(), 3U);
    EXPECT_EQ(gathered[0], "");
    EXPECT_EQ(gathered[2].size(), 200'000U);
  } else {
    EXPECT_THAT(gathered, IsEmpty());
  }
  EXPECT_EQ(all.broadcast(all.rank() == 1 ? std::string{"from 1"} : std::string{}, 1), "from 1");
  EXPECT_EQ(all.largest(10 - all.rank()), 10);
}

TEST(Processes, BeyondTheFirstStandAside) {
  const Processes all = world();
  const Processes::Subset two = all.first(2);
  EXPECT_EQ(two.member, all.rank() < 2);
  EXPECT_EQ(two.processes.count(), all.rank() < 2 ? 2 : 1);
  two.processes.wait_for_all();
}

TEST(Together, EverybodyThrowsWhatTheLowestFailedRankThrew) {
  const Processes all = world();
  const auto fail_on_1_and_2 = [&] {
    if (all.rank() == 1) throw CannotHereError{"no GPU on 1"};
    if (all.rank() == 2) throw UsageError{"bad flag on 2"};
  };
  try {
    together(all, fail_on_1_and_2);
    FAIL() << "nothing was thrown";
  } catch (const CannotHereError& error) {
    EXPECT_STREQ(error.what(), "no GPU on 1");
  }
  EXPECT_NO_THROW(together(all, [] {}));
  EXPECT_THROW(at_root(all, [] { throw UsageError{"root"}; }), UsageError);
}

TEST(SharedMemory, IsTheSameForAllProcessesAndZeroAtFirst) {
  const Processes all = world();
  const SharedMemory memory{all, 3 * sizeof(int)};
  auto* values = reinterpret_cast<int*>(memory.data());
  EXPECT_EQ(values[all.rank()], 0);
  all.wait_for_all();
  values[all.rank()] = all.rank() + 1;
  all.wait_for_all();
  EXPECT_THAT((std::vector<int>{values[0], values[1], values[2]}), ElementsAre(1, 2, 3));
  all.wait_for_all();
}

TEST(PassBarrier, ReleasesAllProcessesAtOneMoment) {
  const Processes all = world();
  SharedState shared{all, 1};
  for (int pass = 0; pass < 20; ++pass) {
    if (pass % kProcesses == all.rank()) std::this_thread::sleep_for(std::chrono::milliseconds{2});
    const std::int64_t arrived = now_ns();
    const std::int64_t released = shared.wait_for_pass(all);
    // The last to arrive releases: not before anybody's arrival, and the same moment for all.
    EXPECT_GE(released, arrived);
    EXPECT_EQ(all.largest(released), released);
    EXPECT_EQ(all.largest(-released), -released);
  }
}

TEST(PassBarrier, HostBarriersAndProgressCrossProcesses) {
  const Processes all = world();
  SharedState shared{all, 1};
  shared.progress(all.local_rank()) = 5;
  shared.host_barrier(BarrierId{0}).arrive_and_wait(kProcesses);
  EXPECT_EQ(shared.total_progress(), 15U);
  all.wait_for_all();
}

}  // namespace
}  // namespace foretrace::hw

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const foretrace::hw::Mpi mpi;
  return RUN_ALL_TESTS();
}
