// See pattern.h.
#include <algorithm>
#include <type_traits>

#include "hw/cuda/element_types.cuh"
#include "hw/cuda/hash.h"
#include "hw/cuda/pattern.h"

namespace foretrace::hw {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::size_t kMaxBlocks = 16384;

unsigned blocks_for(std::size_t count) {
  return static_cast<unsigned>(
      std::clamp<std::size_t>((count + kThreads - 1) / kThreads, 1, kMaxBlocks));
}

/// Integers go through 64 bits, so that sums wrap as they do in the type.
template <class T>
__device__ T from_double(double x) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<long long>(x));
  } else if constexpr (sizeof(T) == 2) {
    return static_cast<T>(static_cast<float>(x));
  } else {
    return static_cast<T>(x);
  }
}

template <class T>
__global__ void fill_kernel(T* dst, std::size_t count, std::uint64_t first_index,
                            std::uint32_t seed) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    dst[i] = from_double<T>(pattern_value(seed, first_index + i));
  }
}

__device__ double element_of(const PatternSum& sum, std::uint64_t index) {
  double result = 0;
  for (int t = 0; t < sum.count; ++t) {
    const PatternTerm& term = sum.terms[t];
    const auto at = static_cast<std::uint64_t>(static_cast<std::int64_t>(index) + term.shift);
    const double x = term.factor * pattern_value(term.seed, at);
    if (t == 0) {
      result = x;
    } else if (sum.combine == Combine::Prod) {
      result *= x;
    } else if (sum.combine == Combine::Min) {
      result = x < result ? x : result;
    } else if (sum.combine == Combine::Max) {
      result = x > result ? x : result;
    } else {
      result += x;
    }
  }
  return result;
}

template <class T>
__global__ void compare_kernel(const T* data, std::size_t count, std::uint64_t first_index,
                               PatternSum expected, Mismatch* mismatch) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    const T right = from_double<T>(element_of(expected, first_index + i));
    if (data[i] == right) continue;
    atomicAdd(&mismatch->count, 1ULL);
    atomicMin(&mismatch->first_index, static_cast<unsigned long long>(first_index + i));
  }
}

}  // namespace

cudaError_t launch_pattern_fill(cudaStream_t stream, Element type, void* dst, std::size_t count,
                                std::uint64_t first_index, std::uint32_t seed) {
  if (count == 0) return cudaSuccess;
  return for_element(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* elements = static_cast<T*>(dst);
    void* arguments[] = {&elements, &count, &first_index, &seed};
    return cudaLaunchKernel(reinterpret_cast<const void*>(&fill_kernel<T>), dim3(blocks_for(count)),
                            dim3(kThreads), arguments, 0, stream);
  });
}

cudaError_t launch_compare(cudaStream_t stream, Element type, const void* data, std::size_t count,
                           std::uint64_t first_index, const PatternSum& expected,
                           Mismatch* mismatch) {
  if (count == 0) return cudaSuccess;
  return for_element(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* elements = static_cast<const T*>(data);
    auto sum = expected;
    void* arguments[] = {&elements, &count, &first_index, &sum, &mismatch};
    return cudaLaunchKernel(reinterpret_cast<const void*>(&compare_kernel<T>),
                            dim3(blocks_for(count)), dim3(kThreads), arguments, 0, stream);
  });
}

}  // namespace foretrace::hw
