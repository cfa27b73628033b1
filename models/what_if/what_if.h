// What if the machine were another: `--with nvlink=0.5x --with nccl.gap=2us`.
#pragma once

#include <string>
#include <vector>

#include "models/machine/machine.h"

namespace foretrace {

/// One parameter, or the NICs' bandwidth, that a what-if has changed.
struct Changed {
  std::string what_if;  ///< "pcie=0.5x": what changed it
  std::string key;      ///< "copy.h2d_bandwidth", "node.nic_bandwidth"
  std::string from;     ///< "55 GB/s"
  std::string to;
};

/// Changes `machine` by "NAME=VALUE", in order. NAME is a word (names.h) or a parameter's key;
/// VALUE is a factor (0.5x, *0.5, /2, 50%) or, with a unit, a value (200 GB/s). Speeds of a word
/// grow by the factor, its times shrink by it; a parameter of its own is multiplied. The machine's
/// name says what was changed. Throws UsageError.
std::vector<Changed> apply_what_ifs(Machine& machine, const std::vector<std::string>& what_ifs);

/// load_machine, and then apply_what_ifs.
Machine load_machine_with(const std::string& name_or_path,
                          const std::vector<std::string>& what_ifs);

}  // namespace foretrace
