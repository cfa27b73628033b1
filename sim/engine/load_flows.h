// Loads the library that links SimGrid. It is looked for where the program says (its RUNPATH:
// lib/foretrace of the installation, or the build), where LD_LIBRARY_PATH says, and in the
// lib/foretrace that belongs to the share/foretrace that FORETRACE_DATA names.
#pragma once

#include <cstddef>

#include "sim/engine/flows.h"

namespace foretrace::sim {

/// Throws IoError, which names what cannot be loaded: nothing can be predicted then, so it must not
/// pass for a program that this machine cannot run.
const FlowsLibrary& load_flows();

/// Before forking children that are likely to start flows: once here instead of in each of them.
/// They say it when it cannot be loaded.
void load_flows_ahead() noexcept;

/// SimGrid's solver calls itself from link to link: a ring over 65,536 GPUs took twice the usual
/// 8 MiB. And there are users with limits of 64 KiB, which readers and pages exceed. Whether there is
/// that room: a hard limit may be lower.
bool make_room_on_the_stack() noexcept;
inline constexpr std::size_t kRoomOnTheStack = std::size_t{112} << 20;

}  // namespace foretrace::sim
