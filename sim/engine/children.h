// Many simulations: SimGrid allows one per process, so each runs in a forked child and sends its
// numbers back through a pipe.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace foretrace {

using Job = std::function<std::vector<double>()>;

/// After each job, and when a signal has come: whether to go on. `done` are over.
using GoOn = std::function<bool(std::size_t done)>;

/// What each job returned, in the order of the jobs; as many children at once as there are cores.
/// What `go_on` stops returns nothing: its children are killed, and only this process is told of an
/// interrupt. Call before any engine of this process has had a flow. Throws std::runtime_error when
/// a child dies.
std::vector<std::vector<double>> run_in_children(const std::vector<Job>& jobs,
                                                 const GoOn& go_on = {});

}  // namespace foretrace
