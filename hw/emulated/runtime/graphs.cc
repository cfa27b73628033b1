// CUDA graphs by stream capture: what is called between begin and end carries the graph's number.
#include <cstdint>

#include "hw/emulated/exported.h"
#include "hw/emulated/handles.h"
#include "hw/emulated/record.h"
#include "hw/emulated/runtime/errors.h"

using namespace foretrace::emulated;

namespace {

// A graph's handle is its number, above the values that mean something else.
constexpr uintptr_t kHandleUnit = 256;
void* handle_of(uint32_t graph) {
  return reinterpret_cast<void*>((uintptr_t{graph} + 1) * kHandleUnit);
}
uint32_t graph_of(void* handle) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(handle) / kHandleUnit - 1);
}

int info(void* handle, int* status, unsigned long long* id, void** graph, const void** dependencies,
         size_t* n) {
  const uint32_t captured = stream_of(handle).graph;
  const bool on = captured != kNone;
  *status = on ? kActive : kNoCapture;
  if (id) *id = on ? captured + 1ull : 0;
  if (graph) *graph = on ? handle_of(captured) : nullptr;
  if (dependencies) *dependencies = nullptr;
  if (n) *n = 0;
  return kSuccess;
}

}  // namespace

FORETRACE_EXPORTED int cudaStreamBeginCapture(void* stream, int) {
  const LibraryTime time;
  const uint32_t graph = begin_capture(stream_of(stream));
  record(time, format(R"("k":"graph","what":"begin","g":%u)", graph),
         {.stream = stream_of(stream).id});
  return kSuccess;
}
FORETRACE_EXPORTED int cudaStreamEndCapture(void* stream, void** graph) {
  const LibraryTime time;
  const uint32_t captured = stream_of(stream).graph;
  if (captured == kNone) return failed(kInvalidValue);
  end_capture(captured);
  *graph = handle_of(captured);
  record(time, format(R"("k":"graph","what":"end","g":%u)", captured),
         {.stream = stream_of(stream).id});
  return kSuccess;
}
FORETRACE_EXPORTED int cudaGraphGetNodes(void*, void** nodes, size_t* n) {
  if (!nodes) *n = 1;  // not empty: that is all that PyTorch asks
  return kSuccess;
}
FORETRACE_EXPORTED int cudaGraphNodeGetDependencies(void*, void**, void*, size_t* n) {
  *n = 0;
  return kSuccess;
}
FORETRACE_EXPORTED int cudaGraphInstantiateWithFlags(void** executable, void* graph,
                                                     unsigned long long) {
  const LibraryTime time;
  *executable = graph;
  record(time, format(R"("k":"graph","what":"instantiate","g":%u)", graph_of(graph)));
  return kSuccess;
}
FORETRACE_EXPORTED int cudaGraphInstantiate(void** executable, void* graph,
                                            unsigned long long flags) {
  return cudaGraphInstantiateWithFlags(executable, graph, flags);
}
FORETRACE_EXPORTED int cudaGraphLaunch(void* executable, void* stream) {
  const LibraryTime time;
  record(time, format(R"("k":"graph_launch","g":%u)", graph_of(executable)),
         {.stream = stream_of(stream).id});
  return kSuccess;
}
FORETRACE_EXPORTED int cudaGraphUpload(void*, void*) { return kSuccess; }
FORETRACE_EXPORTED int cudaGraphDestroy(void*) { return kSuccess; }
FORETRACE_EXPORTED int cudaGraphExecDestroy(void*) { return kSuccess; }
FORETRACE_EXPORTED int cudaStreamIsCapturing(void* stream, int* status) {
  FORETRACE_COUNT("cudaStreamIsCapturing");
  return info(stream, status, nullptr, nullptr, nullptr, nullptr);
}
FORETRACE_EXPORTED int cudaStreamGetCaptureInfo_v2(void* stream, int* status,
                                                   unsigned long long* id, void** graph,
                                                   const void** dependencies, size_t* n) {
  FORETRACE_COUNT("cudaStreamGetCaptureInfo");
  return info(stream, status, id, graph, dependencies, n);
}
// CUDA 13's, with the edges' data.
FORETRACE_EXPORTED int cudaStreamGetCaptureInfo(void* stream, int* status, unsigned long long* id,
                                                void** graph, const void** dependencies,
                                                const void** edges, size_t* n) {
  FORETRACE_COUNT("cudaStreamGetCaptureInfo");
  if (edges) *edges = nullptr;
  return info(stream, status, id, graph, dependencies, n);
}
FORETRACE_EXPORTED int cudaThreadExchangeStreamCaptureMode(int*) { return kSuccess; }
