#include "models/cost/kernel.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "models/constants/constants.h"
#include "models/cost/host.h"

namespace foretrace::cost {
namespace {

/// What the memory's traffic decides, on all SMs: `cached` is the rate of what the level-2 cache
/// holds, `memory` that of the rest, for which the kernel takes longer to start, too.
struct Rates {
  Param cached, memory;
};

/// What kernels go through, and what of it the level-2 cache does not hold any more.
struct Traffic {
  double bytes = 0, missing = 0;
};
Traffic traffic_of(Reading& read, std::span<const Pass> passes) {
  Traffic traffic;
  for (const Pass& pass : passes) {
    traffic.bytes += pass.bytes;
    traffic.missing += missing_bytes(read, pass);
  }
  return traffic;
}

KernelCost memory_bound(Reading& read, Param base, std::span<const Pass> passes, Rates rates) {
  const auto [bytes, missing] = traffic_of(read, passes);
  double seconds = read.seconds(base);
  if (missing < bytes) seconds += (bytes - missing) / read.rate(rates.cached);
  if (missing > 0) {
    const double share = missing / bytes;
    seconds += missing / read.rate(rates.memory) + read.seconds(Param::MemoryBase) * share;
  }
  KernelCost cost;
  cost.alone = seconds_to_duration(seconds);
  cost.sms = read.count(Param::SmCount);
  cost.hbm_bytes_per_second = missing / std::max(1e-12, to_seconds(cost.alone));
  cost.room.data_waits = 1;
  if (const double moving = seconds - read.seconds(base);
      moving > 0 && read.has(Param::SmBandwidth)) {
    const double enough = std::ceil(bytes / moving / read.rate(Param::SmBandwidth));
    cost.enough_sms =
        static_cast<std::uint32_t>(std::clamp(enough, 1.0, static_cast<double>(cost.sms)));
  }
  if (missing <= bytes / 2 && read.takes(Term::LastBlocks)) {
    static const Duration kLastBlocksOfCached = constant_time("kernel.cached_last_blocks");
    static const std::int64_t kPart = constant_count("kernel.cached_last_part");
    cost.room.last_blocks = std::min(cost.alone / kPart, kLastBlocksOfCached);
  }
  if (missing > bytes / 2 && read.has(Param::SaturatedBlock)) {
    cost.room.drain = std::min(cost.alone, read.time(Param::SaturatedBlock));
    cost.room.drain_of_all = cost.room.drain;
    static const Duration kLastBlocks = constant_time("kernel.last_blocks");
    if (read.takes(Term::LastBlocks))
      cost.room.last_blocks = std::min(cost.room.drain, kLastBlocks);
    if (read.has(Param::SaturatedSm)) {
      cost.room.drain_of_all = std::min(cost.alone, read.time(Param::SaturatedSm));
    }
  }
  return cost;
}

/// What is gone of an array when `turns` times the cache's size goes through it in turn, and each
/// miss evicts any line: what is left is exp(-missed turns). Below 1 nothing is gone.
double share_evicted(double turns) {
  if (turns <= 1) return 0;
  constexpr double kAllOfIt = 50;  // nothing was there: infinitely many turns, in a first pass
  if (!(turns < kAllOfIt)) return 1;
  double gone = 1;
  constexpr int kSteps = 40;  // Newton's; fewer do, but for turns hardly above 1
  for (int step = 0; step < kSteps; ++step) {
    const double left = std::exp(-turns * gone);
    const double next = gone - (gone - 1 + left) / (1 - turns * left);
    if (std::abs(next - gone) < 1e-9) break;
    gone = next;
  }
  return std::clamp(gone, 0.0, 1.0);
}

/// Memory that is gone through in the same order again and again loses what comes next: once it is
/// larger than the cache, more of it is gone than of memory that is used now and then. `room`: of
/// its size.
Pass evicted_in_turn(Reading& read, const Pass& pass, double room, double at_once) {
  if (!read.takes(Term::InTurn)) return pass;
  const double size = read.value(Param::L2Size);
  static const double kPower = constant("kernel.in_turn.power");
  const double in_turn = size * std::pow(pass.distance * room / size, kPower);
  return {pass.bytes, std::max(pass.distance * at_once, in_turn), pass.reread, pass.fresh};
}

/// What a kernel over small arrays takes, of kernel.base, by the bytes of one of them: 4 KiB are
/// one load of 16 bytes of each thread of a block, 16 KiB four, more are several blocks.
double small_array_share(double bytes) {
  if (bytes <= 4096) return constant("kernel.small_array.one_load");
  if (bytes <= 16384) return constant("kernel.small_array.four_loads");
  return constant(bytes <= 32768 ? "kernel.small_array.two_blocks" : "kernel.small_array.more");
}

Duration small_array_time(Reading& read, double bytes, Duration alone) {
  if (!read.takes(Term::SmallArray)) return Duration{0};
  static const double kHidden = constant("kernel.small_array.hidden");
  const double base = read.seconds(Param::KernelBase);
  const double more = base * (small_array_share(bytes) - 1);
  const double moving = to_seconds(alone) - base;
  return seconds_to_duration(more < 0 ? more : std::max(0.0, more - kHidden * moving));
}

constexpr double kThreadsOfABlock = 256;
/// 256 threads of a block load 64 bytes each, as PyTorch's kernels and the harness' do.
constexpr double kBlockBytes = kThreadsOfABlock * 64;

/// What a kernel that reads one array and writes one takes longer when its blocks are more than the
/// GPU has at once, so that the loads of the last ones begin late. Memory hides it.
Duration late_blocks(Reading& read, std::span<const Pass> passes) {
  if (!read.takes(Term::LateBlocks)) return Duration{0};
  constexpr double kThreadsOfAnSm = 2048;
  static const double kLate = constant("kernel.late_blocks");
  static const double kHides = constant("kernel.late_blocks.hides");
  const double at_once = read.value(Param::SmCount) * (kThreadsOfAnSm / kThreadsOfABlock);
  if (passes.size() != 2 || passes.back().bytes <= at_once * kBlockBytes) return Duration{0};
  const auto [bytes, missing] = traffic_of(read, passes);
  return seconds_to_duration(kLate * std::max(0.0, 1 - missing / (kHides * bytes)));
}

KernelCost on_one_sm(Duration alone) {
  KernelCost cost;
  cost.alone = alone;
  return cost;
}

}  // namespace

KernelCost over_nvlink(Reading& read, KernelCost cost, double bytes) {
  static const double kShare = constant("kernel.over_nvlink_share");
  if (bytes <= 0 || !read.has(Param::NvlinkBandwidth)) return cost;
  const Duration on_the_way =
      seconds_to_duration(bytes / (kShare * read.rate(Param::NvlinkBandwidth)));
  if (on_the_way <= cost.alone) return cost;
  cost.hbm_bytes_per_second *= to_seconds(cost.alone) / to_seconds(on_the_way);
  cost.alone = on_the_way;
  return cost;
}

KernelCost spin_cost(Reading& read, const Spin& spin, Duration duration) {
  const std::uint32_t sms = read.count(Param::SmCount);
  const std::uint32_t blocks = spin.blocks_on(sms);
  const double factor = read.machine().what_if_factor(spin.scales_with);
  if (factor != 1) duration = seconds_to_duration(to_seconds(duration) / factor);
  const std::int64_t waves = (std::int64_t{blocks} + sms - 1) / sms;
  Duration spins = kLongestTime;
  if (duration <= kLongestTime / waves) spins = duration * waves;
  KernelCost cost;
  cost.alone = spins + read.time(Param::SpinOverhead);
  cost.sms = std::min(blocks, sms);
  cost.waves.blocks = blocks;
  cost.waves.block_time = duration;
  cost.room.leaves_room = true;  // one warp
  return cost;
}

double missing_bytes(Reading& read, const Pass& pass) {
  return pass.bytes * share_evicted(pass.distance / read.value(Param::L2Size));
}

int cached_eighths(Reading& read, std::span<const Pass> passes) {
  const auto [bytes, missing] = traffic_of(read, passes);
  return bytes > 0 ? static_cast<int>(std::lround(8 * (1 - missing / bytes))) : 8;
}

bool any_fresh(std::span<const Pass> passes) { return std::ranges::any_of(passes, &Pass::fresh); }

KernelCost elementwise_cost(Reading& read, std::span<const Pass> passes) {
  using enum Param;
  Rates rates{BinaryCached, BinaryBandwidth};
  if (passes.size() == 1) rates = {FillCached, FillBandwidth};
  if (passes.size() == 2) rates = {UnaryCached, UnaryBandwidth};
  // One array in place, and nothing else in between.
  static const double kRoomOfOne = constant("kernel.in_turn.room");
  std::vector<Pass> in_turn;
  const auto alone = [](const Pass& pass) { return pass.distance == pass.bytes; };
  if (passes.size() == 2 && std::ranges::all_of(passes, alone)) {
    for (const Pass& pass : passes) in_turn.push_back(evicted_in_turn(read, pass, kRoomOfOne, 1));
    passes = in_turn;
  }
  KernelCost cost = memory_bound(read, KernelBase, passes, rates);
  cost.alone += small_array_time(read, passes.back().bytes, cost.alone);
  cost.alone += late_blocks(read, passes);
  // A small kernel has fewer blocks than there are SMs.
  const double blocks = std::ceil(passes.back().bytes / kBlockBytes);
  cost.sms = static_cast<std::uint32_t>(std::clamp(blocks, 1.0, static_cast<double>(cost.sms)));
  cost.enough_sms = std::min(cost.enough_sms, cost.sms);
  return cost;
}

KernelCost reduction_cost(Reading& read, const Pass& pass) {
  using enum Param;
  Param cached = read.has(ReductionCached) ? ReductionCached : ReductionBandwidth;
  if (pass.reread && read.has(ReductionReread)) cached = ReductionReread;
  // What is only read takes less room than what is written.
  static const double kRoom = constant("kernel.room_of_reads");
  static const double kRoomInTurn = constant("kernel.in_turn.room_of_reads");
  const Pass reads = evicted_in_turn(read, pass, kRoomInTurn, kRoom);
  KernelCost cost = memory_bound(read, ReductionBase, {&reads, 1}, {cached, ReductionBandwidth});
  // What kernels have only read before is nearer than what one has just written. The time that the
  // data move hides it.
  static const double kFew = constant("kernel.reread.few");
  static const double kHides = constant("kernel.reread.hides");
  if (pass.reread && read.takes(Term::Reread)) {
    const double base = read.seconds(ReductionBase);
    const double moving = to_seconds(cost.alone) - base;
    const double nearer = constant(pass.bytes <= kFew ? "kernel.reread.of_few" : "kernel.reread");
    cost.alone -= seconds_to_duration(std::max(0.0, nearer * base - kHides * moving));
  }
  return cost;
}

bool is_small_memset(double bytes) {
  return bytes > 0 && bytes <= static_cast<double>(small_memset().count);
}

KernelCost memset_cost(Reading& read, const Pass& pass, MemsetIn place) {
  using enum Param;
  if (is_small_memset(pass.bytes)) {
    static const Duration kInARow = constant_time("kernel.small_memset.in_a_row");
    static const Duration kFrontEnd = constant_time("kernel.small_memset.front_end");
    if (place == MemsetIn::Stream) return on_one_sm(kInARow);
    // Only kernels of a graph follow each other sooner than on a stream.
    Duration waits{0};
    if (place == MemsetIn::Graph && read.has(KernelGap) && read.has(GraphGap)) {
      waits = 2 * std::max(Duration{0}, read.time(KernelGap) - read.time(GraphGap));
    }
    return on_one_sm(kFrontEnd + waits);
  }
  KernelCost cost = memory_bound(read, KernelBase, {&pass, 1}, {FillCached, MemsetBandwidth});
  cost.room.takes_no_sm = true;
  return cost;
}

KernelCost host_memset_cost(Reading& read, Bytes size) {
  return on_one_sm(read.time(Param::KernelBase) + at_rate(size, read.rate(Param::D2hBandwidth)));
}

std::uint32_t device_copy_kernels(Bytes size) {
  constexpr std::uint64_t kPage = 4096;
  static const Bytes kLooked = constant_size("kernel.unaligned_copy");
  return size >= kLooked && size.count % kPage != 0 ? 2 : 1;
}

KernelCost device_copy_cost(Reading& read, const Pass& from, const Pass& to) {
  using enum Param;
  const Pass passes[] = {from, to};
  KernelCost cost = memory_bound(read, D2dLatency, passes, {UnaryCached, D2dBandwidth});
  cost.room.takes_no_sm = true;
  if (device_copy_kernels({static_cast<std::uint64_t>(to.bytes)}) > 1) {
    cost.alone += read.time(KernelBase);
    if (read.has(KernelGap)) cost.alone += read.time(KernelGap);
  }
  return cost;
}

}  // namespace foretrace::cost
