// Operations that put others in order, and those that give and take memory.
#pragma once

#include "scenarios/program/ids.h"

namespace foretrace {

// clang-format off: one line per operation reads as a table

// ---- order -----------------------------------------------------------------------------------

/// The event captures the work queued on the stream so far; completes when that has ended.
struct EventRecord {
  EventRef event;
  StreamRef stream;
};
/// Later work of `stream` begins after the event's latest record completed. An event never
/// recorded counts as complete.
struct StreamWaitEvent {
  StreamRef stream;
  EventRef event;
};
/// Returns when the event's latest record completed.
struct EventSynchronize {
  EventRef event;
};
struct EventQuery {
  EventRef event;
};
/// cudaEventElapsedTime between two completed timing events: from the completion of `start` to that
/// of `end`. With an id the value is a result of that name, compared as a region's time is.
struct EventElapsedTime {
  EventRef start, end;
};
/// Polls every `poll` until the event completed; after `timeout` the operation has failed, and
/// the run with it (exit code 1).
struct EventWaitFor {
  EventRef event;
  DurationExpr timeout, poll;
};
struct StreamSynchronize {
  StreamRef stream;
};
struct StreamQuery {
  StreamRef stream;
};
/// Returns when all streams of `device` have ended their work.
struct DeviceSynchronize {
  Expr device;
};

// ---- memory: a buffer that one of these allocates is not allocated before the run -------------

/// cudaMalloc; ncclMemAlloc where the buffer is of `memory: nccl`.
struct Malloc {
  BufferRef buffer;
};
/// cudaFree: waits for the work of the buffer's device, as measured. ncclMemFree where the buffer
/// is of `memory: nccl`.
struct Free {
  BufferRef buffer;
};
struct MallocAsync {
  BufferRef buffer;
  StreamRef stream;
};
struct FreeAsync {
  BufferRef buffer;
  StreamRef stream;
};
/// cudaHostAlloc: pinned memory; costs time per byte.
struct HostAlloc {
  BufferRef buffer;
};
struct HostFree {
  BufferRef buffer;
};
/// cudaHostRegister: pins a pageable buffer until host_unregister or the end of the pass.
struct HostRegister {
  BufferRef buffer;
};
/// cudaHostUnregister: the buffer is pageable again. Returns after the work of all streams of the
/// process' devices, as seen on an H200.
struct HostUnregister {
  BufferRef buffer;
};

// clang-format on

}  // namespace foretrace
