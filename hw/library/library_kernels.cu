// See library_kernels.h. A thread takes eight elements of bfloat16 at once: 16 bytes.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cfloat>
#include <cstdint>

#include "hw/library/library_kernels.h"

namespace foretrace::hw {
namespace {

using Half = __nv_bfloat16;
constexpr int kThreads = 256;
constexpr int kVector = 8;
constexpr int kRowsOfASum = 32;  // that one block adds before it adds to memory
constexpr float kEpsilon = 1e-5F;

struct Floats {
  float at[kVector];
};

__device__ Floats load(const Half* from) {
  const uint4 bits = *reinterpret_cast<const uint4*>(from);
  const Half* halves = reinterpret_cast<const Half*>(&bits);
  Floats result;
#pragma unroll
  for (int i = 0; i < kVector; ++i) result.at[i] = __bfloat162float(halves[i]);
  return result;
}
__device__ Floats load(const float* from) {
  Floats result;
  *reinterpret_cast<float4*>(result.at) = *reinterpret_cast<const float4*>(from);
  *reinterpret_cast<float4*>(result.at + 4) = *reinterpret_cast<const float4*>(from + 4);
  return result;
}
__device__ void store(Half* to, const Floats& value) {
  uint4 bits;
  Half* halves = reinterpret_cast<Half*>(&bits);
#pragma unroll
  for (int i = 0; i < kVector; ++i) halves[i] = __float2bfloat16(value.at[i]);
  *reinterpret_cast<uint4*>(to) = bits;
}
__device__ void store(float* to, const Floats& value) {
  *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(value.at);
  *reinterpret_cast<float4*>(to + 4) = *reinterpret_cast<const float4*>(value.at + 4);
}

// ---- elements side by side: a functor takes the position of eight of them ----------------------

template <class Map>
__global__ void __launch_bounds__(kThreads) library_map(Map map, std::size_t vectors) {
  const std::size_t i = static_cast<std::size_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < vectors) map(i * kVector);
}

template <class X, class Y>
struct Add {
  const X* x;
  const Y* y;
  X* z;
  __device__ void operator()(std::size_t i) const {
    Floats a = load(x + i);
    const Floats b = load(y + i);
#pragma unroll
    for (int k = 0; k < kVector; ++k) a.at[k] += b.at[k];
    store(z + i, a);
  }
};

template <class From, class To>
struct Copy {
  const From* from;
  To* to;
  __device__ void operator()(std::size_t i) const { store(to + i, load(from + i)); }
};

/// Left halves of rows from right ones of x and left ones of y, as rope multiplies.
struct StridedProduct {
  const Half* x;
  const Half* y;
  Half* z;
  int columns;
  __device__ void operator()(std::size_t i) const {
    const int half = columns / 2;
    const std::size_t row = i / half * columns, column = i % half;
    Floats a = load(x + row + half + column);
    const Floats b = load(y + row + column);
#pragma unroll
    for (int k = 0; k < kVector; ++k) a.at[k] *= b.at[k];
    store(z + row + column, a);
  }
};

/// Both halves of each row exchanged.
struct Exchange {
  const Half* x;
  Half* z;
  int columns;
  __device__ void operator()(std::size_t i) const {
    const std::size_t row = i / columns * columns, column = i % columns;
    store(z + row + column, load(x + row + (column + columns / 2) % columns));
  }
};

/// Rows of a table, in an order that looks random.
struct GatherRows {
  const Half* table;
  Half* z;
  int columns;
  __device__ static std::size_t row_of(std::size_t row) { return row * 2654435761U % kTableRows; }
  __device__ void operator()(std::size_t i) const {
    const std::size_t row = i / columns, column = i % columns;
    store(z + i, load(table + row_of(row) * columns + column));
  }
};

/// Rows added into the table's gradient, in float16: every GPU since 6.0 adds pairs of them.
struct ScatterRows {
  const Half* x;
  __half2* table;
  int columns;
  __device__ void operator()(std::size_t i) const {
    const std::size_t row = i / columns, column = i % columns;
    const Floats a = load(x + i);
    __half2* to = table + (GatherRows::row_of(row) * columns + column) / 2;
#pragma unroll
    for (int k = 0; k < kVector / 2; ++k) {
      atomicAdd(to + k, __floats2half2_rn(a.at[2 * k], a.at[2 * k + 1]));
    }
  }
};

/// AdamW with beta 0.9 and 0.95, rate 1e-4, decay 0.1; bias corrections left out.
template <class T>
struct AdamW {
  T* parameter;
  const T* gradient;
  T* mean;
  T* square;
  __device__ void operator()(std::size_t i) const {
    Floats p = load(parameter + i), m = load(mean + i), v = load(square + i);
    const Floats g = load(gradient + i);
#pragma unroll
    for (int k = 0; k < kVector; ++k) {
      m.at[k] = 0.9F * m.at[k] + 0.1F * g.at[k];
      v.at[k] = 0.95F * v.at[k] + 0.05F * g.at[k] * g.at[k];
      p.at[k] -= 1e-4F * (m.at[k] / (sqrtf(fabsf(v.at[k])) + 1e-8F) + 0.1F * p.at[k]);
    }
    store(parameter + i, p);
    store(mean + i, m);
    store(square + i, v);
  }
};

// ---- rows: a block each -------------------------------------------------------------------------

/// The sums of both over the block, in every thread.
__device__ float2 block_sum(float2 value) {
  __shared__ float2 parts[kThreads / 32];
  for (int lane = 16; lane > 0; lane /= 2) {
    value.x += __shfl_xor_sync(0xffffffff, value.x, lane);
    value.y += __shfl_xor_sync(0xffffffff, value.y, lane);
  }
  __syncthreads();  // the parts of an earlier sum have been read
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  float2 sum{0, 0};
  for (int i = 0; i < kThreads / 32; ++i) {
    sum.x += parts[i].x;
    sum.y += parts[i].y;
  }
  return sum;
}
__device__ float block_max(float value) {
  __shared__ float parts[kThreads / 32];
  for (int lane = 16; lane > 0; lane /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffff, value, lane));
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  for (int i = 0; i < kThreads / 32; ++i) value = fmaxf(value, parts[i]);
  return value;
}

