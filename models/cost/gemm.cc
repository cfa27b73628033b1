#include <algorithm>
#include <chrono>
#include <cmath>

#include "models/constants/constants.h"
#include "models/cost/kernel.h"
#include "models/cost/products/choice.h"
#include "scenarios/program/product_type.h"

namespace foretrace::cost {
namespace {

products::Arithmetic arithmetic_of(const Product& product) {
  using enum products::Arithmetic;
  if (product.type == DataType::Float32) return product.tf32 ? Tf32 : Float32;
  if (product.type == DataType::Float64) return Float64;
  if (product.type == DataType::Float4E2M1) return Float4;
  if (product.type == DataType::Int8) return Int8;
  const bool f8 = product.type == DataType::Float8E4M3 || product.type == DataType::Float8E5M2;
  return f8 ? Float8 : Half;
}

products::Shape shape_of(const Product& product) {
  products::Shape shape{.m = product.m,
                        .n = product.n,
                        .k = product.k,
                        .arithmetic = arithmetic_of(product),
                        .transposes_a = product.transposes_a,
                        .transposes_b = product.transposes_b,
                        .batch = product.batch,
                        .accumulates = product.accumulates,
                        .is_bf16 = product.type == DataType::BFloat16};
  if (is_narrow(product.type)) shape.operand_bytes = bytes_each(product.type, product.scales);
  if (product.scales == Scales::Packed) {
    shape.first_bytes = bytes_each(product.type, product.scales);
  }
  return shape;
}

/// What a product takes beyond its start is its waves' time.
void set_blocks(KernelCost& cost, const products::Times& times, double seconds) {
  constexpr std::int64_t kMostBlocks = 1'000'000;  // beyond, single blocks do not matter
  if (times.blocks > kMostBlocks) return;
  cost.waves.blocks = static_cast<std::uint32_t>(times.blocks);
  const double in_waves = std::max(0.0, seconds - times.start - times.split);
  const auto waves = static_cast<double>(times.waves);
  const double last = times.last.share > 0 ? in_waves * times.last.share : in_waves / waves;
  cost.waves.block_time = seconds_to_duration(waves > 1 ? (in_waves - last) / (waves - 1) : last);
  if (times.last.share == 0) return;
  cost.waves.last_time = seconds_to_duration(last);
  cost.waves.early_sms = static_cast<std::uint32_t>(times.last.fewer);
  cost.waves.early_time = seconds_to_duration(last * times.last.fewer_share);
}

/// How often a small product of an older kernel waits for data beside kernels that use all of the
/// memory's bandwidth. A part of k that CUTLASS' float32 kernels load at once waits once; tiles of
/// 64 x 64 in bfloat16 wait for each 32 of k.
double data_waits(products::Family family, const products::Shape& shape,
                  const products::Plan& plan) {
  static const double kOnce = constant("gemm.data_waits.once");
  static const double kHalf = constant("gemm.data_waits.half");
  static const double kFloat32 = constant("gemm.data_waits.float32");
  static const double kMost = constant("gemm.data_waits.most");
  static const std::int64_t kAtOnce = constant_count("gemm.data_waits.at_once");
  constexpr std::int64_t kBf16Step = 32;
  const std::int64_t part = products::parts(shape.k, std::max<std::int64_t>(1, plan.split));
  if (family == products::Family::Bf16Odd) {
    const auto steps = static_cast<double>(products::parts(part, kBf16Step));
    return std::clamp(kOnce * steps, kHalf, kMost);
  }
  if (family != products::Family::Float32) return kHalf;
  return plan.padded && part <= kAtOnce ? kOnce : kFloat32;
}

/// Of higher priority beside kernels that use all of the memory's bandwidth. nvjet's kernels wait
/// as long for their data as for their place. Older kernels of few blocks find a place as soon, and
/// wait longer.
void set_priority_waits(Reading& read, KernelCost& cost, products::Family family,
                        const products::Shape& shape, const products::Plan& plan,
                        std::int64_t waves) {
  if (family == products::Family::Half) {
    cost.room.data_waits = 1;
    return;
  }
  cost.room.fills_an_sm = waves > 1;
  if (cost.room.fills_an_sm) return;
  cost.room.data_waits = read.takes(Term::DataWaits) ? data_waits(family, shape, plan) : 1;
}

/// What the library asks of the host to prepare such a kernel, as a multiple of what it asks for
/// one of Hopper's (Family::Half). Kernels that nobody timed count as those.
double call_share(products::Family family, const products::Plan& plan) {
  using enum products::Family;
  static const double kCutlass = constant("gemm.call.cutlass");
  static const double kFloat32 = constant("gemm.call.float32");
  static const double kFloat64 = constant("gemm.call.float64");
  if (family == Float64) return kFloat64;
  if (family == Float32) return plan.padded ? kCutlass : kFloat32;
  const bool cutlass = family == HalfPairs || is_odd(family) || family == Tf32Odd ||
                       family == Vector;  // a vector 0.76 in small_float32_vectors of written-1
  return cutlass ? kCutlass : 1;
}

/// Of a product that takes `rested` seconds in a row of such. On a stream what passes between two
/// kernels is in that. Nodes of a graph are without it, but were timed behind themselves.
Duration own_time(Reading& read, const Product& product, double rested) {
  static const Duration kBehindOthers = constant_time("gemm.behind_others");
  const Duration time = seconds_to_duration(rested);
  if (product.in_graph) return read.takes(Term::BehindOthers) ? time + kBehindOthers : time;
  const Duration between = read.has(Param::KernelGap) ? read.time(Param::KernelGap) : Duration{0};
  return std::max(Duration{0}, time - between);
}

}  // namespace

KernelCost gemm_cost(Reading& read, const Product& product) {
  constexpr double kLoss = 0.1;  // of the clock, to find out what a loss does
  products::Shape shape = shape_of(product);
  const products::Speeds speeds = read_speeds(read, shape);
  const products::Family family = speeds.family;
  if (family == products::Family::Unmeasured) {
    shape.result_bytes = static_cast<std::uint32_t>(size_of(product.result).count);
  }
  const std::vector<products::Choice> choices = likely_choices(shape, speeds);
  shape.cached = product.cached_eighths / 8.0;  // the library does not know
  shape.fresh = product.fresh;
  const auto at = [&](double clock) {
    return mean_time(shape, choices, speeds, clock, product.in_graph);
  };
  const double rested = at(1);
  const products::Times times = time_of(shape, choices.front().plan, speeds, 1, product.in_graph);
  KernelCost cost;
  cost.alone = own_time(read, product, rested);
  cost.sms = static_cast<std::uint32_t>(std::min(speeds.sms, static_cast<double>(times.blocks)));
  set_blocks(cost, times, rested);
  if (family == products::Family::Half && cost.waves.blocks > 0 && read.takes(Term::PairedTiles)) {
    cost.waves.blocks =
        static_cast<std::uint32_t>(paired_tiles(shape, choices.front().plan, speeds.sms));
  }
  cost.hbm_bytes_per_second = times.sizes.moved / rested;
  // cuBLAS' kernels for this GPU stay on their SMs and take one tile after the other; older ones
  // have a block for each tile, and between two of them a kernel of higher priority gets its place.
  cost.waves.keeps_its_sms = family == products::Family::Half;
  // Blocks that begin late; with more waves it is in their time.
  static const Duration kPrologue = constant_time("gemm.prologue");
  const bool late = cost.waves.keeps_its_sms && times.waves == 1;
  if (late && read.takes(Term::Prologue)) cost.waves.again = kPrologue;
  double in_parts = 0;
  cost.call_share = 0;
  for (const products::Choice& choice : choices) {
    cost.call_share += choice.chance * call_share(family, choice.plan);
    if (choice.plan.has_second_kernel()) in_parts += choice.chance;
  }
  if (!read.takes(Term::CallShare)) cost.call_share = 1;
  cost.waves.staggers = family != products::Family::Half && choices.front().plan.resident > 0;
  const bool is_in_parts = in_parts > 0.5;
  const auto likely = std::ranges::find_if(choices, [&](const products::Choice& choice) {
    return choice.plan.has_second_kernel() == is_in_parts;
  });
  const products::Plan& plan = likely->plan;
  if (is_in_parts) {
    cost.kernels = 2;
    const double sum = time_of(shape, plan, speeds, 1, product.in_graph).split;
    cost.then = std::min(cost.alone, seconds_to_duration(sum));
    cost.alone -= cost.then;
  }
  set_priority_waits(read, cost, family, shape, plan, times.waves);
  if (read.has(Param::ProductsClockSlope)) {
    cost.clock.lost = lost_clock(read, shape, rested, speeds, product.contents);
    cost.clock.averages = product.contents == products::Contents::Normal;
    cost.clock.share = (at(1 - kLoss) / rested - 1) / kLoss;
  }
  const bool half = product.type == DataType::Float16 || product.type == DataType::BFloat16;
  if (half && read.has(Param::GemmHalfPairLoss)) {
    cost.room.pair_loss = read.value(Param::GemmHalfPairLoss);
  }
  return cost;
}

}  // namespace foretrace::cost
