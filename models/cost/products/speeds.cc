#include <initializer_list>

#include "models/constants/constants.h"
#include "models/cost/products/facts.h"

namespace foretrace::products {
namespace {

using enum Param;

/// What differs from family to family.
struct FamilyParams {
  Param arithmetic, operands, results, peak;
  Param residents = ProductsResidents, sum_start = ProductsSplitStart, sum_rate = ProductsSplitRate;
};

FamilyParams params_of(Family family) {
  switch (family) {
    case Family::Half:
      return {ProductsHalfRate, ProductsHalfOperands, ProductsHalfResults, ProductsHalfPeak};
    case Family::HalfPairs:
      return {ProductsPairsRate,      ProductsPairsOperands, ProductsPairsResults, ProductsHalfPeak,
              ProductsPairsResidents, ProductsOlderSumStart, ProductsOlderSumRate};
    case Family::HalfOdd:
    case Family::Bf16Odd:
      return {ProductsOddRate,      ProductsOddOperands,   ProductsOddResults,  ProductsHalfPeak,
              ProductsOddResidents, ProductsOlderSumStart, ProductsOlderSumRate};
    case Family::Tf32:
      return {ProductsTf32Rate, ProductsTf32Operands, ProductsTf32Results, ProductsTf32Peak};
    case Family::Tf32Transposed:
      return {ProductsTransposedRate, ProductsTransposedOperands, ProductsTransposedResults,
              ProductsTf32Peak};
    case Family::Tf32Odd:
      return {ProductsTf32OddRate, ProductsTf32OddOperands, ProductsTf32OddResults,
              ProductsTf32Peak};
    case Family::Float32:
    case Family::Vector:
      return {ProductsF32Rate, ProductsF32Operands, ProductsF32Results, ProductsF32Peak};
    case Family::Float64:
    case Family::Unmeasured:
      break;
  }
  return {ProductsF64Rate, ProductsF64Operands, ProductsF64Results, ProductsF64Peak};
}

double known(Reading& read, Param param) { return read.has(param) ? read.value(param) : 0; }

/// What operands that were written last cost. Float32's kernels show none of it.
double fresh_of(Reading& read, Family family) {
  if (family == Family::Half) return known(read, ProductsHalfFresh);
  const bool older = family == Family::HalfPairs || is_odd(family);
  return older ? known(read, ProductsOlderFresh) : 0;
}

}  // namespace

bool has_speeds(const Machine& machine, Family family) {
  if (family == Family::Unmeasured) return false;
  const FamilyParams params = params_of(family);
  for (const Param param : {ProductsStart, ProductsClockSlope, params.arithmetic, params.peak}) {
    if (!machine.has(param)) return false;
  }
  return true;
}

Speeds read_speeds(Reading& read, Family family) {
  FamilyParams params = params_of(family);
  if (!read.has(params.sum_rate)) {
    params.sum_start = ProductsSplitStart;
    params.sum_rate = ProductsSplitRate;
  }
  const double arithmetic = read.rate(params.arithmetic);
  return {
      .family = family,
      .sms = read.value(SmCount),
      .start = read.seconds(ProductsStart),
      .graph_start = read.seconds(ProductsGraphStart),
      .arithmetic = arithmetic,
      .arithmetic_apart = family == Family::Half ? read.rate(ProductsHalfRateApart) : arithmetic,
      .operands = read.rate(params.operands),
      .results = read.rate(params.results),
      .straddle = family == Family::Half ? known(read, ProductsHalfStraddle) : 0,
      .across = is_odd(family) ? constant("gemm.odd_across") : 0,
      .cache = read.rate(ProductsCache),
      .cache_size = read.value(L2Size),
      .memory = read.rate(ProductsMemory),
      .split_start = read.seconds(params.sum_start),
      .split_rate = read.rate(params.sum_rate),
      .split_turn = known(read, ProductsSplitTurn),
      .peak = read.rate(params.peak),
      .fresh = fresh_of(read, family),
      .residents = known(read, params.residents),
      .without = read.machine().without()};
}

Speeds read_speeds(Reading& read, const Shape& shape) {
  const Family family = family_of(shape);
  if (has_speeds(read.machine(), family)) return read_speeds(read, family);
  Speeds speeds = speeds_of(read_gpu_facts(read, shape.arithmetic), read_tile_ratios(read));
  speeds.without = read.machine().without();
  return speeds;
}

}  // namespace foretrace::products
