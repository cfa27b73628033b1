// See kernels.h.
#include <algorithm>

#include "hw/cuda/device_random.cuh"
#include "hw/cuda/element_types.cuh"
#include "hw/cuda/kernels.h"

namespace foretrace::hw {
namespace {

constexpr int kThreads = 256;
/// 16-byte vectors in flight per thread: enough loads to keep HBM busy at 2048 threads an SM.
constexpr int kUnroll = 4;

template <class T>
__device__ T relu(T x) {
  return x > T(0) ? x : T(0);
}
template <class T>
__device__ T add(T x, T y) {
  return static_cast<T>(x + y);
}

template <class T, int Sources>
__device__ uint4 combine_vector(uint4 a, uint4 b, std::uint64_t index) {
  if constexpr (Sources == 0) {
    return random_vector<T>(0, index);
  } else {
    uint4 result;
    constexpr int kCount = static_cast<int>(sizeof(uint4) / sizeof(T));
    const T* x = reinterpret_cast<const T*>(&a);
    const T* y = reinterpret_cast<const T*>(&b);
    T* z = reinterpret_cast<T*>(&result);
#pragma unroll
    for (int i = 0; i < kCount; ++i) z[i] = Sources == 1 ? relu(x[i]) : add(x[i], y[i]);
    return result;
  }
}

template <class T, int Sources>
__global__ void __launch_bounds__(kThreads)
    elementwise_kernel(const uint4* a, const uint4* b, uint4* dst, std::size_t vectors,
                       std::size_t tail) {
  const std::size_t first =
      static_cast<std::size_t>(blockIdx.x) * (kThreads * kUnroll) + threadIdx.x;
  uint4 va[kUnroll] = {};
  uint4 vb[kUnroll] = {};
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    const std::size_t i = first + static_cast<std::size_t>(u) * kThreads;
    if (i >= vectors) break;
    if (Sources >= 1) va[u] = a[i];
    if (Sources >= 2) vb[u] = b[i];
  }
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    const std::size_t i = first + static_cast<std::size_t>(u) * kThreads;
    if (i >= vectors) break;
    dst[i] = combine_vector<T, Sources>(va[u], vb[u], i);
  }
  // The last bytes % 16: one element per thread of the first block.
  if (blockIdx.x == 0 && threadIdx.x < tail) {
    const std::size_t i = vectors * (sizeof(uint4) / sizeof(T)) + threadIdx.x;
    T* z = reinterpret_cast<T*>(dst);
    if constexpr (Sources == 0) {
      z[i] = random_element<T>(random_bits(0, vectors));
    } else {
      const T* x = reinterpret_cast<const T*>(a);
      const T* y = reinterpret_cast<const T*>(b);
      z[i] = Sources == 1 ? relu(x[i]) : add(x[i], y[i]);
    }
  }
}

template <class T, int Sources>
cudaError_t launch_elementwise_of(cudaStream_t stream, const void* a, const void* b, void* dst,
                                  std::size_t bytes) {
  std::size_t vectors = bytes / sizeof(uint4);
  std::size_t tail = bytes % sizeof(uint4) / sizeof(T);
  auto* x = static_cast<const uint4*>(a);
  auto* y = static_cast<const uint4*>(b);
  auto* z = static_cast<uint4*>(dst);
  void* arguments[] = {&x, &y, &z, &vectors, &tail};
  constexpr std::size_t kPerBlock = kThreads * kUnroll;
  const auto blocks =
      static_cast<unsigned>(std::max<std::size_t>(1, (vectors + kPerBlock - 1) / kPerBlock));
  return cudaLaunchKernel(reinterpret_cast<const void*>(&elementwise_kernel<T, Sources>),
                          dim3(blocks), dim3(kThreads), arguments, 0, stream);
}

template <class T>
__global__ void random_fill_kernel(T* dst, std::size_t count, std::uint32_t seed, bool normal) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    const std::uint32_t bits = random_bits(seed, i);
    dst[i] = normal ? normal_element<T>(bits, random_bits(~seed, i)) : random_element<T>(bits);
  }
}

template <class T>
cudaError_t launch_random_fill_of(cudaStream_t stream, void* dst, std::size_t bytes,
                                  std::uint32_t seed, Distribution distribution) {
  std::size_t count = bytes / sizeof(T);
  if (count == 0) return cudaSuccess;
  auto* x = static_cast<T*>(dst);
  bool normal = distribution == Distribution::Normal;
  void* arguments[] = {&x, &count, &seed, &normal};
  const auto blocks =
      static_cast<unsigned>(std::min<std::size_t>((count + kThreads - 1) / kThreads, 16384));
  return cudaLaunchKernel(reinterpret_cast<const void*>(&random_fill_kernel<T>), dim3(blocks),
                          dim3(kThreads), arguments, 0, stream);
}

}  // namespace

cudaError_t launch_elementwise(cudaStream_t stream, Element type, const void* a, const void* b,
                               void* dst, std::size_t bytes) {
  if (bytes == 0) return cudaSuccess;
  return for_element(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (a == nullptr) return launch_elementwise_of<T, 0>(stream, a, b, dst, bytes);
    if (b == nullptr) return launch_elementwise_of<T, 1>(stream, a, b, dst, bytes);
    return launch_elementwise_of<T, 2>(stream, a, b, dst, bytes);
  });
}

cudaError_t launch_random_fill(cudaStream_t stream, Element type, void* dst, std::size_t bytes,
                               std::uint32_t seed, Distribution distribution) {
  if (type == Element::Float8E4M3) {
    return launch_random_fill_of<__nv_fp8_e4m3>(stream, dst, bytes, seed, distribution);
  }
  if (type == Element::Float8E5M2) {
    return launch_random_fill_of<__nv_fp8_e5m2>(stream, dst, bytes, seed, distribution);
  }
  return for_element(type, [&](auto tag) {
    return launch_random_fill_of<typename decltype(tag)::type>(stream, dst, bytes, seed,
                                                               distribution);
  });
}

}  // namespace foretrace::hw
