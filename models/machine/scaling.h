// Ratios that move from one GPU to another: what share of its facts a kind of work reaches.
#pragma once

#include <bitset>
#include <string>
#include <vector>

#include "models/machine/machine.h"

namespace foretrace {

/// What `scale:` of a machine file may name.
const std::vector<std::string>& scaled_facts();

/// Rates that `machine` has from `base`, all but those that are `own`, as the base's share of its
/// facts: "memory" those of kernels that are bound by device memory, by gpu.hbm_bandwidth;
/// "arithmetic" those of products and attention, by products.*.peak of their type. Facts that the
/// machine has from its base too change nothing.
void carry_over(const Machine& base, const std::vector<std::string>& facts,
                const std::bitset<kParamCount>& own, Machine& machine);

}  // namespace foretrace
