// The words of a planner, and the parameters that each stands for.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/machine/machine.h"

namespace foretrace {

struct WhatIfName {
  std::string_view name;  ///< "hbm"
  std::string_view text;  ///< what `--help` and errors say of it
  Param first;  ///< an absolute value is that of this one; the others follow in proportion
};

/// nvlink, nic, hbm, pcie, host, gemm. `nic` is no parameter but a fact of the node.
std::span<const WhatIfName> what_if_names();

/// The parameters of `machine` that `name` stands for: rates, and times, which go the other way.
std::vector<Param> params_of(const Machine& machine, std::string_view name);

}  // namespace foretrace
