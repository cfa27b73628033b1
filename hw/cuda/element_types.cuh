// From the element type of an operation to the C++ type of a kernel.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "hw/cuda/kernels.h"

namespace foretrace::hw {

template <class T>
struct ElementTag {
  using type = T;
};

/// Calls `launch` with the ElementTag of `type`.
template <class Launch>
cudaError_t for_element(Element type, Launch launch) {
  switch (type) {
    case Element::Float16:
      return launch(ElementTag<__half>{});
    case Element::BFloat16:
      return launch(ElementTag<__nv_bfloat16>{});
    case Element::Float32:
      return launch(ElementTag<float>{});
    case Element::Float64:
      return launch(ElementTag<double>{});
    case Element::Int8:
      return launch(ElementTag<signed char>{});
    case Element::Int32:
      return launch(ElementTag<int>{});
    case Element::Int64:
      return launch(ElementTag<long long>{});
    case Element::Float8E4M3:
    case Element::Float8E5M2:
      break;
  }
  return cudaErrorInvalidValue;
}

}  // namespace foretrace::hw