template <class Visit>
__device__ void for_row(int columns, Visit visit) {
  for (int column = static_cast<int>(threadIdx.x) * kVector; column < columns;
       column += kThreads * kVector) {
    visit(static_cast<std::size_t>(blockIdx.x) * columns + column);
  }
}

template <bool kCentered>
__global__ void __launch_bounds__(kThreads) library_norm(const Half* x, Half* z, int columns) {
  float2 sums{0, 0};
  for_row(columns, [&](std::size_t at) {
    const Floats a = load(x + at);
    for (const float one : a.at) sums = {sums.x + one, sums.y + one * one};
  });
  sums = block_sum(sums);
  const float mean = kCentered ? sums.x / columns : 0;
  const float scale = rsqrtf(fmaxf(sums.y / columns - mean * mean, 0.0F) + kEpsilon);
  for_row(columns, [&](std::size_t at) {
    Floats a = load(x + at);
    for (float& one : a.at) one = (one - mean) * scale;
    store(z + at, a);
  });
}

/// With a mean of 0 and a deviation of 1, which the forward pass would have left.
template <bool kCentered>
__global__ void __launch_bounds__(kThreads)
    library_norm_backward(const Half* x, const Half* dy, Half* dx, int columns) {
  float2 sums{0, 0};
  for_row(columns, [&](std::size_t at) {
    const Floats a = load(x + at), b = load(dy + at);
    for (int k = 0; k < kVector; ++k) {
      sums = {sums.x + b.at[k], sums.y + a.at[k] * b.at[k]};
    }
  });
  sums = block_sum(sums);
  for_row(columns, [&](std::size_t at) {
    const Floats a = load(x + at);
    Floats b = load(dy + at);
    for (int k = 0; k < kVector; ++k) {
      b.at[k] -= (a.at[k] * sums.y + (kCentered ? sums.x : 0.0F)) / columns;
    }
    store(dx + at, b);
  });
}

