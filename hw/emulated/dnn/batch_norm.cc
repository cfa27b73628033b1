// cuDNN's batch normalization, and the tensor descriptors that it and other old functions take.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "hw/emulated/dnn/descriptor.h"
#include "hw/emulated/dnn/handle.h"
#include "hw/emulated/exported.h"
#include "hw/emulated/handles.h"
#include "hw/emulated/record.h"

using namespace foretrace::emulated;

namespace {

struct OldTensor {
  int type = 0, format = 0;
  std::vector<int> sizes, strides;
};

std::string list(const std::vector<int>& values) {
  std::string text;
  for (const int v : values) text += (text.empty() ? "" : ",") + std::to_string(v);
  return "[" + text + "]";
}

std::string json(const void* descriptor) {
  const auto& t = *static_cast<const OldTensor*>(descriptor);
  return R"({"d":")" + dnn_type_word(t.type) + R"(","s":)" + list(t.sizes) + R"(,"st":)" +
         list(t.strides) + "}";
}

int say(void* handle, const char* function, const char* operation, int mode, int ops, const void* x,
        const LibraryTime& time) {
  record(time,
         format(R"("k":"lib","f":"%s","ops":[{"op":"%s","mode":%d,"fused":%d,"x":)", function,
                operation, mode, ops) +
             json(x) + "}]",
         on(stream_of(dnn(handle).stream)));
  return 0;
}

void get(const OldTensor& t, int room, int* type, int* n, int* sizes) {
  *type = t.type;
  *n = static_cast<int>(t.sizes.size());
  std::copy_n(t.sizes.begin(), std::min<size_t>(t.sizes.size(), static_cast<size_t>(room)), sizes);
}

}  // namespace

FORETRACE_EXPORTED int cudnnCreateTensorDescriptor(void** out) {
  *out = new OldTensor;
  return 0;
}
FORETRACE_EXPORTED int cudnnDestroyTensorDescriptor(void* t) {
  delete static_cast<OldTensor*>(t);
  return 0;
}
FORETRACE_EXPORTED int cudnnSetTensorNdDescriptor(void* t, int type, int n, const int* sizes,
                                                  const int* strides) {
  *static_cast<OldTensor*>(t) = {type, 0, {sizes, sizes + n}, {strides, strides + n}};
  return 0;
}
FORETRACE_EXPORTED int cudnnGetTensorNdDescriptor(const void* descriptor, int room, int* type,
                                                  int* n, int* sizes, int* strides) {
  const auto& t = *static_cast<const OldTensor*>(descriptor);
  get(t, room, type, n, sizes);
  std::copy_n(t.strides.begin(), std::min<size_t>(t.strides.size(), static_cast<size_t>(room)),
              strides);
  return 0;
}
FORETRACE_EXPORTED int cudnnCreateFilterDescriptor(void** out) {
  return cudnnCreateTensorDescriptor(out);
}
FORETRACE_EXPORTED int cudnnDestroyFilterDescriptor(void* t) {
  return cudnnDestroyTensorDescriptor(t);
}
FORETRACE_EXPORTED int cudnnSetFilterNdDescriptor(void* t, int type, int layout, int n,
                                                  const int* sizes) {
  *static_cast<OldTensor*>(t) = {type, layout, {sizes, sizes + n}, {}};
  return 0;
}
FORETRACE_EXPORTED int cudnnGetFilterNdDescriptor(const void* descriptor, int room, int* type,
                                                  int* layout, int* n, int* sizes) {
  const auto& t = *static_cast<const OldTensor*>(descriptor);
  get(t, room, type, n, sizes);
  *layout = t.format;
  return 0;
}

FORETRACE_EXPORTED int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(void*, int, int,
                                                                                void*, void*, void*,
                                                                                void*, void*,
                                                                                size_t* n) {
  *n = 0;
  return 0;
}
FORETRACE_EXPORTED int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(void*, int, int, void*,
                                                                            void*, size_t* n) {
  *n = 0;
  return 0;
}
FORETRACE_EXPORTED int cudnnGetBatchNormalizationBackwardExWorkspaceSize(void*, int, int, void*,
                                                                         void*, void*, void*, void*,
                                                                         void*, void*, size_t* n) {
  *n = 0;
  return 0;
}
FORETRACE_EXPORTED int cudnnBatchNormalizationForwardTrainingEx(
    void* handle, int mode, int ops, const void*, const void*, const void* x, const void*,
    const void*, const void*, const void*, void*, const void*, const void*, const void*, double,
    void*, void*, double, void*, void*, void*, void*, size_t, void*, size_t) {
  const LibraryTime time;
  return say(handle, "cudnnBatchNormalizationForwardTrainingEx", "bn_fwd", mode, ops, x, time);
}
FORETRACE_EXPORTED int cudnnBatchNormalizationForwardInference(
    void* handle, int mode, const void*, const void*, const void* x, const void*, const void*,
    void*, const void*, const void*, const void*, const void*, const void*, double) {
  const LibraryTime time;
  return say(handle, "cudnnBatchNormalizationForwardInference", "bn_infer", mode, 0, x, time);
}
FORETRACE_EXPORTED int cudnnBatchNormalizationBackwardEx(
    void* handle, int mode, int ops, const void*, const void*, const void*, const void*,
    const void* x, const void*, const void*, const void*, const void*, const void*, const void*,
    void*, const void*, void*, const void*, const void*, const void*, void*, void*, double,
    const void*, const void*, void*, void*, size_t, void*, size_t) {
  const LibraryTime time;
  return say(handle, "cudnnBatchNormalizationBackwardEx", "bn_bwd", mode, ops, x, time);
}
