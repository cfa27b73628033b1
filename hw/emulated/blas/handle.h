#pragma once
// What a cuBLAS handle keeps.
#include <cstddef>

namespace foretrace::emulated {

struct BlasHandle {
  void* stream = nullptr;
  size_t workspace = 0;  // bytes that the program gave
  int math_mode = 0, pointer_mode = 0;
};
inline BlasHandle& blas(void* handle) { return *static_cast<BlasHandle*>(handle); }

}  // namespace foretrace::emulated
