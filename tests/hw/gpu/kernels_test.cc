#include "hw/cuda/kernels.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "hw/cuda/cuda_check.h"
#include "hw/cuda/device_guard.h"
#include "hw/cuda/hash.h"
#include "hw/cuda/pattern.h"
#include "tests/hw/gpu/device_vector.h"
#include "tests/hw/gpu/gpu.h"

namespace foretrace::hw {
namespace {

class Kernels : public testing::Test {
 protected:
  void SetUp() override {
    FORETRACE_NEEDS_GPUS(1);
    use_device(0);
    cuda_check(prepare_kernels(limits_));
    std::int64_t step_ns = 0;
    cuda_check(measure_spin_clock(clock_, step_ns));
    // The first launches load code and wake the GPU up.
    cuda_check(launch_spin(cudaStreamLegacy, limits_, clock_, 50'000'000, 1));
    cuda_check(cudaDeviceSynchronize());
  }

  /// GPU time of what `launch` puts on the default stream, in milliseconds.
  template <class Launch>
  static float time_ms(Launch launch) {
    cudaEvent_t begin{};
    cudaEvent_t end{};
    cuda_check(cudaEventCreate(&begin));
    cuda_check(cudaEventCreate(&end));
    cuda_check(cudaEventRecord(begin, cudaStreamLegacy));
    launch();
    cuda_check(cudaEventRecord(end, cudaStreamLegacy));
    cuda_check(cudaEventSynchronize(end));
    float ms = 0;
    cuda_check(cudaEventElapsedTime(&ms, begin, end));
    cuda_ignore(cudaEventDestroy(begin));
    cuda_ignore(cudaEventDestroy(end));
    return ms;
  }

