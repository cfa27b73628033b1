#include "hw/emulated/handles.h"

#include <deque>
#include <mutex>

#include "hw/emulated/device.h"

namespace foretrace::emulated {
namespace {

constexpr uintptr_t kSpecialHandles = 3;  // null, cudaStreamLegacy (1), cudaStreamPerThread (2)

struct Handles {
  std::mutex mutex;
  std::deque<Stream> streams;  // never freed: a late call of the program may name them
  std::deque<Event> events;
  std::deque<Stream> defaults;
  uint32_t graphs = 0;
};

Handles& handles() {
  static auto* const the = [] {
    auto* const h = new Handles;
    for (int d = 0; d < device_count(); ++d) {
      h->defaults.emplace_back();
      h->defaults.back().device = d;
    }
    return h;
  }();
  return *the;
}

}  // namespace

Stream& stream_of(void* handle) {
  if (reinterpret_cast<uintptr_t>(handle) < kSpecialHandles)
    return handles().defaults.at(static_cast<size_t>(current_device()));
  return *static_cast<Stream*>(handle);
}

Stream* make_stream(int priority, unsigned flags) {
  const std::lock_guard lock(handles().mutex);
  Stream& stream = handles().streams.emplace_back();
  stream.id = static_cast<uint32_t>(handles().streams.size());
  stream.device = current_device();
  stream.priority = priority;
  stream.flags = flags;
  return &stream;
}

Event* make_event() {
  const std::lock_guard lock(handles().mutex);
  Event& event = handles().events.emplace_back();
  event.id = static_cast<uint32_t>(handles().events.size() - 1);
  return &event;
}

Place on(const Stream& stream) {
  Place place;
  place.stream = stream.id;
  place.graph = stream.graph;
  return place;
}

uint32_t begin_capture(Stream& stream) {
  const std::lock_guard lock(handles().mutex);
  stream.graph = handles().graphs++;
  return stream.graph;
}

void end_capture(uint32_t graph) {
  const std::lock_guard lock(handles().mutex);
  for (auto* const streams : {&handles().streams, &handles().defaults})
    for (Stream& stream : *streams)
      if (stream.graph == graph) stream.graph = kNone;
}

void join_capture(Stream& stream, const Event& event) {
  if (event.graph != kNone && stream.graph == kNone) stream.graph = event.graph.load();
}

uint32_t capturing() {
  const std::lock_guard lock(handles().mutex);
  for (const auto* const streams : {&handles().streams, &handles().defaults})
    for (const Stream& stream : *streams)
      if (stream.graph != kNone) return stream.graph;
  return kNone;
}

}  // namespace foretrace::emulated
