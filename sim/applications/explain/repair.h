// What can slow a program down besides its own work, and the same program without it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "models/machine/machine.h"
#include "scenarios/program/program.h"

namespace foretrace::explain {

enum class Cause : std::uint8_t {
  Host,             ///< the GPU waits for the calls of its host thread
  Synchronization,  ///< the host waits for the GPU, and has nothing queued then
  Copy,             ///< copies from and to pageable memory
  Straggler,        ///< one process takes longer than the others in the same place
  Communication,    ///< links: NCCL's transfers and copies between GPUs
  Bubble            ///< a stage waits for what another one sends
};
inline constexpr std::array kCauses{Cause::Host,      Cause::Synchronization, Cause::Copy,
                                    Cause::Straggler, Cause::Communication,   Cause::Bubble};

/// "launch-bound host"
std::string_view name_of(Cause cause);
/// What was changed: "calls of the host take no time".
std::string_view change_of(Cause cause);

/// Takes the cause away: from the program, or from the machine. False when there is nothing to take
/// away.
///
/// - Host: calls take a thousandth of their time.
/// - Synchronization: waits for streams, events and devices inside loops are gone.
/// - Copy: pageable buffers are pinned.
/// - Straggler: threads of the same shape take, operation by operation, the least duration of a
///   spin or host_compute among them.
/// - Communication: NCCL's own choice where the program has settings of NCCL; else links that are a
///   thousand times as fast.
/// - Bubble: sends and receives inside loops are gone, and so nobody waits for another stage.
bool take_away(Cause cause, Program& program, Machine& machine);

}  // namespace foretrace::explain
