// cuDNN's backend API: one engine that can do every graph, without knobs. Each execution is one
// record.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "hw/emulated/dnn/descriptor.h"
#include "hw/emulated/dnn/handle.h"
#include "hw/emulated/dnn/workspace.h"
#include "hw/emulated/exported.h"
#include "hw/emulated/handles.h"
#include "hw/emulated/record.h"

using namespace foretrace::emulated;

namespace {

enum : int { kDescriptor = 15, kInteger64 = 3, kInteger32 = 23 };  // cudnnBackendAttributeType_t
enum : int {
  kResults = 202,
  kKnobs = 302,
  kConfigurationOfPlan = 401,
  kWorkspaceOfPlan = 402
};  // cudnnBackendAttributeName_t

std::mutex& descriptor_mutex() {
  static auto* const the = new std::mutex;
  return *the;
}

}  // namespace

FORETRACE_EXPORTED int cudnnBackendCreateDescriptor(int type, void** out) {
  const LibraryTime time;
  auto* const d = new Descriptor;
  d->type = type;
  *out = d;
  return 0;
}
// Others refer to it: a plan is executed when its graph is long destroyed. Only what is made for
// each execution is freed.
FORETRACE_EXPORTED int cudnnBackendDestroyDescriptor(void* descriptor) {
  const LibraryTime time;
  auto* const d = static_cast<Descriptor*>(descriptor);
  if (d && d->type == kVariantPack) delete d;
  return 0;
}
FORETRACE_EXPORTED int cudnnBackendInitialize(void*) { return 0; }
FORETRACE_EXPORTED int cudnnBackendFinalize(void*) { return 0; }
FORETRACE_EXPORTED int cudnnBackendSetAttribute(void* descriptor, int name, int type, int64_t count,
                                                const void* values) {
  const LibraryTime time;
  auto& d = *static_cast<Descriptor*>(descriptor);
  if (d.type == kVariantPack) return 0;
  // Sizes of the attribute types in bytes, from CUDNN_TYPE_HANDLE on; the rest are enumerations.
  constexpr size_t kBytes[] = {8, 4, 1, 8, 4, 8, 8, 4, 4, 4, 4,  4, 4, 4, 4, 8,
                               4, 4, 4, 4, 4, 4, 4, 4, 1, 4, 16, 4, 4, 4, 4};
  constexpr int kTypes = sizeof kBytes / sizeof *kBytes;
  const size_t bytes = static_cast<size_t>(count) * (type >= 0 && type < kTypes ? kBytes[type] : 4);
  const auto* const p = static_cast<const char*>(values);
  const std::lock_guard lock(descriptor_mutex());
  d.attributes[name] = {type, count, p ? std::vector<char>(p, p + bytes) : std::vector<char>()};
  return 0;
}
FORETRACE_EXPORTED int cudnnBackendGetAttribute(void* descriptor, int name, int type, int64_t room,
                                                int64_t* count, void* values) {
  const LibraryTime time;
  auto& d = *static_cast<Descriptor*>(descriptor);
  const std::lock_guard lock(descriptor_mutex());
  int64_t n = 0;
  if (const auto set = d.attributes.find(name); set != d.attributes.end() && type != kDescriptor) {
    n = set->second.count;
    if (room > 0 && values && n > 0)
      std::memcpy(values, set->second.bytes.data(),
                  set->second.bytes.size() / static_cast<size_t>(n) *
                      static_cast<size_t>(std::min(n, room)));
  } else if (name == kResults) {
    n = 1;
    if (room > 0 && values) (*static_cast<Descriptor**>(values))->heuristics = &d;
  } else if (name == kKnobs) {
    n = 0;
  } else if (type == kDescriptor) {
    n = 1;
    if (room > 0 && values && d.heuristics)
      (*static_cast<Descriptor**>(values))->heuristics = d.heuristics;
  } else if (name == kWorkspaceOfPlan && d.type == kPlan && type == kInteger64) {
    n = 1;
    const int64_t workspace = workspace_of(d);
    if (room > 0 && values) std::memcpy(values, &workspace, sizeof workspace);
  } else if (type == kInteger64 || type == kInteger32) {  // index of an engine, shared memory: 0
    n = 1;
    if (room > 0 && values) std::memset(values, 0, type == kInteger64 ? 8 : 4);
  }
  if (count) *count = n;
  return 0;
}
FORETRACE_EXPORTED int cudnnBackendExecute(void* handle, void* plan, void*) {
  const LibraryTime time;
  auto& p = *static_cast<Descriptor*>(plan);
  {
    const std::lock_guard lock(descriptor_mutex());
    if (p.operations.empty()) p.operations = operations_json(p);
  }
  record(time, R"("k":"lib","f":"cudnnBackendExecute","ops":)" + p.operations,
         on(stream_of(dnn(handle).stream)));
  return 0;
}
