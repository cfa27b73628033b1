// The fence around SimGrid: exact times, fair sharing, one clock.
#include "sim/engine/engine.h"

#include <gtest/gtest.h>

#include <map>

#include "scenarios/base/text/errors.h"

namespace foretrace::sim {
namespace {

using namespace literals;

/// Notes when it was called.
struct Log : Handler {
  explicit Log(Engine& e) : engine{e} {}
  void fire(std::uint64_t what) override {
    at[what] = engine.now().time_since_epoch();
    if (then) then(what);
  }
  Engine& engine;
  std::map<std::uint64_t, Duration> at;
  std::function<void(std::uint64_t)> then;
};

TEST(EventQueue, FiresAtExactPicosecondsAndInOrderOfScheduling) {
  EventQueue queue;
  struct Order : Handler {
    std::vector<std::uint64_t> seen;
    void fire(std::uint64_t what) override { seen.push_back(what); }
  } order;
  queue.at(TimePoint{7_ps}, order, 2);
  queue.at(TimePoint{3_ps}, order, 1);
  queue.at(TimePoint{7_ps}, order, 3);
  while (!queue.empty()) queue.pop_and_fire();
  EXPECT_EQ(order.seen, (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(queue.now(), TimePoint{7_ps});
}

TEST(Flows, ShareALinkFairlyAndKeepTheirCaps) {
  // 100 MB each over 100 GB/s, one capped at 25: the other gets 75 until it ends.
  // 100e6 / 75e9 = 1333.333 us; 100e6 / 25e9 = 4000 us.
  Engine engine;
  const LinkId shared = engine.add_link("shared", 100.0_GBps);
  const LinkId cap = engine.add_link("cap", 25.0_GBps, LinkSharing::PerFlow);
  const PathId free = engine.path({shared});
  const PathId capped = engine.path({shared, cap});
  Log log{engine};
  log.then = [&](std::uint64_t what) {
    if (what != 0) return;
    engine.start_flow(free, Bytes{100'000'000}, log, 1);
    engine.start_flow(capped, Bytes{100'000'000}, log, 2);
  };
  engine.queue().at(TimePoint{5_us}, log, 0);
  engine.run();
  EXPECT_NEAR(to_us(log.at[1]), 5 + 1333.333, 0.001);
  EXPECT_NEAR(to_us(log.at[2]), 5 + 4000, 0.001);
}

TEST(Flows, BecomeAsFastAsTheirLinksDo) {
  // 100 MB that begin at 10 GB/s: 10 MB in 1000 us, the rest at 25 GB/s in 3600 us.
  Engine engine;
  const LinkId shared = engine.add_link("shared", 25.0_GBps);
  const LinkId cap = engine.add_link("cap", 25.0_GBps, LinkSharing::PerFlow);
  const PathId over_shared = engine.path({shared});
  const PathId over_cap = engine.path({cap});
  Log log{engine};
  log.then = [&](std::uint64_t what) {
    if (what > 2) return;
    for (const LinkId link : {shared, cap}) {
      engine.set_bandwidth(link, what == 2 ? 25.0_GBps : 10.0_GBps);
    }
    if (what != 1) return;
    engine.start_flow(over_shared, Bytes{100'000'000}, log, 3);
    engine.start_flow(over_cap, Bytes{100'000'000}, log, 4);
  };
  engine.queue().at(TimePoint{2_us}, log, 0);  // before there is any flow
  engine.queue().at(TimePoint{5_us}, log, 1);
  engine.queue().at(TimePoint{1005_us}, log, 2);
  engine.run();
  EXPECT_NEAR(to_us(log.at[3]), 5 + 1000 + 3600, 0.001);
  EXPECT_NEAR(to_us(log.at[4]), 5 + 1000 + 3600, 0.001);
}

TEST(Engine, KeepsEventsAndFlowsOnOneClock) {
  // A flow of 10 us, events before and after its end, each in its turn.
  Engine engine;
  const PathId path = engine.path({engine.add_link("link", 1.0_GBps)});
  Log log{engine};
  std::vector<std::uint64_t> order;
  log.then = [&](std::uint64_t what) {
    order.push_back(what);
    if (what == 0) engine.start_flow(path, Bytes{10'000}, log, 2);
  };
  engine.queue().at(TimePoint{1_us}, log, 0);
  engine.queue().at(TimePoint{4_us}, log, 1);
  engine.queue().at(TimePoint{20_us}, log, 3);
  engine.run();
  EXPECT_EQ(order, (std::vector<std::uint64_t>{0, 1, 2, 3}));
  EXPECT_EQ(log.at[2], 11_us);
  EXPECT_EQ(log.at[3], 20_us);
}

TEST(Engine, HasAsManyPathsAsWereReservedAndRefusesMore) {
  Engine engine;
  engine.reserve_paths(20'000);
  std::vector<LinkId> links;
  for (int i = 0; i < 150; ++i) links.push_back(engine.add_link(std::to_string(i), 1.0_GBps));
  PathId last{};
  for (std::size_t i = 0; i < 20'000; ++i) last = engine.path({links[i / 150], links[i % 150]});
  Log log{engine};
  engine.start_flow(last, Bytes{1000}, log, 1);
  engine.run();
  EXPECT_NEAR(to_us(log.at[1]), 1, 1e-6);
  EXPECT_THROW(
      for (std::size_t i = 20'000; i < 22'500; ++i) engine.path({links[i / 150], links[i % 150]}),
      UsageError);
}

TEST(Engine, ThrowsWhatAnEventThrew) {
  Engine engine;
  Log log{engine};
  log.then = [](std::uint64_t) { throw std::runtime_error{"from an event"}; };
  engine.queue().at(TimePoint{1_us}, log, 0);
  EXPECT_THROW(engine.run(), std::runtime_error);
}

// What it was on the way to may be gone with what has thrown.
TEST(Engine, FiresNothingOnceAnEventThrew) {
  Engine engine;
  const PathId path = engine.path({engine.add_link("link", 1.0_GBps)});
  Log log{engine};
  log.then = [&](std::uint64_t what) {
    if (what == 0) engine.start_flow(path, Bytes{10'000}, log, 2);
    if (what != 1) return;
    engine.start_flow(path, Bytes{10'000}, log, 3);
    throw std::runtime_error{"from an event"};
  };
  for (const std::uint64_t what : {0U, 1U, 4U}) {
    engine.queue().at(TimePoint{1_us * (what + 1)}, log, what);
  }
  EXPECT_THROW(engine.run(), std::runtime_error);
  EXPECT_EQ(log.at.size(), 2U) << "neither the flows' ends nor the last event";
}

}  // namespace
}  // namespace foretrace::sim
