// What copies cost: the host's part, and the copy engine's. Pure functions of the machine's
// parameters, which the Reading notes. A copy inside one device is a kernel: models/cost/kernel.h.
#pragma once

#include <cstdint>

#include "models/cost/host.h"
#include "models/machine/reading.h"

namespace foretrace::cost {

enum class Route : std::uint8_t {
  HostToHost,
  PinnedToDevice,
  DeviceToPinned,
  PageableToDevice,  ///< through the driver's own pinned memory
  DeviceToPageable,
  PeerDirect,  ///< from GPU to GPU over NVLink
  PeerStaged   ///< without peer access: through the host
};

struct Copy {
  Route route{};
  Bytes size;
  bool from_cache = false;  ///< the host memory that it reads is in the last-level cache
  bool from_core = false;   ///< and the copy before read it, too: the core's own cache has it
  Bytes fresh{};            ///< goes into pages of pageable memory that were never touched
  Bytes staged{};           ///< the driver has this much in its own memory before the copy begins
};

/// How copies have used some host memory lately.
struct RecentReads {
  Bytes read;                   ///< by the last copy; 0: the host has written since
  std::uint32_t reads = 0;      ///< in a row
  std::uint64_t touched = 0;    ///< bytes that the host has touched since, this memory's too
  bool by_host_copies = false;  ///< which write as much as they read, and drive it out sooner
};

/// So many reads in a row bring memory into the last-level cache: the next one finds it there. A
/// property of the driver's copy loop and of caches that keep what is read again, observed on the
/// H200 machines (scenarios/calibration/copies.yaml); no other machine's measurements show it.
inline constexpr std::uint32_t kReadsIntoCache = 2;

/// Whether a copy that reads `size` of it finds that in the cache. Memory that the host has just
/// written is as slow as memory.
bool is_in_cache(Reading& read, const RecentReads& memory, Bytes size);

/// How much of `size` that it copies again and again a core's own cache holds, beside where it
/// goes.
double share_in_core(Reading& read, Bytes size);

/// Of an upload from pageable memory, the end that the copy engine moves once the host has staged
/// all: the driver stages piece by piece, and each piece goes on while the host stages the next.
Bytes last_piece(Bytes size);

/// What the host takes to stage `size` of it.
Duration stage_time(Reading& read, const Copy& copy, Bytes size);

/// From the call to its return, where it does not wait for the copy: with what the host moves
/// itself.
Duration copy_call_time(Reading& read, const Call& call, const Copy& copy);

/// The parameter that `copy_call_time` has for a call of its own.
Param copy_call(const Machine& machine, Route route);

/// How much of an upload from pageable memory the driver stages during the call, behind a busy
/// stream: all of it up to a limit, then nobody waits for the copy.
Bytes staged_during_the_call(Reading& read, const Copy& copy);

/// Whether the driver fetches a copy to pageable memory through memory of its own, piece by piece.
bool is_fetched_in_pieces(Reading& read, const Copy& copy);

/// Up to here a copy from pageable memory travels in the command stream: the host does not wait.
bool travels_with_the_call(Reading& read, const Copy& copy);

/// What the copy engine does: `latency`, then `bytes` through the links of the route, of which a
/// single copy gets at most the parameter `rate`.
struct EngineCost {
  Duration latency;
  Bytes bytes;
  Param rate{};
};
EngineCost engine_cost(Reading& read, const Copy& copy);

/// From the copy's begin to its end, when no other copy shares its links.
Duration copy_time(Reading& read, const Copy& copy);

}  // namespace foretrace::cost
