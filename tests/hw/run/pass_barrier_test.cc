#include "hw/run/pass_barrier.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace foretrace::hw {
namespace {

TEST(BarrierSlot, LetsNobodyThroughBeforeEverybodyArrived) {
  constexpr std::uint32_t kParties = 3;
  constexpr int kRounds = 200;
  BarrierSlot barrier;
  std::atomic<int> arrived{0};
  std::atomic<bool> early{false};
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < kParties; ++i) {
    threads.emplace_back([&] {
      for (int round = 1; round <= kRounds; ++round) {
        ++arrived;
        barrier.arrive_and_wait(kParties);
        if (arrived < round * static_cast<int>(kParties)) early = true;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(early);
  EXPECT_EQ(arrived, kRounds * static_cast<int>(kParties));
}

TEST(BarrierSlot, RunsTheLastOnesWorkBeforeReleasing) {
  BarrierSlot barrier;
  int work = 0;
  int seen = 0;
  std::thread other{[&] {
    barrier.arrive_and_wait(2, [&] { ++work; });
    seen = work;
  }};
  barrier.arrive_and_wait(2, [&] { ++work; });
  EXPECT_EQ(work, 1);
  other.join();
  EXPECT_EQ(seen, 1);
}

TEST(SharedState, ReleasesASingleProcessAtOnce) {
  const Processes alone;
  SharedState shared{alone, 2};
  const std::int64_t before = now_ns();
  const std::int64_t released = shared.wait_for_pass(alone);
  EXPECT_GE(released, before);
  EXPECT_LE(released, now_ns());
  shared.progress(0) = 42;
  EXPECT_EQ(shared.total_progress(), 42U);
}

TEST(Signals, CountWhatWasSignalled) {
  Signals signals{1};
  signals.signal(SignalId{0});
  signals.signal(SignalId{0});
  EXPECT_TRUE(signals.wait(SignalId{0}));
  EXPECT_TRUE(signals.wait(SignalId{0}));  // would hang if the second signal were lost
  std::atomic<bool> through{false};
  std::thread waiter{[&] { through = signals.wait(SignalId{0}); }};
  std::this_thread::sleep_for(std::chrono::milliseconds{20});
  EXPECT_FALSE(through);
  signals.signal(SignalId{0});
  waiter.join();
  EXPECT_TRUE(through);
}

TEST(Signals, ForgetWhatAPassLeft) {
  Signals signals{1};
  signals.signal(SignalId{0});
  signals.reset();
  std::atomic<bool> through{false};
  std::thread waiter{[&] { through = signals.wait(SignalId{0}); }};
  std::this_thread::sleep_for(std::chrono::milliseconds{20});
  EXPECT_FALSE(through);
  signals.signal(SignalId{0});
  waiter.join();
}

TEST(Signals, LetEverybodyGoWhenTheRunEnds) {
  Signals signals{1};
  std::atomic<bool> taken{true};
  std::thread waiter{[&] { taken = signals.wait(SignalId{0}); }};
  signals.close();
  waiter.join();
  EXPECT_FALSE(taken);
}

TEST(SharedState, GivesTheFailureToTheFirstThatClaimsIt) {
  SharedState shared{Processes{}, 0};
  EXPECT_FALSE(shared.has_failed());
  EXPECT_TRUE(shared.claim_failure());
  EXPECT_FALSE(shared.claim_failure());
  EXPECT_TRUE(shared.has_failed());
}

}  // namespace
}  // namespace foretrace::hw
