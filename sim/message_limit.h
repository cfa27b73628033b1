// What --fidelity chunk would take, before it is simulated: every slice is a message of its own.
#pragma once

#include <vector>

#include "scenarios/program/program.h"
#include "scenarios/base/text/diagnostic.h"

namespace foretrace::sim {

class World;

/// An error at the operation that passes on most slices, where all together are more than can be
/// simulated, or where one has too many ways. `world` is that of `program`, at chunk fidelity;
/// `runs`: which processes execute.
///
/// An estimate: groups of several collectives, which stay flows, and captured operations are left
/// out, a loop's sizes are the mean of its first and its last, and processes that share a thread
/// are taken to be alike. What it misses meets the same bound while it is simulated.
Diagnostics too_many_messages(const Program& program, World& world, const std::vector<bool>& runs);

}  // namespace foretrace::sim
