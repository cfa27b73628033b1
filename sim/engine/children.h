// Many simulations: SimGrid allows one per process, so each runs in a forked child and sends its
// numbers back through a pipe.
#pragma once

#include <functional>
#include <vector>

namespace foretrace {

using Job = std::function<std::vector<double>()>;

/// What each job returned, in the order of the jobs; as many children at once as there are cores.
/// Call before any engine of this process has had a flow. Throws std::runtime_error when a child
/// dies.
std::vector<std::vector<double>> run_in_children(const std::vector<Job>& jobs);

}  // namespace foretrace
