// See kernels.h.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "hw/cuda/element_types.cuh"
#include "hw/cuda/kernels.h"

namespace foretrace::hw {
namespace {

constexpr int kThreads = 256;
/// 16-byte vectors in flight per thread: enough loads to keep HBM busy at 2048 threads an SM.
constexpr int kUnroll = 4;
/// The scratch memory begins with the counter of finished blocks.
constexpr std::size_t kCounterBytes = 16;
constexpr unsigned kMaxPartials = (kReductionScratchBytes - kCounterBytes) / 8;

/// Half-precision sums in float, integers in 64 bits: the order of additions must not show.
template <class T>
using Accumulator = std::conditional_t<std::is_same_v<T, double>, double,
                                       std::conditional_t<std::is_integral_v<T>, long long, float>>;

template <class A, Combine C>
__device__ A combined(A x, A y) {
  if constexpr (C == Combine::Prod) return x * y;
  if constexpr (C == Combine::Min) return x < y ? x : y;
  if constexpr (C == Combine::Max) return x > y ? x : y;
  return x + y;
}

/// What leaves every other value unchanged.
template <class A, Combine C>
A neutral_value() {
  using Limits = std::numeric_limits<A>;
  if constexpr (C == Combine::Prod) return A(1);
  if constexpr (C == Combine::Min) return Limits::has_infinity ? Limits::infinity() : Limits::max();
  if constexpr (C == Combine::Max) {
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  }
  return A(0);
}

template <class A, Combine C>
__device__ A combine_block(A value, A* shared) {
  shared[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      shared[threadIdx.x] = combined<A, C>(shared[threadIdx.x], shared[threadIdx.x + half]);
    }
    __syncthreads();
  }
  const A result = shared[0];
  __syncthreads();  // shared may be written again
  return result;
}

template <class T, class A, Combine C>
__device__ A combine_vector(A value, const uint4& vector) {
  const T* elements = reinterpret_cast<const T*>(&vector);
#pragma unroll
  for (int e = 0; e < static_cast<int>(sizeof(uint4) / sizeof(T)); ++e) {
    value = combined<A, C>(value, static_cast<A>(elements[e]));
  }
  return value;
}

/// One pass over memory: every block leaves a partial result, the last one to finish combines them
/// (as the CUDA sample threadFenceReduction does).
template <class T, Combine C>
__global__ void __launch_bounds__(kThreads)
    reduction_kernel(const uint4* src, T* dst, std::size_t vectors, std::size_t tail,
                     unsigned* finished, void* partials_memory, Accumulator<T> neutral,
                     double average_factor) {
  using A = Accumulator<T>;
  __shared__ A shared[kThreads];
  __shared__ bool is_last;
  auto* partials = static_cast<A*>(partials_memory);

  A value = neutral;
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * kThreads;
  std::size_t i = static_cast<std::size_t>(blockIdx.x) * kThreads + threadIdx.x;
  for (; i + (kUnroll - 1) * stride < vectors; i += kUnroll * stride) {
    uint4 v[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) v[u] = src[i + static_cast<std::size_t>(u) * stride];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) value = combine_vector<T, A, C>(value, v[u]);
  }
  for (; i < vectors; i += stride) value = combine_vector<T, A, C>(value, src[i]);
  if (blockIdx.x == 0 && threadIdx.x < tail) {  // the last bytes % 16
    const T* elements = reinterpret_cast<const T*>(src + vectors);
    value = combined<A, C>(value, static_cast<A>(elements[threadIdx.x]));
  }
  const A of_block = combine_block<A, C>(value, shared);
  if (threadIdx.x == 0) {
    partials[blockIdx.x] = of_block;
    __threadfence();
    // Wraps to 0, ready for the next launch.
    is_last = atomicInc(finished, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  value = neutral;
  for (unsigned p = threadIdx.x; p < gridDim.x; p += kThreads) {
    value = combined<A, C>(value, static_cast<volatile A*>(partials)[p]);
  }
  const A result = combine_block<A, C>(value, shared);
  if (threadIdx.x == 0) {
    dst[0] = average_factor == 1
                 ? static_cast<T>(result)
                 : static_cast<T>(static_cast<float>(static_cast<double>(result) * average_factor));
  }
}

template <class T, Combine C>
cudaError_t launch_reduction_of(cudaStream_t stream, const DeviceLimits& limits, const void* src,
                                void* dst, std::size_t bytes, void* scratch, bool average) {
  std::size_t vectors = bytes / sizeof(uint4);
  std::size_t tail = bytes % sizeof(uint4) / sizeof(T);
  double factor = average ? static_cast<double>(sizeof(T)) / static_cast<double>(bytes) : 1;
  auto* x = static_cast<const uint4*>(src);
  auto* y = static_cast<T*>(dst);
  auto* finished = static_cast<unsigned*>(scratch);
  void* partials = static_cast<char*>(scratch) + kCounterBytes;
  Accumulator<T> neutral = neutral_value<Accumulator<T>, C>();
  void* arguments[] = {&x, &y, &vectors, &tail, &finished, &partials, &neutral, &factor};
  const std::size_t useful = std::max<std::size_t>(1, vectors / (kThreads * kUnroll));
  const auto blocks = static_cast<unsigned>(
      std::min<std::size_t>({useful, static_cast<std::size_t>(limits.sm_count) * 8, kMaxPartials}));
  return cudaLaunchKernel(reinterpret_cast<const void*>(&reduction_kernel<T, C>), dim3(blocks),
                          dim3(kThreads), arguments, 0, stream);
}

}  // namespace

cudaError_t launch_reduction(cudaStream_t stream, const DeviceLimits& limits, Element type,
                             Combine combine, const void* src, void* dst, std::size_t bytes,
                             void* scratch) {
  if (bytes == 0) return cudaSuccess;
  return for_element(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto launch = [&](auto launch_of, bool average) {
      return launch_of(stream, limits, src, dst, bytes, scratch, average);
    };
    switch (combine) {
      case Combine::Sum:
        return launch(launch_reduction_of<T, Combine::Sum>, false);
      case Combine::Avg:
        return launch(launch_reduction_of<T, Combine::Sum>, true);
      case Combine::Prod:
        return launch(launch_reduction_of<T, Combine::Prod>, false);
      case Combine::Min:
        return launch(launch_reduction_of<T, Combine::Min>, false);
      case Combine::Max:
        return launch(launch_reduction_of<T, Combine::Max>, false);
    }
    return cudaErrorInvalidValue;
  });
}

}  // namespace foretrace::hw
