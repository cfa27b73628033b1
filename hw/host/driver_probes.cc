// With a GPU: what its driver's calls cost on this host.
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "hw/cuda/cuda_check.h"
#include "hw/cuda/kernels.h"
#include "hw/host/driver_device.h"
#include "hw/host/pages.h"
#include "hw/host/probes.h"
#include "hw/host/timer.h"

namespace foretrace::hw {
namespace {

using enum MeasuredUnit;
using Values = std::vector<double>;
using namespace std::chrono_literals;
using Shared = std::shared_ptr<DriverDevice>;

cudaError_t launch(cudaStream_t stream) { return launch_spin(stream, {}, {}, 0, 1); }

/// As the harness times launches beside every program (node/host_speed.h), and one whose code and
/// data have left the caches.
Probe launches(const Shared& device) {
  auto other_data = std::make_shared<HostPages>(64 * kMi);
  return {{{"host.launch_kernel", Time}, {"a launch behind 64 MiB of the host's own work", Time}},
          [=] {
            const double again = device->call([&] { return launch(device->stream); });
            other_data->touch(64);
            const double cold = seconds_of([&] { cuda_check(launch(device->stream)); });
            cuda_check(cudaDeviceSynchronize());
            return Values{again, cold};
          }};
}

Probe calls(const Shared& device) {
  return {
      {{"host.memcpy_async", Time},
       {"host.memset", Time},
       {"host.event_record", Time},
       {"host.event_record_untimed", Time},
       {"host.stream_wait_event", Time},
       {"host.query", Time},
       {"host.synchronize", Time},
       {"host.device_synchronize", Time},
       {"host.malloc_async", Time},
       {"host.free_async", Time}},
      [=] {
        const DriverDevice& on = *device;
        Values values;
        values.push_back(on.call([&] {
          return cudaMemcpyAsync(on.memory, on.pinned, 32 * kKi, cudaMemcpyHostToDevice, on.stream);
        }));
        values.push_back(on.call([&] { return cudaMemsetAsync(on.memory, 0, kMi, on.stream); }));
        values.push_back(on.call([&] { return cudaEventRecord(on.timed, on.stream); }));
        values.push_back(on.call([&] { return cudaEventRecord(on.untimed, on.stream); }));
        values.push_back(on.call([&] { return cudaStreamWaitEvent(on.other, on.untimed, 0); }));
        values.push_back(on.call([&] { return cudaEventQuery(on.untimed); }));
        values.push_back(on.call([&] { return cudaStreamSynchronize(on.stream); }));
        values.push_back(on.call([&] { return cudaDeviceSynchronize(); }));
        const double both = on.call([&] {
          void* at = nullptr;
          const cudaError_t error = cudaMallocAsync(&at, kMi, on.stream);
          return error == cudaSuccess ? cudaFreeAsync(at, on.stream) : error;
        });
        values.insert(values.end(), 2, both / 2);
        return values;
      }};
}

/// What a query takes by what it finds: work that goes on, work that has ended since the last call,
/// and the same a while later.
Probe queries(const Shared& device) {
  return {{{"cudaEventQuery that finds work going on", Time},
           {"cudaEventQuery, the first that finds it ended", Time},
           {"cudaEventQuery, 2 us behind another one", Time}},
          [=] {
            constexpr std::int64_t kBusyNs = 200'000;
            const DriverDevice& on = *device;
            const auto query = [&] { static_cast<void>(cudaEventQuery(on.untimed)); };
            const auto wait = [](double seconds) {
              const std::int64_t begin = now_ns();
              while (static_cast<double>(now_ns() - begin) * 1e-9 < seconds) relax_cpu();
            };
            Values going, first, later;
            for (int turn = 0; turn < kRows; ++turn) {
              cuda_check(launch_spin(on.stream, {}, {}, kBusyNs, 1));
              cuda_check(cudaEventRecord(on.untimed, on.stream));
              going.push_back(seconds_of([&] {
                                for (int i = 0; i < kCallsInARow; ++i) query();
                              }) /
                              kCallsInARow);
              wait(3e-9 * static_cast<double>(kBusyNs));
              first.push_back(seconds_of(query));
              double sum = 0;
              for (int i = 0; i < kCallsInARow; ++i) {
                wait(2e-6);
                sum += seconds_of(query);
              }
              later.push_back(sum / kCallsInARow);
              cuda_check(cudaStreamSynchronize(on.stream));
            }
            static_cast<void>(cudaGetLastError());  // "not ready" is no error of anybody's
            Values medians;
            for (Values* values : {&going, &first, &later}) {
              std::ranges::nth_element(*values, values->begin() + kRows / 2);
              medians.push_back((*values)[kRows / 2]);
            }
            return medians;
          }};
}

Probe products(const Shared& device) {
  cublasHandle_t made = nullptr;
  if (cublasCreate(&made) != CUBLAS_STATUS_SUCCESS) return {{}, [] { return Values{}; }};
  auto handle =
      std::shared_ptr<cublasContext>{made, [](cublasHandle_t one) { cublasDestroy(one); }};
  cublasSetStream(made, device->stream);
  return {{{"cublasGemmEx of 128 x 128 x 128", Time}}, [=] {
            const float one = 1, none = 0;
            const double seconds = device->call([&] {
              const auto status =
                  cublasGemmEx(handle.get(), CUBLAS_OP_N, CUBLAS_OP_N, 128, 128, 128, &one,
                               device->memory, CUDA_R_16BF, 128, device->memory, CUDA_R_16BF, 128,
                               &none, static_cast<char*>(device->memory) + kMi, CUDA_R_16BF, 128,
                               CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
              return status == CUBLAS_STATUS_SUCCESS ? cudaSuccess : cudaErrorUnknown;
            });
            return Values{seconds};
          }};
}

/// Two threads launch into streams of their own at once.
Probe lock(const Shared& device) {
  return {{{"host.contention", Ratio}}, [=] {
            constexpr int kTurns = 8;
            const auto turns = [](cudaStream_t stream) {
              double seconds = 0;
              for (int turn = 0; turn < kTurns; ++turn) {
                seconds += seconds_of([&] {
                  for (int i = 0; i < kCallsInARow; ++i) cuda_check(launch(stream));
                });
                cuda_check(cudaStreamSynchronize(stream));
              }
              return seconds;
            };
            const double alone = turns(device->stream);
            std::atomic<bool> stop{false}, begun{false};
            std::thread other{[&] {
              while (!stop) {
                for (int i = 0; i < kCallsInARow; ++i) cuda_ignore(launch(device->other));
                begun = true;
                cuda_ignore(cudaStreamSynchronize(device->other));
              }
            }};
            while (!begun) relax_cpu();
            const double beside = turns(device->stream);
            stop = true;
            other.join();
            return Values{beside / alone - 1};
          }};
}

struct Times {
  double make = 0, give_back = 0;
};

enum class Pause { None, Some };

/// The median of some times in a row; behind a pause the driver takes several times as long.
Times device_memory(std::size_t bytes, Pause pause) {
  constexpr std::size_t kTimes = 5;
  std::array<Times, kTimes + 1> all{};
  for (Times& times : all) {
    void* at = nullptr;
    if (pause == Pause::Some) std::this_thread::sleep_for(10ms);
    times.make = seconds_of([&] { cuda_check(cudaMalloc(&at, bytes)); });
    if (pause == Pause::Some) std::this_thread::sleep_for(10ms);
    times.give_back = seconds_of([&] { cuda_check(cudaFree(at)); });
    if (pause == Pause::Some) return times;
  }
  const auto median = [&](double Times::*of) {
    std::array<double, kTimes> values{};
    for (std::size_t i = 0; i < kTimes; ++i) values[i] = all[i + 1].*of;  // the first warms up
    std::ranges::nth_element(values, values.begin() + kTimes / 2);
    return values[kTimes / 2];
  };
  return {median(&Times::make), median(&Times::give_back)};
}

/// Of one of some objects that find room in a piece which is there and stays.
Times small_objects() {
  constexpr std::size_t kSmall = 20 * kKi, kObjects = 32;
  void* first = nullptr;
  cuda_check(cudaMalloc(&first, kSmall));
  std::array<void*, kObjects> objects{};
  Times times;
  times.make = seconds_of([&] {
    for (void*& one : objects) cuda_check(cudaMalloc(&one, kSmall));
  });
  times.give_back = seconds_of([&] {
    for (void* one : objects) cuda_check(cudaFree(one));
  });
  cuda_check(cudaFree(first));
  return {times.make / kObjects, times.give_back / kObjects};
}

Probe device_allocations() {
  return {{{"host.malloc", Time},
           {"host.malloc_bandwidth", Rate},
           {"host.free", Time},
           {"host.free_bandwidth", Rate},
           {"host.malloc_small", Time},
           {"host.free_small", Time},
           {"cudaMalloc behind a pause", Time, "2MiB"},
           {"cudaFree behind a pause", Time, "2MiB"},
           {"cudaMalloc in a row", Time, "1GiB"},
           {"cudaFree in a row", Time, "1GiB"}},
          [] {
            constexpr std::size_t kLeast = DriverDevice::kPiece;
            const Times small = device_memory(kLeast, Pause::None),
                        rested = device_memory(kLeast, Pause::Some),
                        large = device_memory(kGi, Pause::None), object = small_objects();
            return Values{small.make,      slope(kLeast, small.make, kGi, large.make),
                          small.give_back, slope(kLeast, small.give_back, kGi, large.give_back),
                          object.make,     object.give_back,
                          rested.make,     rested.give_back,
                          large.make,      large.give_back};
          }};
}

Times pinned_memory(std::size_t bytes) {
  void* at = nullptr;
  Times times;
  times.make = seconds_of([&] { cuda_check(cudaHostAlloc(&at, bytes, cudaHostAllocPortable)); });
  times.give_back = seconds_of([&] { cuda_check(cudaFreeHost(at)); });
  return times;
}

/// HostPages that were touched before.
Times registered_memory(std::size_t bytes, PageKind kind = PageKind::Usual) {
  const HostPages pages{bytes, kind};
  std::memset(pages.data(), 1, bytes);
  Times times;
  times.make = seconds_of(
      [&] { cuda_check(cudaHostRegister(pages.data(), bytes, cudaHostRegisterPortable)); });
  times.give_back = seconds_of([&] { cuda_check(cudaHostUnregister(pages.data())); });
  return times;
}

Probe pinned_allocations() {
  return {{{"host.host_alloc_least", Time},
           {"host.host_alloc", Time},
           {"host.host_alloc_bandwidth", Rate},
           {"host.host_free_least", Time},
           {"host.host_free", Time},
           {"host.host_free_bandwidth", Rate},
           {"host.host_alloc_small", Time},
           {"host.host_free_small", Time}},
          [] {
            const Times least = pinned_memory(64 * kKi);
            void* there = nullptr;
            cuda_check(cudaHostAlloc(&there, 64 * kKi, cudaHostAllocPortable));
            const Times small = pinned_memory(64 * kKi);
            cuda_check(cudaFreeHost(there));
            const Times middle = pinned_memory(4 * kMi), large = pinned_memory(128 * kMi);
            const double make = slope(4 * kMi, middle.make, 128 * kMi, large.make);
            const double back = slope(4 * kMi, middle.give_back, 128 * kMi, large.give_back);
            return Values{least.make,
                          base(4 * kMi, middle.make, make),
                          make,
                          least.give_back,
                          base(4 * kMi, middle.give_back, back),
                          back,
                          small.make,
                          small.give_back};
          }};
}

Probe registrations() {
  return {{{"host.host_register", Time},
           {"host.host_register_bandwidth", Rate},
           {"host.host_unregister", Time},
           {"host.host_unregister_bandwidth", Rate},
           {"cudaHostRegister of pages of 4 KiB", Rate, "64MiB"},
           {"cudaHostRegister of pages of 2 MiB", Rate, "64MiB"}},
          [] {
            // The only registration of a process takes three times as long as one beside others.
            const HostPages kept{64 * kKi, PageKind::Usual};
            std::memset(kept.data(), 1, 64 * kKi);
            cuda_check(cudaHostRegister(kept.data(), 64 * kKi, cudaHostRegisterPortable));
            const Times least = registered_memory(64 * kKi);
            const Times small = registered_memory(4 * kMi), large = registered_memory(64 * kMi);
            const double rate = slope(4 * kMi, small.make, 64 * kMi, large.make);
            const double back = slope(4 * kMi, small.give_back, 64 * kMi, large.give_back);
            const auto block = static_cast<double>(64 * kMi);
            Values values{base(64 * kKi, least.make, rate),
                          rate,
                          base(64 * kKi, least.give_back, back),
                          back,
                          block / registered_memory(64 * kMi, PageKind::Small).make,
                          block / registered_memory(64 * kMi, PageKind::Huge).make};
            cuda_check(cudaHostUnregister(kept.data()));
            return values;
          }};
}

}  // namespace

std::vector<Probe> driver_probes() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    static_cast<void>(cudaGetLastError());
    return {};
  }
  cuda_check(cudaSetDevice(0));
  const auto device = std::make_shared<DriverDevice>();
  std::vector<Probe> probes{launches(device),     calls(device),  queries(device),
                            products(device),     lock(device),   device_allocations(),
                            pinned_allocations(), registrations()};
  for (Probe& probe : copy_probes(device)) probes.push_back(std::move(probe));
  return probes;
}

}  // namespace foretrace::hw
