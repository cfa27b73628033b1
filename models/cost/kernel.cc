#include "models/cost/kernel.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "models/cost/host.h"

namespace foretrace::cost {
namespace {

/// What the memory's traffic decides, on all SMs: `cached` is the rate of what the level-2 cache
/// holds, `memory` that of the rest, for which the kernel takes longer to start, too.
struct Rates {
  Param cached, memory;
};

KernelCost memory_bound(Reading& read, Param base, std::span<const Pass> passes, Rates rates) {
  double bytes = 0;
  double missing = 0;
  for (const Pass& pass : passes) {
    bytes += pass.bytes;
    missing += missing_bytes(read, pass);
  }
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
    // Those of two streams that the level-2 cache feeds take less than one behind the other, up to
    // 1 us each (normalisation, beside_a_reduction, of the blind rounds; chosen on even ones).
    constexpr Duration kLastBlocksOfCached = std::chrono::microseconds{1};
    constexpr std::int64_t kPart = 4;
    cost.room.last_blocks = std::min(cost.alone / kPart, kLastBlocksOfCached);
  }
  if (missing > bytes / 2 && read.has(Param::SaturatedBlock)) {
    cost.room.drain = std::min(cost.alone, read.time(Param::SaturatedBlock));
    cost.room.drain_of_all = cost.room.drain;
    // Small kernels of another stream run one or two between memory-bound ones of 37 to 184 us
    // (urgent_beside_busy_105 of blind rounds 11 and 12).
    constexpr Duration kLastBlocks = std::chrono::microseconds{3};
    if (read.takes(Term::LastBlocks))
      cost.room.last_blocks = std::min(cost.room.drain, kLastBlocks);
    if (read.has(Param::SaturatedSm)) {
      cost.room.drain_of_all = std::min(cost.alone, read.time(Param::SaturatedSm));
    }
  }
  return cost;
}

}  // namespace

KernelCost over_nvlink(Reading& read, KernelCost cost, double bytes) {
  // Two GPUs that each read 160 MiB of the other's got 330 of 450 GB/s (kernels_read_the_peer of
  // blind round written-1, two H100s).
  constexpr double kShare = 0.74;
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
  const Duration alone = spins + read.time(Param::SpinOverhead);
  KernelCost cost;
  cost.alone = alone;
  cost.sms = std::min(blocks, sms);
  cost.waves.blocks = blocks;
  cost.waves.block_time = duration;
  cost.room.leaves_room = true;  // one warp
  return cost;
}

