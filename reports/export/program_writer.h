// A scenario as it was read, as JSON: what an executor in another language runs (hw/pytorch).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "scenarios/program/program.h"

namespace foretrace {

/// Objects by number; "threads" with the operations of each, blocks with theirs in "ops"; "ops" as
/// a timeline has them (timeline.schema.json). Bytes and picoseconds are integers.
///
/// A value that depends on loops or on the process is {"postfix": [...]}: numbers, "process", "i1"
/// for the index of the outermost loop, and operators; division and remainder round down. A
/// reference to a member of a family is {"first": N, "index": VALUE}, a plain one N.
nlohmann::ordered_json program_json(const Program& program);

}  // namespace foretrace
