#include <initializer_list>

#include "models/cost/products/time.h"

namespace foretrace::products {
namespace {

using enum Param;

/// What differs from family to family.
struct FamilyParams {
  Param arithmetic, operands, results, peak;
};

FamilyParams params_of(Family family) {
  switch (family) {
    case Family::Half:
      return {ProductsHalfRate, ProductsHalfOperands, ProductsHalfResults, ProductsHalfPeak};
    case Family::HalfPairs:
      return {ProductsPairsRate, ProductsPairsOperands, ProductsPairsResults, ProductsHalfPeak};
    case Family::HalfOdd:
      return {ProductsOddRate, ProductsOddOperands, ProductsOddResults, ProductsHalfPeak};
    case Family::Tf32:
      return {ProductsTf32Rate, ProductsTf32Operands, ProductsTf32Results, ProductsTf32Peak};
    case Family::Tf32Turned:
      return {ProductsTurnedRate, ProductsTurnedOperands, ProductsTurnedResults, ProductsTf32Peak};
    case Family::Tf32Odd:
      return {ProductsTf32OddRate, ProductsTf32OddOperands, ProductsTf32OddResults,
              ProductsTf32Peak};
    case Family::Float32:
      return {ProductsF32Rate, ProductsF32Operands, ProductsF32Results, ProductsF32Peak};
    case Family::Float64:
      break;
  }
  return {ProductsF64Rate, ProductsF64Operands, ProductsF64Results, ProductsF64Peak};
}

}  // namespace

bool has_speeds(const Machine& machine, Family family) {
  const FamilyParams params = params_of(family);
  for (const Param param : {ProductsStart, ProductsClockSlope, params.arithmetic, params.peak}) {
    if (!machine.has(param)) return false;
  }
  return true;
}

Speeds read_speeds(Reading& read, Family family) {
  const FamilyParams params = params_of(family);
  const double arithmetic = read.rate(params.arithmetic);
  return {
      .sms = read.value(SmCount),
      .start = read.seconds(ProductsStart),
      .graph_start = read.seconds(ProductsGraphStart),
      .arithmetic = arithmetic,
      .arithmetic_apart = family == Family::Half ? read.rate(ProductsHalfRateApart) : arithmetic,
      .operands = read.rate(params.operands),
      .results = read.rate(params.results),
      .cache = read.rate(ProductsCache),
      .cache_size = read.value(L2Size),
      .memory = read.rate(ProductsMemory),
      .split_start = read.seconds(ProductsSplitStart),
      .split_rate = read.rate(ProductsSplitRate),
      .split_turn = read.has(ProductsSplitTurn) ? read.seconds(ProductsSplitTurn) : 0,
      .peak = read.rate(params.peak),
      .residents = read.has(ProductsResidents) ? read.value(ProductsResidents) : 0};
}

}  // namespace foretrace::products