  DeviceLimits limits_;
  SpinClock clock_;
};

TEST_F(Kernels, SpinLastsItsDuration) {
  const auto spin = [&](std::int64_t ns) {
    return time_ms([&] { cuda_check(launch_spin(cudaStreamLegacy, limits_, clock_, ns, 1)); });
  };
  spin(1'000);  // the first launch loads the kernel
  for (const std::int64_t ns : {1'000'000, 5'000'000}) {
    const float ms = spin(ns);
    // 10 us for the launch between the events, 2 % for the spin.
    EXPECT_GE(ms, static_cast<float>(ns) * 1e-6F * 0.98F);
    EXPECT_LE(ms, static_cast<float>(ns) * 1e-6F * 1.02F + 0.02F);
  }
}

TEST_F(Kernels, SpinBlocksAreAloneOnTheirSm) {
  // Twice as many blocks as SMs, each alone on its SM for 1 ms: two rounds.
  const float ms = time_ms([&] {
    cuda_check(launch_spin(cudaStreamLegacy, limits_, clock_, 1'000'000, 2 * limits_.sm_count));
  });
  EXPECT_GT(ms, 1.95F);
  EXPECT_LT(ms, 2.2F);
}

TEST_F(Kernels, SpinsOfTwoStreamsShareTheSmsWithoutSharingOne) {
  cudaStream_t streams[2];
  for (cudaStream_t& stream : streams) {
    cuda_check(cudaStreamCreateWithFlags(&stream, cudaStreamDefault));
  }
  const auto together = [&](unsigned blocks) {
    return time_ms([&] {
      for (const cudaStream_t stream : streams) {
        cuda_check(launch_spin(stream, limits_, clock_, 1'000'000, blocks));
      }
    });
  };
  EXPECT_LT(together(limits_.sm_count / 2), 1.3F);  // half the SMs each: at once
  EXPECT_GT(together(limits_.sm_count), 1.9F);      // all SMs each: one after the other
  for (const cudaStream_t stream : streams) cuda_ignore(cudaStreamDestroy(stream));
}

TEST_F(Kernels, ElementwiseAddsEveryElementToTheLast) {
  // Not a multiple of 16 bytes: the tail counts too.
  constexpr std::size_t kCount = 1'000'003;
  std::vector<std::int32_t> a(kCount);
  std::vector<std::int32_t> b(kCount);
  std::iota(a.begin(), a.end(), 0);
  std::iota(b.begin(), b.end(), 5);
  const DeviceVector<std::int32_t> x{a};
  const DeviceVector<std::int32_t> y{b};
  const DeviceVector<std::int32_t> z{std::vector<std::int32_t>(kCount, -1)};
  cuda_check(launch_elementwise(cudaStreamLegacy, Element::Int32, x.data(), y.data(), z.data(),
                                x.bytes()));
  const auto sums = z.read();
  for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(sums[i], a[i] + b[i]) << i;
}

TEST_F(Kernels, ElementwiseOfOneSourceIsRelu) {
  const std::vector<float> values{-1.5F, 0, 2.5F, -0.0F, 1e30F, -1e30F, 7};
  const DeviceVector<float> x{values};
  const DeviceVector<float> y{std::vector<float>(values.size(), 9)};
  cuda_check(launch_elementwise(cudaStreamLegacy, Element::Float32, x.data(), nullptr, y.data(),
                                x.bytes()));
  const auto out = y.read();
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(out[i], std::max(values[i], 0.0F));
}

TEST_F(Kernels, ElementwiseWithoutSourceWritesNumbersFromZeroToOne) {
  const DeviceVector<float> x{std::vector<float>(100'001, -1)};
  cuda_check(launch_elementwise(cudaStreamLegacy, Element::Float32, nullptr, nullptr, x.data(),
                                x.bytes()));
  const auto out = x.read();
  double sum = 0;
  for (const float value : out) {
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
  }
  // The mean of 100,001 uniform numbers: 0.5, give or take 5 standard deviations of 0.0009.
  EXPECT_NEAR(sum / static_cast<double>(out.size()), 0.5, 0.005);
}

TEST_F(Kernels, ReductionCombinesEveryElement) {
  void* scratch = nullptr;
  cuda_check(cudaMalloc(&scratch, kReductionScratchBytes));
  cuda_check(cudaMemset(scratch, 0, kReductionScratchBytes));
  for (const std::size_t count :
       {std::size_t{1}, std::size_t{5}, std::size_t{1000}, std::size_t{10'000'019}}) {
    std::vector<std::int64_t> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::int64_t>(i % 1000) - 400;
    const DeviceVector<std::int64_t> x{values};
    const DeviceVector<std::int64_t> y{{0}};
    const auto reduce = [&](Combine combine) {
      cuda_check(launch_reduction(cudaStreamLegacy, limits_, Element::Int64, combine, x.data(),
                                  y.data(), x.bytes(), scratch));
      return y.read()[0];
    };
    EXPECT_EQ(reduce(Combine::Sum), std::accumulate(values.begin(), values.end(), std::int64_t{0}));
    EXPECT_EQ(reduce(Combine::Min), *std::min_element(values.begin(), values.end()));
    EXPECT_EQ(reduce(Combine::Max), *std::max_element(values.begin(), values.end()));
  }
  cuda_ignore(cudaFree(scratch));
}

TEST_F(Kernels, ReductionOfSmallTypesDoesNotOverflowOnTheWay) {
  void* scratch = nullptr;
  cuda_check(cudaMalloc(&scratch, kReductionScratchBytes));
  cuda_check(cudaMemset(scratch, 0, kReductionScratchBytes));
  std::vector<signed char> values(4099, 1);
  for (std::size_t i = 0; i < 4000; ++i) values[i] = i % 2 == 0 ? 127 : -127;
  const DeviceVector<signed char> x{values};
  const DeviceVector<signed char> y{{0}};
  cuda_check(launch_reduction(cudaStreamLegacy, limits_, Element::Int8, Combine::Sum, x.data(),
                              y.data(), x.bytes(), scratch));
  EXPECT_EQ(y.read()[0], 99);
  cuda_ignore(cudaFree(scratch));
}

TEST_F(Kernels, PatternComparisonFindsOneWrongElement) {
  constexpr std::size_t kCount = 1'000'003;
  constexpr std::uint64_t kFirst = 12'345;
  const DeviceVector<float> x{std::vector<float>(kCount, -1)};
  cuda_check(launch_pattern_fill(cudaStreamLegacy, Element::Float32, x.data(), kCount, kFirst, 9));
  auto values = x.read();
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(values[i], static_cast<float>(pattern_value(9, kFirst + i)));
  }
  PatternSum expected{};
  expected.combine = Combine::Sum;
  expected.count = 1;
  expected.terms[0] = {9, 0, 1};
  const auto mismatches = [&](const DeviceVector<float>& data) {
    const DeviceVector<Mismatch> result{{{0, ~0ULL}}};
    cuda_check(launch_compare(cudaStreamLegacy, Element::Float32, data.data(), kCount, kFirst,
                              expected, static_cast<Mismatch*>(result.data())));
    return result.read()[0];
  };
  EXPECT_EQ(mismatches(x).count, 0U);
  values[777] += 1;
  const Mismatch found = mismatches(DeviceVector<float>{values});
  EXPECT_EQ(found.count, 1U);
  EXPECT_EQ(found.first_index, kFirst + 777);
}

}  // namespace
}  // namespace foretrace::hw
