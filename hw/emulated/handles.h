#pragma once
// Streams, events and graphs behind CUDA's handles.
#include <atomic>
#include <cstdint>

#include "hw/emulated/record.h"

namespace foretrace::emulated {

struct Stream {
  uint32_t id = 0;
  int device = 0, priority = 0;
  unsigned flags = 0;
  std::atomic<uint32_t> graph{kNone};  // that captures it
};

struct Event {
  uint32_t id = 0;
  std::atomic<uint32_t> graph{kNone};  // in whose capture it was recorded last
};

// The stream of a handle: null, cudaStreamLegacy and cudaStreamPerThread are the device's default.
Stream& stream_of(void* handle);
Stream* make_stream(int priority, unsigned flags);
Event* make_event();

// Place of a call on a stream.
Place on(const Stream& stream);

// Captures: `begin` gives the graph's id.
uint32_t begin_capture(Stream& stream);
void end_capture(uint32_t graph);
// Another stream joins the capture of the event that it waits for.
void join_capture(Stream& stream, const Event& event);
// The graph that any stream captures, or kNone.
uint32_t capturing();

}  // namespace foretrace::emulated
