#pragma once
// What a cuDNN handle keeps.
namespace foretrace::emulated {
struct DnnHandle {
  void* stream = nullptr;
};
inline DnnHandle& dnn(void* handle) { return *static_cast<DnnHandle*>(handle); }
}  // namespace foretrace::emulated
