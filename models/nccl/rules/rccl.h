// RCCL's choice on one node of eight MI300X, from its source (github.com/ROCm/rccl, version 2.21.5
// of ROCm 6.3, commit 0cbce2a7). RCCL is NCCL's twin on AMD: the same functions, algorithms and
// protocols, prices of its own. What is here is what RCCL's own rules say; nothing was measured.
//
// Known: algorithm, protocol, channels and threads of all_reduce, all_gather, reduce_scatter,
// broadcast and reduce. Not here: other numbers of GPUs (RCCL searches for rings then), several
// nodes, other GPUs, sends and receives, and MSCCL: of all_reduce up to 16 MiB RCCL lets MSCCL's
// schedules take over unless RCCL_MSCCL_ENABLE=0.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "models/nccl/rules/tuning.h"

namespace foretrace::nccl {

/// "rccl-2.21.5" is 2.21.5; nothing for versions of NCCL. Throws UsageError for other versions of
/// RCCL.
std::optional<Version> parse_rccl_version(std::string_view text);

/// Throws UsageError where RCCL's rules are not known here.
Tuning tune_rccl(const Topology& topology, Version version, const Settings& settings = {});

/// Why RCCL does not take a protocol that has a bandwidth, or has none; empty when it may.
std::string rccl_why_out(Algorithm algorithm, Protocol protocol);

/// What MSCCL does instead when it is not switched off: a sentence, or nothing.
std::string msccl_instead(const Request& request);

}  // namespace foretrace::nccl
