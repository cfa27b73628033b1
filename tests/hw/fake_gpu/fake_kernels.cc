// The launch functions of kernels.h and pattern.h on the host. Half types have no arithmetic here.
#include <algorithm>
#include <chrono>
#include <thread>

#include "hw/cuda/hash.h"
#include "hw/cuda/kernels.h"
#include "hw/cuda/pattern.h"
#include "hw/library/library_kernels.h"
#include "tests/hw/fake_gpu/fake_gpu.h"

namespace foretrace::hw {
namespace {

template <class Launch>
cudaError_t for_element(Element type, Launch launch) {
  switch (type) {
    case Element::Float32:
      return launch(float{});
    case Element::Float64:
      return launch(double{});
    case Element::Int8:
      return launch(static_cast<signed char>(0));
    case Element::Int32:
      return launch(int{});
    case Element::Int64:
      return launch(0LL);
    case Element::Float16:
    case Element::BFloat16:
      break;
  }
  return cudaErrorNotSupported;
}

double combined(Combine combine, double x, double y) {
  switch (combine) {
    case Combine::Prod:
      return x * y;
    case Combine::Min:
      return std::min(x, y);
    case Combine::Max:
      return std::max(x, y);
    case Combine::Sum:
    case Combine::Avg:
      break;
  }
  return x + y;
}

}  // namespace

cudaError_t measure_spin_clock(SpinClock&, std::int64_t& step_ns) {
  step_ns = 1;
  return cudaSuccess;
}
cudaError_t prepare_kernels(DeviceLimits& limits) {
  limits = {1, 1};
  return cudaSuccess;
}

cudaError_t launch_spin(cudaStream_t, const DeviceLimits&, SpinClock, std::int64_t duration_ns,
                        unsigned) {
  fake_gpu::queue([=] { std::this_thread::sleep_for(std::chrono::nanoseconds{duration_ns}); });
  return cudaSuccess;
}

cudaError_t launch_fault(cudaStream_t) {
  fake_gpu::queue([] { fake_gpu::lose_context(); });
  return cudaSuccess;
}
cudaError_t load_fault_kernel() { return cudaSuccess; }

// Of library kernels only the launch is made here: nothing reads what they compute.
cudaError_t launch_library_kernel(cudaStream_t, KernelKind, const LibraryLayout&, void*) {
  fake_gpu::queue([] {});
  return cudaSuccess;
}
cudaError_t launch_score_softmax(cudaStream_t, void*, std::size_t, std::size_t) {
  fake_gpu::queue([] {});
  return cudaSuccess;
}
cudaError_t launch_score_gradient(cudaStream_t, void*, const void*, std::size_t, std::size_t) {
  fake_gpu::queue([] {});
  return cudaSuccess;
}

cudaError_t launch_elementwise(cudaStream_t, Element type, const void* a, const void* b, void* dst,
                               std::size_t bytes) {
  return for_element(type, [&](auto zero) {
    using T = decltype(zero);
    fake_gpu::queue([=] {
      auto* x = static_cast<const T*>(a);
      auto* y = static_cast<const T*>(b);
      auto* z = static_cast<T*>(dst);
      for (std::size_t i = 0; i < bytes / sizeof(T); ++i) {
        z[i] = x == nullptr   ? T{}
               : y == nullptr ? std::max(x[i], T{})
                              : static_cast<T>(x[i] + y[i]);
      }
    });
    return cudaSuccess;
  });
}

cudaError_t launch_reduction(cudaStream_t, const DeviceLimits&, Element type, Combine combine,
                             const void* src, void* dst, std::size_t bytes, void*) {
  return for_element(type, [&](auto zero) {
    using T = decltype(zero);
    fake_gpu::queue([=] {
      auto* x = static_cast<const T*>(src);
      double result = static_cast<double>(x[0]);
      const std::size_t count = bytes / sizeof(T);
      for (std::size_t i = 1; i < count; ++i) {
        result = combined(combine, result, static_cast<double>(x[i]));
      }
      if (combine == Combine::Avg) result /= static_cast<double>(count);
      *static_cast<T*>(dst) = static_cast<T>(result);
    });
    return cudaSuccess;
  });
}

cudaError_t launch_random_fill(cudaStream_t, Element type, void* dst, std::size_t bytes,
                               std::uint32_t seed, Distribution) {
  if (type == Element::BFloat16) {  // what library kernels work on, which compute nothing here
    fake_gpu::queue([=] { std::fill_n(static_cast<char*>(dst), bytes, '\0'); });
    return cudaSuccess;
  }
  return for_element(type, [&](auto zero) {
    using T = decltype(zero);
    fake_gpu::queue([=] {
      for (std::size_t i = 0; i < bytes / sizeof(T); ++i) {
        static_cast<T*>(dst)[i] = static_cast<T>(random_bits(seed, i) >> 30);
      }
    });
    return cudaSuccess;
  });
}

cudaError_t launch_pattern_fill(cudaStream_t, Element type, void* dst, std::size_t count,
                                std::uint64_t first_index, std::uint32_t seed) {
  return for_element(type, [&](auto zero) {
    using T = decltype(zero);
    fake_gpu::queue([=] {
      for (std::size_t i = 0; i < count; ++i) {
        static_cast<T*>(dst)[i] = static_cast<T>(pattern_value(seed, first_index + i));
      }
    });
    return cudaSuccess;
  });
}

cudaError_t launch_compare(cudaStream_t, Element type, const void* data, std::size_t count,
                           std::uint64_t first_index, const PatternSum& expected,
                           Mismatch* mismatch) {
  return for_element(type, [&](auto zero) {
    using T = decltype(zero);
    fake_gpu::queue([=] {
      for (std::size_t i = 0; i < count; ++i) {
        double right = 0;
        for (int t = 0; t < expected.count; ++t) {
          const PatternTerm& term = expected.terms[t];
          const auto index =
              static_cast<std::uint64_t>(static_cast<std::int64_t>(first_index + i) + term.shift);
          const double x = term.factor * pattern_value(term.seed, index);
          right = t == 0 ? x : combined(expected.combine, right, x);
        }
        if (static_cast<const T*>(data)[i] == static_cast<T>(right)) continue;
        ++mismatch->count;
        mismatch->first_index =
            std::min<unsigned long long>(mismatch->first_index, first_index + i);
      }
    });
    return cudaSuccess;
  });
}

}  // namespace foretrace::hw
