// How long an operation takes on a machine and what of: the same answer that a simulation uses.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "models/nccl/explain/explain.h"

namespace foretrace::nccl {

/// Throws UsageError for a parameter that the
/// machine lacks.
TimeExplanation explain_time(const Machine& machine, const Question& question,
                             const Tuning& tuning);

/// Two lines: the terms, and the parameters that decide.
std::string time_text(const TimeExplanation& explanation);
nlohmann::ordered_json time_json(const TimeExplanation& explanation);

}  // namespace foretrace::nccl
