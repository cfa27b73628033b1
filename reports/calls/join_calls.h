// A predicted step joined call by call with a measured one that is of no program: what
// `python3 -m foretrace measure` saw of a user's script, whose capture was simulated.
#pragma once

#include "reports/timeline/timeline.h"

namespace foretrace {

/// Among the versions of a prediction that was captured, and of a measured step: which script, with
/// which arguments, in how many ranks; scenarios/pytorch/foretrace/environment.py makes it.
inline constexpr const char* kScriptDigest = "script_digest";

/// Whether the timeline is a measured step that a prediction can be joined with.
bool is_measured_step(const Timeline& timeline);

struct JoinedStep {
  Timeline predicted;  ///< one step: the first one of the region's last turn, from its begin on
  Timeline measured;   ///< its spans carry the operation and instance of their partner's
};

/// Both sides begin a step with an idle GPU, and list the same operations then. In the order of the
/// host's calls, by process: what has the same kernel's name, direction and size, or collective
/// pairs first; then what the same operation of PyTorch called; what is left stays alone, a row of
/// its own behind the program's. Throws UsageError where the prediction has no region of the
/// measured one's name.
JoinedStep join_calls(const Timeline& predicted, const Timeline& measured);

}  // namespace foretrace