namespace {

/// What is gone of an array when `turns` times the cache's size goes through it in turn, and each
/// miss drives out any line: what is left is exp(-missed turns). Below 1 nothing is gone.
double share_driven_out(double turns) {
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

}  // namespace

namespace {

/// Memory that is gone through in the same order again and again loses what comes next: once it is
/// larger than the cache, more of it is gone than of memory that is used now and then. `room`: of
/// its size. The fourth power follows sums and updates of 24 to 96 MiB within 8 %
/// (tests/hw/causes/memory_kernels.yaml).
Pass driven_out_in_turn(Reading& read, const Pass& pass, double room, double at_once) {
  if (!read.takes(Term::InTurn)) return pass;
  const double size = read.value(Param::L2Size);
  const double in_turn = size * std::pow(pass.distance * room / size, 4);
  return {pass.bytes, std::max(pass.distance * at_once, in_turn), pass.reread, pass.fresh};
}

}  // namespace

double missing_bytes(Reading& read, const Pass& pass) {
  return pass.bytes * share_driven_out(pass.distance / read.value(Param::L2Size));
}

int cached_eighths(Reading& read, std::span<const Pass> passes) {
  double bytes = 0;
  double missing = 0;
  for (const Pass& pass : passes) {
    bytes += pass.bytes;
    missing += missing_bytes(read, pass);
  }
  return bytes > 0 ? static_cast<int>(std::lround(8 * (1 - missing / bytes))) : 8;
}

bool any_fresh(std::span<const Pass> passes) { return std::ranges::any_of(passes, &Pass::fresh); }

namespace {

/// What a kernel over small arrays takes longer or shorter than kernel.base, by the bytes of one of
/// them: 4 KiB are one load of 16 bytes of each thread of a block, 16 KiB four, more are several
/// blocks. 0.83, 1.06, 1.17 and 1.24 us with arrays of up to 4, 16, 32 and 512 KiB behind other
/// kernels; 2 MB and more, which take 0.9 us to move, show nothing of it (spans of 550 elementwise
/// operations in 286 programs of blind rounds on one H200).
double small_array_share(double bytes) {
  if (bytes <= 4096) return -0.14;
  return bytes <= 16384 ? 0.09 : bytes <= 32768 ? 0.2 : 0.28;
}

Duration small_array_time(Reading& read, double bytes, Duration alone) {
  if (!read.takes(Term::SmallArray)) return Duration{0};
  constexpr double kHidden = 0.3;  // of each second that the data move
  const double base = read.seconds(Param::KernelBase);
  const double more = base * small_array_share(bytes);
  const double moving = to_seconds(alone) - base;
  return seconds_to_duration(more < 0 ? more : std::max(0.0, more - kHidden * moving));
}

constexpr double kThreadsOfABlock = 256;
/// 256 threads of a block load 64 bytes each, as PyTorch's kernels and the harness' do.
constexpr double kBlockBytes = kThreadsOfABlock * 64;

/// What a kernel that reads one array and writes one takes longer when its blocks are more than the
/// GPU has at once, so that the loads of the last ones begin late. Arrays in place that are all in
/// the level-2 cache show it from 17.3 MB on: 16.8 MB 7.0 us, 21.7 to 36.7 MB 0.8 to 1.3 us more
/// than by rate (memory_kernels of blind rounds, H200s and H100s). Memory hides it.
Duration late_blocks(Reading& read, std::span<const Pass> passes) {
  if (!read.takes(Term::LateBlocks)) return Duration{0};
  constexpr double kThreadsOfAnSm = 2048;
  constexpr double kLate = 1e-6;
  constexpr double kHides = 0.25;  // of the arrays in memory
  const double at_once = read.value(Param::SmCount) * (kThreadsOfAnSm / kThreadsOfABlock);
  if (passes.size() != 2 || passes.back().bytes <= at_once * kBlockBytes) return Duration{0};
  double bytes = 0;
  double missing = 0;
  for (const Pass& pass : passes) {
    bytes += pass.bytes;
    missing += missing_bytes(read, pass);
  }
  return seconds_to_duration(kLate * std::max(0.0, 1 - missing / (kHides * bytes)));
}

}  // namespace

KernelCost elementwise_cost(Reading& read, std::span<const Pass> passes) {
  using enum Param;
  Rates rates{BinaryCached, BinaryBandwidth};
  if (passes.size() == 1) rates = {FillCached, FillBandwidth};
  if (passes.size() == 2) rates = {UnaryCached, UnaryBandwidth};
  // One array in place, and nothing else in between.
  constexpr double kRoomOfOne = 0.87;
  std::vector<Pass> in_turn;
  const auto alone = [](const Pass& pass) { return pass.distance == pass.bytes; };
  if (passes.size() == 2 && std::ranges::all_of(passes, alone)) {
    for (const Pass& pass : passes)
      in_turn.push_back(driven_out_in_turn(read, pass, kRoomOfOne, 1));
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
  // What is only read takes less room than what is written, too: sums of one array over and over
  // find nearly all of 40 MiB on an H200, and hardly anything of 56 MiB (memory_kernels.yaml).
  constexpr double kRoom = 0.75, kRoomInTurn = 0.8;
  const Pass reads = driven_out_in_turn(read, pass, kRoomInTurn, kRoom);
  KernelCost cost = memory_bound(read, ReductionBase, {&reads, 1}, {cached, ReductionBandwidth});
  // What kernels have only read before is nearer than what one has just written: without
  // spans, 1.15 us behind each other, 2.7 to 3.0 us for 1 to 512 KiB in whole blocks, up to 1
  // KiB 2.3 to 2.6 (one_tiny_kernel of blind rounds 1 to 36, H200s), the others 3.0 to 3.5. The
  // time that the data move hides it.
  constexpr double kNearer = 0.1, kNearerOfFew = 0.15, kHides = 2, kFew = 1024;
  if (pass.reread && read.takes(Term::Reread)) {
    const double base = read.seconds(ReductionBase);
    const double moving = to_seconds(cost.alone) - base;
    const double nearer = pass.bytes <= kFew ? kNearerOfFew : kNearer;
    cost.alone -= seconds_to_duration(std::max(0.0, nearer * base - kHides * moving));
  }
  return cost;
}

bool is_small_memset(double bytes) {
  return bytes > 0 && bytes <= static_cast<double>(kSmallMemset.count);
}

namespace {

KernelCost on_one_sm(Duration alone) {
  KernelCost cost;
  cost.alone = alone;
  return cost;
}

}  // namespace

KernelCost memset_cost(Reading& read, const Pass& pass, MemsetIn place) {
  using enum Param;
  if (is_small_memset(pass.bytes)) {
    // In a row on a stream one takes 1.25 to 1.84 us with what lies between two, 1.35 in the median
    // of nine programs (one_tiny_kernel of blind rounds 16 to 32, H200s and H100s).
    constexpr Duration kInARow = std::chrono::nanoseconds{250};
    constexpr Duration kFrontEnd = std::chrono::nanoseconds{600};
    if (place == MemsetIn::Stream) return on_one_sm(kInARow);
    // Only kernels of a graph follow each other sooner than on a stream. This one begins 1.2 us
    // behind a kernel, and so does a kernel behind it (spans of 02_llama7b_graph_decode of
    // written-3 and 09_multigrid_v_cycles of written-4, 4 B to 4 KiB, on an H200; six captured
    // chains of blind rounds 17 to 30 want the same, and one that two of them in a row wait once).
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
  constexpr Bytes kLooked{1 << 20};
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
