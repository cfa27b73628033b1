// Streams and events.
#include "hw/emulated/exported.h"
#include "hw/emulated/handles.h"
#include "hw/emulated/record.h"
#include "hw/emulated/runtime/errors.h"

using namespace foretrace::emulated;

namespace {

// How a stream is described when the capture asks; written once, with the stream's place.
int make(void** handle, unsigned flags, int priority) {
  const LibraryTime time;
  Stream* const stream = make_stream(priority, flags);
  *handle = stream;
  record(time, format(R"("k":"stream","i":%u,"priority":%d,"device":%d)", stream->id, priority,
                      stream->device));
  return kSuccess;
}

}  // namespace

FORETRACE_EXPORTED int cudaStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  return make(stream, flags, priority);
}
FORETRACE_EXPORTED int cudaStreamCreateWithFlags(void** stream, unsigned flags) {
  return make(stream, flags, 0);
}
FORETRACE_EXPORTED int cudaStreamCreate(void** stream) { return make(stream, 0, 0); }
FORETRACE_EXPORTED int cudaStreamDestroy(void*) { return kSuccess; }
FORETRACE_EXPORTED int cudaStreamGetPriority(void* stream, int* priority) {
  *priority = stream_of(stream).priority;
  return kSuccess;
}
FORETRACE_EXPORTED int cudaStreamGetFlags(void* stream, unsigned* flags) {
  *flags = stream_of(stream).flags;
  return kSuccess;
}
FORETRACE_EXPORTED int cudaStreamQuery(void* stream) {
  const LibraryTime time;
  record(time, R"("k":"query","w":"stream")", on(stream_of(stream)));
  return kSuccess;
}
FORETRACE_EXPORTED int cudaStreamSynchronize(void* stream) {
  const LibraryTime time;
  record(time, R"("k":"sync","w":"stream")", on(stream_of(stream)));
  return kSuccess;
}
FORETRACE_EXPORTED int cudaStreamWaitEvent(void* handle, void* event, unsigned) {
  const LibraryTime time;
  Stream& stream = stream_of(handle);
  const auto& e = *static_cast<Event*>(event);
  join_capture(stream, e);
  record(time, format(R"("k":"wait","e":%u)", e.id), on(stream));
  return kSuccess;
}
FORETRACE_EXPORTED int cudaLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
  {
    const LibraryTime time;
    record(time, R"("k":"host_func")", on(stream_of(stream)));
  }
  if (stream_of(stream).graph == kNone) function(data);
  return kSuccess;
}
FORETRACE_EXPORTED int cudaStreamAddCallback(void* stream, void (*function)(void*, int, void*),
                                             void* data, unsigned) {
  {
    const LibraryTime time;
    record(time, R"("k":"host_func")", on(stream_of(stream)));
  }
  function(stream, kSuccess, data);
  return kSuccess;
}

FORETRACE_EXPORTED int cudaEventCreateWithFlags(void** event, unsigned) {
  const LibraryTime time;
  *event = make_event();
  record(time, R"("k":"call","f":"cudaEventCreate")");
  return kSuccess;
}
FORETRACE_EXPORTED int cudaEventCreate(void** event) { return cudaEventCreateWithFlags(event, 0); }
FORETRACE_EXPORTED int cudaEventDestroy(void*) {
  FORETRACE_COUNT("cudaEventDestroy");
  return kSuccess;
}
FORETRACE_EXPORTED int cudaEventRecordWithFlags(void* event, void* handle, unsigned) {
  const LibraryTime time;
  auto& e = *static_cast<Event*>(event);
  const Stream& stream = stream_of(handle);
  e.graph = stream.graph.load();
  record(time, format(R"("k":"record","e":%u)", e.id), on(stream));
  return kSuccess;
}
FORETRACE_EXPORTED int cudaEventRecord(void* event, void* stream) {
  return cudaEventRecordWithFlags(event, stream, 0);
}
FORETRACE_EXPORTED int cudaEventQuery(void* event) {
  const LibraryTime time;
  record(time, format(R"("k":"query","w":"event","e":%u)", static_cast<Event*>(event)->id));
  return kSuccess;
}
FORETRACE_EXPORTED int cudaEventSynchronize(void* event) {
  const LibraryTime time;
  record(time, format(R"("k":"sync","w":"event","e":%u)", static_cast<Event*>(event)->id));
  return kSuccess;
}
// Nothing took time on the emulated GPU: 1 ms, so that programs that divide by it go on.
FORETRACE_EXPORTED int cudaEventElapsedTime(float* ms, void*, void*) {
  const LibraryTime time;
  record(time, R"("k":"call","f":"cudaEventElapsedTime","x":"1 ms, by rule")");
  *ms = 1;
  return kSuccess;
}
