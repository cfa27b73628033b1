// What a plan takes beside what the formula of time.h says.
//
// The formula has waves, arithmetic, operands and memory; kernels have stages, clusters and
// epilogues as well, which cost some shapes a tenth and more. Networks learned that from the same
// kernels on an H200 and on an H100 together (`foretrace fit-products --residuals`), from shares of
// the formula's parts and not from speeds: so a machine with other speeds, or changed ones, has its
// own time and the same residuals.
#pragma once

#include <array>
#include <vector>

#include "models/cost/products/network.h"
#include "models/cost/products/traits.h"

namespace foretrace::products {

/// traits_of() by the heuristic's speeds, then logarithms to the base of 2 of the shares that
/// start, arithmetic, operands, results, memory and the sum of the parts have of the plan's time.
constexpr std::size_t kResidualTraits = kTraits + 6;
using ResidualTraits = std::array<float, kResidualTraits>;
ResidualTraits residual_traits(const Shape& shape, const Plan& plan, const Speeds& speeds);

struct Residual {
  std::vector<Network> networks;  ///< none: a factor of 1
  double most = 0;                ///< the factor's logarithm is held between this and its negative
  double longest = 0;             ///< s, of the products that were learned from
};

/// A factor on the plan's time: the geometric mean of what the family's networks say, the nearer to
/// 1 the longer the plan takes than any that was learned from. 1 for families that have none.
/// Operands are taken to be in the cache if they fit.
double residual_factor(const Shape& shape, const Plan& plan, const Speeds& speeds);

/// The logarithm of that factor, by some networks.
double residual_of(const ResidualTraits& traits, const std::vector<Network>& networks);

/// As learned by `foretrace fit-products --residuals`: models/products/residual. Both families with
/// an odd leading dimension have the same.
const Residual& recorded_residual(Family family);

}  // namespace foretrace::products
