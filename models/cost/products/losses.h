// What a plan takes beside what the formula of time.h says.
//
// The formula has waves, arithmetic, operands and memory; kernels have stages, clusters and
// epilogues as well, which cost some shapes a tenth and more. Networks learned that from the same
// kernels on an H200 and on an H100 together (`foretrace fit-products --losses`), from shares of
// the formula's parts and not from speeds: so a machine with other speeds, or changed ones, has its
// own time and the same losses.
#pragma once

#include <array>
#include <vector>

#include "models/cost/products/network.h"
#include "models/cost/products/traits.h"

namespace foretrace::products {

/// traits_of() by library_speeds(), then logarithms to the base of 2 of the shares that start,
/// arithmetic, operands, results, memory and the sum of the parts have of the plan's time.
constexpr std::size_t kLossTraits = kTraits + 6;
using LossTraits = std::array<float, kLossTraits>;
LossTraits loss_traits(const Shape& shape, const Plan& plan, const Speeds& speeds);

/// A factor on the plan's time: the geometric mean of what some networks say, at most 1.6 and at
/// least its inverse, and the nearer to 1 the longer the plan takes than any that was learned from.
/// 1 for families that have none. Operands are taken to be in the cache if they fit.
double takes(const Shape& shape, const Plan& plan, const Speeds& speeds);

/// The logarithm of that factor, by some networks.
double loss_of(const LossTraits& traits, const std::vector<Network>& networks);

/// Both families with an odd leading dimension have the same.
const std::vector<Network>& recorded_losses(Family family);

}  // namespace foretrace::products