/// log-softmax in two passes over the row: its maximum and sum, then its values.
template <class T, bool kLogarithm>
__global__ void __launch_bounds__(kThreads) library_softmax(const T* x, T* z, int columns) {
  float largest = -FLT_MAX, sum = 0;
  for_row(columns, [&](std::size_t at) {
    const Floats a = load(x + at);
    float here = largest;
    for (const float one : a.at) here = fmaxf(here, one);
    sum *= expf(largest - here);
    for (const float one : a.at) sum += expf(one - here);
    largest = here;
  });
  const float top = block_max(largest);
  sum = block_sum({sum * expf(largest - top), 0}).x;
  const float logarithm = logf(sum), inverse = 1 / sum;
  for_row(columns, [&](std::size_t at) {
    Floats a = load(x + at);
    for (float& one : a.at) one = kLogarithm ? one - top - logarithm : expf(one - top) * inverse;
    store(z + at, a);
  });
}

/// Of a softmax (kLogarithm: of its logarithm) whose values are y.
template <class T, bool kLogarithm>
__global__ void __launch_bounds__(kThreads)
    library_softmax_backward(const T* dy, const T* y, T* dx, int columns) {
  float2 sums{0, 0};
  for_row(columns, [&](std::size_t at) {
    const Floats a = load(dy + at), b = load(y + at);
    for (int k = 0; k < kVector; ++k) sums.x += a.at[k] * (kLogarithm ? 1.0F : b.at[k]);
  });
  sums = block_sum(sums);
  for_row(columns, [&](std::size_t at) {
    Floats a = load(dy + at);
    const Floats b = load(y + at);
    for (int k = 0; k < kVector; ++k) {
      a.at[k] = kLogarithm ? a.at[k] - expf(b.at[k]) * sums.x : b.at[k] * (a.at[k] - sums.x);
    }
    store(dx + at, a);
  });
}

/// Sums over the rows, by column: of x, and where there is y of x * y too.
__global__ void __launch_bounds__(kThreads)
    library_column_sum(const Half* x, const Half* y, float* sums, int rows, int columns) {
  const int column =
      (static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x)) * kVector;
  if (column >= columns) return;
  Floats sum{}, products{};
  const int first = static_cast<int>(blockIdx.y) * kRowsOfASum;
  for (int row = first; row < rows && row < first + kRowsOfASum; ++row) {
    const std::size_t at = static_cast<std::size_t>(row) * columns + column;
    const Floats a = load(x + at);
    if (y != nullptr) {
      const Floats b = load(y + at);
      for (int k = 0; k < kVector; ++k) products.at[k] += a.at[k] * b.at[k];
    }
    for (int k = 0; k < kVector; ++k) sum.at[k] += a.at[k];
  }
  for (int k = 0; k < kVector; ++k) {
    atomicAdd(sums + column + k, sum.at[k]);
    if (y != nullptr) atomicAdd(sums + columns + column + k, products.at[k]);
  }
}

