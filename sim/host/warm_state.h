// What earlier passes of a program leave behind for the one that is simulated.
#pragma once

#include <cstdint>
#include <set>

#include "models/machine/machine.h"
#include "scenarios/program/program.h"
#include "sim/world.h"

namespace foretrace::sim {

/// Sets Process::host_reads as the warm-up left them: host memory that a pass only reads stays in
/// the cache from pass to pass, if all host memory that the process touches in one fits there. What
/// a pass reads no oftener than twice in a row stays only where that is little (node.kept_cache):
/// 16 MiB each of 48 MiB and more came from memory in every pass, of 32 MiB from the cache
/// (hw/laboratory/causes/pageable_footprint.yaml on an H200).
void warm_cache(const Program& program, const Machine& machine, Process& process);

/// How much memory of one device a pass goes through, before the one that is simulated: all of it.
/// Without a warm-up there is no pass before, and nothing is in the level-2 cache: infinite.
double memory_of_a_pass(const Program& program, std::uint32_t device);

/// The communicators of which some graph of the program captures an operation. The members of a
/// family of handles are taken to be one communicator's, as they are in `world(rank)`.
std::set<std::uint32_t> captured_communicators(const Program& program);

}  // namespace foretrace::sim
