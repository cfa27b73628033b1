// What a machine that is based on another one does not simply take from it, because it has other
// links or slots: models/machines/links/, and facts of the GPU's kind.
#pragma once

#include <optional>
#include <string>

#include "models/machine/machine.h"

namespace foretrace {

/// "pcie" or "nvlink_bridge": the file in models/machines/links/ whose parameters hold where
/// `machine` has such a link between its GPUs and `base` has not. None where both are of one kind,
/// or where NCCL's view of a GPU is not known.
std::optional<std::string> link_file(const Machine& base, const Machine& machine);

/// The file in models/machines/link_rules/ that says how far tables of nccl-tests were off where
/// such a machine was predicted by another one's file: another GPU of its generation, of another
/// generation, or its own GPU by other links. None where `base` is of the same GPU and links, or
/// `machine` has no NVLink (link_file).
std::optional<std::string> tables_file(const Machine& base, const Machine& machine);

/// Rates that follow from the machine's own facts: nvlink.bandwidth from its GPU's number of links,
/// or from its slot where it has none; copies to and from the host from the generation of its slot.
/// Changes what `machine` has from `base`.
void set_rates_of_links(const Machine& base, Machine& machine);

}  // namespace foretrace
