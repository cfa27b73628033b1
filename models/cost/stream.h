// What passes between the entries of a CUDA stream: from a call to its work's begin, and from the
// end of one entry to the begin of the next. Pure functions of the machine's parameters.
#pragma once

#include <cstdint>

#include "models/machine/reading.h"

namespace foretrace::cost {

/// What a stream's queue holds. A graph's launch is one entry.
enum class Entry : std::uint8_t { Kernel, Nccl, Copy, HostFunction, Graph, Record, NoTime };

/// From the end of the call to the entry's begin on an idle stream. Records, waits and markers
/// (NoTime) and host functions are there at once.
Duration launch_latency(Reading& read, Entry entry);

/// From the end of what one GPU did until another one knows of it.
Duration hand_over_to_peer(Reading& read);

/// What a stream did last.
enum class Before : std::uint8_t {
  Nothing,
  Kernel,
  Nccl,
  Copy,
  HostFunction,
  Event,          ///< it was held up by another stream's event
  PlainEvent,     ///< the same, and the event takes no time stamp
  OtherStreams,   ///< the legacy default stream was held up by work of blocking ones
  EventAfterCopy  ///< the same, and what that stream did last was a copy
};

/// Two entries of a stream, one behind the other.
struct Neighbours {
  Before before = Before::Nothing;
  Entry next = Entry::NoTime;
  bool in_graph = false;
  bool event_between = false;  ///< a record with a time stamp, or a wait that held nothing up
  bool other_engine = false;   ///< both are copies, but not of one engine
  bool upload = false;         ///< one of the two is a copy from the host to the device
  Bytes copied{};              ///< by the copy of the two, or by the larger one
  bool in_stream = false;  ///< one of the two is a copy that travels among the stream's commands
  /// Where an event has held the stream up: what the event's own stream had just done. A wait there
  /// is no work.
  Before waited_for = Before::Nothing;
};

/// What the hardware needs between the two: from the one's end to the other's begin, when that was
/// queued long before.
Duration gap(Reading& read, const Neighbours& neighbours);

}  // namespace foretrace::cost