template <class Map>
cudaError_t launch_map(cudaStream_t stream, Map map, std::size_t elements) {
  const std::size_t vectors = elements / kVector;
  library_map<<<static_cast<unsigned>((vectors + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
      map, vectors);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_score_softmax(cudaStream_t stream, void* scores, std::size_t rows,
                                 std::size_t columns) {
  Half* at = static_cast<Half*>(scores);
  library_softmax<Half, false>
      <<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(at, at, static_cast<int>(columns));
  return cudaGetLastError();
}

cudaError_t launch_score_gradient(cudaStream_t stream, void* gradient, const void* probabilities,
                                  std::size_t rows, std::size_t columns) {
  Half* at = static_cast<Half*>(gradient);
  library_softmax_backward<Half, false><<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(
      at, static_cast<const Half*>(probabilities), at, static_cast<int>(columns));
  return cudaGetLastError();
}

cudaError_t launch_library_kernel(cudaStream_t stream, KernelKind kind, const LibraryLayout& layout,
                                  void* scratch) {
  const std::size_t elements = layout.rows * layout.columns;
  const auto rows = static_cast<unsigned>(layout.rows);
  const int columns = static_cast<int>(layout.columns);
  const auto half = [&](int i) {
    return reinterpret_cast<Half*>(static_cast<char*>(scratch) + layout.offsets[i]);
  };
  const auto single = [&](int i) { return reinterpret_cast<float*>(half(i)); };
  switch (kind) {
    case KernelKind::Pointwise:
    case KernelKind::Captured:
      return launch_map(stream, Add<Half, Half>{half(0), half(1), half(2)}, elements);
    case KernelKind::Narrow:
      return launch_map(stream, Copy<float, Half>{single(0), half(1)}, elements);
    case KernelKind::Widen:
      return launch_map(stream, Copy<Half, float>{half(0), single(1)}, elements);
    case KernelKind::Mixed:
      return launch_map(stream, Add<float, Half>{single(0), half(1), single(0)}, elements);
    case KernelKind::Strided:
      return launch_map(stream, StridedProduct{half(0), half(1), half(2), columns}, elements / 2);
    case KernelKind::Concatenate:
      return launch_map(stream, Exchange{half(0), half(1), columns}, elements);
    case KernelKind::LayerNorm:
      library_norm<true><<<rows, kThreads, 0, stream>>>(half(0), half(1), columns);
      return cudaGetLastError();
    case KernelKind::RmsNorm:
      library_norm<false><<<rows, kThreads, 0, stream>>>(half(0), half(1), columns);
      return cudaGetLastError();
    case KernelKind::LayerNormBackward:
      library_norm_backward<true>
          <<<rows, kThreads, 0, stream>>>(half(0), half(1), half(2), columns);
      return cudaGetLastError();
    case KernelKind::RmsNormBackward:
      library_norm_backward<false>
          <<<rows, kThreads, 0, stream>>>(half(0), half(1), half(2), columns);
      return cudaGetLastError();
    case KernelKind::LayerNormWeights:
    case KernelKind::RmsNormWeights:
    case KernelKind::ColumnSum: {
      const bool is_sum = kind == KernelKind::ColumnSum;
      const dim3 grid((columns + kThreads * kVector - 1) / (kThreads * kVector),
                      (rows + kRowsOfASum - 1) / kRowsOfASum);
      library_column_sum<<<grid, kThreads, 0, stream>>>(half(0), is_sum ? nullptr : half(1),
                                                        single(3), static_cast<int>(rows), columns);
      return cudaGetLastError();
    }
    case KernelKind::Softmax:
      library_softmax<float, true><<<rows, kThreads, 0, stream>>>(single(0), single(1), columns);
      return cudaGetLastError();
    case KernelKind::SoftmaxBackward:
      library_softmax_backward<float, true>
          <<<rows, kThreads, 0, stream>>>(single(0), single(1), single(2), columns);
      return cudaGetLastError();
    case KernelKind::Gather:
      return launch_map(stream, GatherRows{half(3), half(0), columns}, elements);
    case KernelKind::GatherBackward:
      return launch_map(stream, ScatterRows{half(0), reinterpret_cast<__half2*>(half(3)), columns},
                        elements);
    case KernelKind::Optimizer:
      return launch_map(stream, AdamW<float>{single(0), single(1), single(2), single(3)}, elements);
    case KernelKind::OptimizerHalf:
      return launch_map(stream, AdamW<Half>{half(0), half(1), half(2), half(3)}, elements);
    case KernelKind::ShardCopy:
      return launch_map(stream, Copy<Half, Half>{half(0), half(1)}, elements);
    case KernelKind::AttentionForward:
    case KernelKind::AttentionBackward:
      break;
  }
  return cudaErrorInvalidValue;
}

}  // namespace foretrace::hw
