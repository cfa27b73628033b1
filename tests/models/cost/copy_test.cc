// What copies cost, derived.
#include "models/cost/copy.h"

#include <gtest/gtest.h>

#include "tests/models/cost/costed_machine.h"

namespace foretrace::cost {
namespace {

using namespace literals;
using enum Param;

constexpr Bytes kMegabyte{1'000'000};

const Machine& copy_machine() {
  static const Machine kMachine = machine_of({{H2dLatency, 2e-6},
                                              {H2dBandwidth, 50e9},
                                              {D2hLatency, 3e-6},
                                              {D2hBandwidth, 40e9},
                                              {DuplexBandwidth, 80e9},
                                              {HostLinkBandwidth, 100e9},
                                              {P2pLatency, 1e-6},
                                              {P2pShare, 1.25},
                                              {NvlinkBandwidth, 200e9},
                                              {P2pStagedLatency, 9e-6},
                                              {P2pStagedBandwidth, 25e9},
                                              {HostMemcpyAsync, 4e-6},
                                              {PageableH2dBase, 5e-6},
                                              {PageableH2dBandwidth, 10e9},
                                              {PageableH2dCached, 20e9},
                                              {PageableH2dCore, 25e9},
                                              {CoreCache, 2'000'000},
                                              {PageableD2hBandwidth, 20e9},
                                              {PageableD2hFirst, 200'000},
                                              {PageableD2hFirstBandwidth, 5e9},
                                              {FreshD2hBandwidth, 2e9},
                                              {SmallPageableLimit, 65'536},
                                              {SmallPageableBandwidth, 8e9},
                                              {HostCopyBandwidth, 10e9}});
  return kMachine;
}

TEST(CopyTime, IsALatencyAndBytesOverTheSlowestOfItsLinks) {
  EXPECT_EQ(answer(copy_machine(), copy_time, Copy{Route::PinnedToDevice, kMegabyte}), 22_us);
  EXPECT_EQ(answer(copy_machine(), copy_time, Copy{Route::DeviceToPinned, kMegabyte}), 28_us);
  EXPECT_EQ(answer(copy_machine(), copy_time, Copy{Route::PeerStaged, kMegabyte}), 49_us);
  EXPECT_EQ(answer(copy_machine(), copy_time, Copy{Route::PeerDirect, kMegabyte}), 6_us)
      << "NVLink is slower here than what a copy could get";
  EXPECT_EQ(answer(copy_machine(), copy_time, Copy{Route::PinnedToDevice, Bytes{0}}), 2_us);
}

/// 160 KiB of the first piece in 4 us: 9 us, less 3 us for the 120 KiB that 40 KiB lack, and 40 KiB
/// at 25 GB/s. A faster way through the host makes no copy slower.
TEST(CopyTime, WithoutPeerAccessOfAShortCopyLacksItsShareOfTheFirstPiece) {
  Machine machine = copy_machine();
  const Copy small{Route::PeerStaged, Bytes{40 << 10}};
  const auto time_at = [&](double rate) {
    machine.set(P2pStagedBandwidth, {rate, 0, ParameterClass::Assumed, "", ""});
    return to_us(answer(machine, copy_time, small));
  };
  EXPECT_NEAR(time_at(25e9), 9 + 1.6384, 1e-3) << "not known there";
  machine.set(P2pStagedFirst, {4e-6, 0, ParameterClass::Assumed, "", ""});
  EXPECT_NEAR(time_at(25e9), 9 - 3 + 1.6384, 1e-3);
  EXPECT_LT(time_at(50e9), time_at(25e9));
  machine.set(P2pStagedFirst, {1, 0, ParameterClass::Assumed, "", ""});
  EXPECT_GT(time_at(25e9), 1.6384) << "no more than all of the latency";
}

TEST(CopyTime, OfAStagedUploadIsThatOfPinnedMemory) {
  Machine machine = copy_machine();
  machine.set(StagedUpload, {3'000'000, 0, ParameterClass::Assumed, "", ""});
  const Copy small{Route::PageableToDevice, Bytes{65'536}},
      large{Route::PageableToDevice, Bytes{5'000'000}};
  EXPECT_EQ(answer(copy_machine(), staged_during_the_call, large), Bytes{0}) << "not known there";
  EXPECT_EQ(answer(machine, staged_during_the_call, small), Bytes{0}) << "travels with the call";
  EXPECT_EQ(answer(machine, staged_during_the_call, large), Bytes{3'000'000});
  Copy staged{Route::PageableToDevice, kMegabyte};
  staged.staged = answer(machine, staged_during_the_call, staged);
  EXPECT_EQ(answer(machine, copy_time, staged), 22_us);
  EXPECT_EQ(answer(machine, copy_call_time, Call{.param = PageableH2dBase}, staged), 110_us)
      << "the call, the memory to stage in, and 1 MB at 10 GB/s";
  Copy rest = large;
  rest.staged = Bytes{3'000'000};
  EXPECT_EQ(answer(machine, copy_time, rest), 262_us) << "2 + 60 us, then 2 MB at 10 GB/s";
}

TEST(CopyTime, OfPageableMemoryDependsOnWhereItsDataAre) {
  EXPECT_EQ(answer(copy_machine(), copy_time, Copy{Route::PageableToDevice, kMegabyte}), 102_us);
  EXPECT_EQ(answer(copy_machine(), copy_time,
                   Copy{.route = Route::PageableToDevice, .size = kMegabyte, .from_cache = true}),
            52_us);
  EXPECT_EQ(answer(copy_machine(), copy_time,
                   Copy{.route = Route::PageableToDevice,
                        .size = kMegabyte,
                        .from_cache = true,
                        .from_core = true}),
            42_us);
  // The first 200 kB at 5 GB/s on their own are 40 us, the other 800 kB at 20 GB/s 40 us.
  EXPECT_EQ(answer(copy_machine(), copy_time, Copy{Route::DeviceToPageable, kMegabyte}), 83_us);
  EXPECT_EQ(answer(copy_machine(), copy_time,
                   Copy{.route = Route::DeviceToPageable, .size = kMegabyte, .fresh = kMegabyte}),
            503_us);
}

TEST(CopyTime, OfASmallUploadInTheCommandStreamHasLessLatencyThanThatOfALink) {
  const Copy small{Route::PageableToDevice, Bytes{60'000}};
  EXPECT_EQ(answer(copy_machine(), copy_time, small), Duration{1'333'333} + 6_us);
}

TEST(StageTime, IsThatOfACoresOwnCacheAsFarAsItHoldsWhatIsCopiedAndTheCopy) {
  Copy again{Route::PageableToDevice, kMegabyte};
  again.from_cache = again.from_core = true;
  EXPECT_EQ(answer(copy_machine(), stage_time, again, kMegabyte), 40_us) << "twice 1 MB: all";
  again.size = Bytes{4'000'000};
  EXPECT_EQ(answer(copy_machine(), stage_time, again, again.size), 190_us)
      << "a quarter of it at 25 GB/s, the rest at 20";
  again.from_core = false;
  EXPECT_EQ(answer(copy_machine(), stage_time, again, again.size), 200_us);
  EXPECT_EQ(answer(machine_of({{PageableH2dCore, 25e9}}), share_in_core, kMegabyte), 0)
      << "a cache of unknown size";
}

TEST(StageTime, IsNoShorterThanTheLinks) {
  Machine narrow = copy_machine();
  narrow.set(H2dBandwidth, {5e9, 0, ParameterClass::Assumed, "", ""});
  EXPECT_EQ(answer(narrow, stage_time, Copy{Route::PageableToDevice, kMegabyte}, kMegabyte),
            200_us);
}

TEST(LastPiece, IsWhatIsLeftBehindWholeMebibytes) {
  EXPECT_EQ(last_piece({100}), Bytes{100});
  EXPECT_EQ(last_piece({1 << 20}), Bytes{1 << 20});
  EXPECT_EQ(last_piece({(2 << 20) + 5}), Bytes{5});
}

TEST(CopyTime, IsMadeOfTheParametersThatDecideIt) {
  const auto shares = shares_of(copy_machine(), [](Reading& read) {
    return to_seconds(copy_time(read, {Route::PinnedToDevice, kMegabyte}));
  });
  ASSERT_EQ(shares.size(), 2U) << "the other links do not matter";
  EXPECT_EQ(shares[0].param, H2dBandwidth);
  EXPECT_NEAR(shares[0].share, -20.0 / 22, 1e-3);
  EXPECT_EQ(shares[1].param, H2dLatency);
}

TEST(EngineCost, LeavesTheBytesThatOthersMaySlowDownToTheLinks) {
  const EngineCost down =
      answer(copy_machine(), engine_cost, Copy{Route::DeviceToPageable, kMegabyte});
  EXPECT_EQ(down.latency, 43_us);
  EXPECT_EQ(down.bytes, Bytes{800'000});
  EXPECT_EQ(down.rate, PageableD2hBandwidth);
  const EngineCost small =
      answer(copy_machine(), engine_cost, Copy{Route::DeviceToPageable, {100'000}});
  EXPECT_EQ(small.bytes, Bytes{0}) << "all of it is the first pieces";
}

TEST(RecentReads, IsInTheCacheFromTheThirdReadOn) {
  const Machine cached = machine_of({{HostCache, 64e6}});
  const auto finds = [&](const RecentReads& memory, Bytes size) {
    return answer(cached, is_in_cache, memory, size);
  };
  EXPECT_FALSE(finds({kMegabyte, 1, 1'000'000}, kMegabyte));
  EXPECT_TRUE(finds({kMegabyte, 2, 1'000'000}, kMegabyte));
  EXPECT_FALSE(finds({kMegabyte, 2, 1'000'000}, {1'000'001})) << "more than was read";
  EXPECT_FALSE(finds({kMegabyte, 2, 64'000'001}, kMegabyte)) << "other data came in between";
}

TEST(RecentReads, AreForgottenSoonerWhereTheHostCopies) {
  const Machine cached = machine_of({{HostCache, 64e6}, {KeptCache, 40e6}});
  const auto finds = [&](std::uint64_t touched, bool by_host_copies) {
    const RecentReads memory{kMegabyte, 2, touched, by_host_copies};
    return answer(cached, is_in_cache, memory, kMegabyte);
  };
  EXPECT_TRUE(finds(40'000'000, true));
  EXPECT_FALSE(finds(40'000'001, true));
  EXPECT_TRUE(finds(40'000'001, false));
}

TEST(RecentReads, AreForgottenByUploadsWhereTheMachineSaysIt) {
  const Machine cached = machine_of({{HostCache, 64e6}, {UploadCache, 40e6}});
  const auto finds = [&](std::uint64_t touched, bool by_host_copies) {
    const RecentReads memory{kMegabyte, 2, touched, by_host_copies};
    return answer(cached, is_in_cache, memory, kMegabyte);
  };
  EXPECT_TRUE(finds(40'000'000, false));
  EXPECT_FALSE(finds(40'000'001, false));
  EXPECT_TRUE(finds(40'000'001, true)) << "node.kept_cache is not said";
}

TEST(CopyCallTime, HasWhatTheHostMovesItself) {
  EXPECT_EQ(copy_call(copy_machine(), Route::PageableToDevice), PageableH2dBase);
  const Call call{.param = PageableH2dBase};
  // 5 us and 64 kB at 8 GB/s, which are 8 us; a larger copy is the engine's.
  const Copy small{Route::PageableToDevice, {64'000}};
  const Copy large{Route::PageableToDevice, {65'537}};
  EXPECT_TRUE(answer(copy_machine(), travels_with_the_call, small));
  EXPECT_FALSE(answer(copy_machine(), travels_with_the_call, large));
  EXPECT_EQ(answer(copy_machine(), copy_call_time, call, small), 13_us);
  EXPECT_EQ(answer(copy_machine(), copy_call_time, call, large), 5_us);
}

TEST(CopyCallTime, BetweenHostBuffersIsTheDriversOwnMemcpy) {
  const Call call{.param = copy_call(copy_machine(), Route::HostToHost)};
  EXPECT_EQ(answer(copy_machine(), copy_call_time, call, Copy{Route::HostToHost, kMegabyte}),
            104_us);
  const Copy cached{.route = Route::HostToHost, .size = kMegabyte, .from_cache = true};
  EXPECT_EQ(answer(copy_machine(), copy_call_time, call, cached), 104_us)
      << "no number for the cache";
  Machine knows = copy_machine();
  knows.set(HostCopyCached, {20e9, 0, ParameterClass::Assumed, "", ""});
  EXPECT_EQ(answer(knows, copy_call_time, call, cached), 54_us);
  EXPECT_EQ(copy_call(knows, Route::HostToHost), HostMemcpyAsync);
  knows.set(HostMemcpyHost, {6e-6, 0, ParameterClass::Assumed, "", ""});
  EXPECT_EQ(copy_call(knows, Route::HostToHost), HostMemcpyHost);
}

}  // namespace
}  // namespace foretrace::cost
