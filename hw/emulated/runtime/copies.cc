// cudaMemcpy, cudaMemset and their relatives.
#include <cstdint>
#include <cstring>

#include "hw/emulated/device.h"
#include "hw/emulated/exported.h"
#include "hw/emulated/handles.h"
#include "hw/emulated/memory.h"
#include "hw/emulated/record.h"
#include "hw/emulated/runtime/errors.h"
#include "hw/emulated/values.h"

using namespace foretrace::emulated;

namespace {

struct Copy {
  void* to;
  const void* from;
  size_t bytes;
  bool async;
  const char* more = "";  // keys of JSON
};

int copy(const Copy& c, void* handle) {
  const LibraryTime time;
  const bool to_gpu = on_device(c.to), from_gpu = on_device(c.from);
  const char* direction = to_gpu ? (from_gpu ? "d2d" : "h2d") : from_gpu ? "d2h" : "h2h";
  std::string more = c.more;
  if (to_gpu && from_gpu) {
    const auto to = allocation_of(c.to), from = allocation_of(c.from);
    if (to && from && to->device != from->device) {
      direction = "p2p";
      more += format(R"(,"peer":[%d,%d])", from->device, to->device);
    }
  } else if (pinned(to_gpu ? c.from : c.to)) {
    more += R"(,"pin":true)";
  }
  const Place place = on(stream_of(handle));
  record(time,
         format(R"("k":"copy","dir":"%s","n":%zu%s%s)", direction, c.bytes,
                c.async ? R"(,"async":true)" : "", more.c_str()),
         place);
  carry(c.to, c.from, c.bytes, from_gpu && !to_gpu);
  if (const std::string read = last_read(); !read.empty()) record(time, read, place);
  return kSuccess;
}

int set(void* to, int value, size_t bytes, void* handle, bool async) {
  const LibraryTime time;
  record(time, format(R"("k":"memset","n":%zu%s)", bytes, async ? R"(,"async":true)" : ""),
         on(stream_of(handle)));
  if (bytes <= kCarried && on_device(to)) std::memset(to, value, bytes);
  return kSuccess;
}

}  // namespace

FORETRACE_EXPORTED int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int,
                                       void* stream) {
  return copy({to, from, bytes, true}, stream);
}
FORETRACE_EXPORTED int cudaMemcpy(void* to, const void* from, size_t bytes, int) {
  return copy({to, from, bytes, false}, nullptr);
}
FORETRACE_EXPORTED int cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes,
                                           void* stream) {
  return copy({to, from, bytes, true}, stream);
}
FORETRACE_EXPORTED int cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from,
                                         size_t from_pitch, size_t width, size_t height, int,
                                         void* stream) {
  const std::string more = format(R"(,"w2":[%zu,%zu,%zu])", to_pitch, width, height);
  if (to_pitch == width && from_pitch == width)
    return copy({to, from, width * height, true, more.c_str()}, stream);
  const LibraryTime time;
  const char* const direction = on_device(to) ? (on_device(from) ? "d2d" : "h2d") : "d2h";
  record(time,
         format(R"("k":"copy","dir":"%s","n":%zu,"async":true%s)", direction, width * height,
                more.c_str()),
         on(stream_of(stream)));
  if (width * height <= kCarried)
    for (size_t row = 0; row < height; ++row)
      std::memmove(static_cast<char*>(to) + row * to_pitch,
                   static_cast<const char*>(from) + row * from_pitch, width);
  return kSuccess;
}
FORETRACE_EXPORTED int cudaMemcpyToSymbol(const void*, const void*, size_t bytes, size_t, int) {
  const LibraryTime time;
  record(time, format(R"("k":"copy","dir":"h2d","n":%zu)", bytes));
  return kSuccess;
}
FORETRACE_EXPORTED int cudaMemsetAsync(void* to, int value, size_t bytes, void* stream) {
  return set(to, value, bytes, stream, true);
}
FORETRACE_EXPORTED int cudaMemset(void* to, int value, size_t bytes) {
  return set(to, value, bytes, nullptr, false);
}
