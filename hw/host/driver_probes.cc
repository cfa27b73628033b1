// With a GPU: what its driver's calls cost on this host.
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "hw/cuda/cuda_check.h"
#include "hw/cuda/kernels.h"
#include "hw/host/pages.h"
#include "hw/host/probes.h"
#include "hw/host/timer.h"

namespace foretrace::hw {
namespace {

using enum MeasuredUnit;
using Values = std::vector<double>;

constexpr std::size_t kKi = 1024, kMi = kKi * kKi, kGi = kKi * kMi;
constexpr int kCallsInARow = 16;  // far fewer than a launch queue holds

/// Bytes of the larger size beyond the smaller one, over the time beyond it.
double slope(std::size_t small, double small_seconds, std::size_t large, double large_seconds) {
  return static_cast<double>(large - small) / (large_seconds - small_seconds);
}

/// What all probes of the driver work with.
struct Device {
  Device() {
    cuda_check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0));
    cuda_check(cudaStreamCreateWithPriority(&other, cudaStreamNonBlocking, 0));
    cuda_check(cudaMalloc(&memory, kMemory));
    cuda_check(cudaHostAlloc(&pinned, kMi, cudaHostAllocPortable));
    cuda_check(cudaEventCreateWithFlags(&timed, cudaEventDefault));
    cuda_check(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
  }
  ~Device() {
    for (cudaStream_t one : {stream, other}) cuda_ignore(cudaStreamDestroy(one));
    cuda_ignore(cudaFree(memory));
    cuda_ignore(cudaFreeHost(pinned));
    for (cudaEvent_t one : {timed, untimed}) cuda_ignore(cudaEventDestroy(one));
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// Of one of some calls in a row, on an idle GPU.
  template <class Function>
  double call(Function&& function) const {
    const double seconds = seconds_of([&] {
      for (int i = 0; i < kCallsInARow; ++i) cuda_check(function());
    });
    cuda_check(cudaDeviceSynchronize());
    return seconds / kCallsInARow;
  }

  static constexpr std::size_t kMemory = 64 * kMi;
  cudaStream_t stream{}, other{};
  void *memory{}, *pinned{};
  cudaEvent_t timed{}, untimed{};
};
using Shared = std::shared_ptr<Device>;

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
      {{"cudaMemcpyAsync of 4 KiB, pinned", Time},
       {"cudaMemsetAsync of 1 MiB", Time},
       {"cudaEventRecord", Time},
       {"cudaEventRecord, without timing", Time},
       {"cudaStreamWaitEvent", Time},
       {"cudaEventQuery", Time},
       {"cudaStreamSynchronize, idle", Time},
       {"cudaDeviceSynchronize, idle", Time},
       {"cudaMallocAsync and cudaFreeAsync", Time}},
      [=] {
        const Device& on = *device;
        Values values;
        values.push_back(on.call([&] {
          return cudaMemcpyAsync(on.memory, on.pinned, 4 * kKi, cudaMemcpyHostToDevice, on.stream);
        }));
        values.push_back(on.call([&] { return cudaMemsetAsync(on.memory, 0, kMi, on.stream); }));
        values.push_back(on.call([&] { return cudaEventRecord(on.timed, on.stream); }));
        values.push_back(on.call([&] { return cudaEventRecord(on.untimed, on.stream); }));
        values.push_back(on.call([&] { return cudaStreamWaitEvent(on.other, on.untimed, 0); }));
        values.push_back(on.call([&] { return cudaEventQuery(on.untimed); }));
        values.push_back(on.call([&] { return cudaStreamSynchronize(on.stream); }));
        values.push_back(on.call([&] { return cudaDeviceSynchronize(); }));
        values.push_back(on.call([&] {
          void* at = nullptr;
          const cudaError_t error = cudaMallocAsync(&at, kMi, on.stream);
          return error == cudaSuccess ? cudaFreeAsync(at, on.stream) : error;
        }));
        return values;
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

Times device_memory(std::size_t bytes) {
  void* at = nullptr;
  Times times;
  times.make = seconds_of([&] { cuda_check(cudaMalloc(&at, bytes)); });
  times.give_back = seconds_of([&] { cuda_check(cudaFree(at)); });
  // What is freed is cleared before it is given out again, at 400 GB/s or more.
  std::this_thread::sleep_for(std::chrono::microseconds{bytes / (100 * kKi)});
  return times;
}

Probe device_allocations() {
  return {{{"host.malloc", Time},
           {"host.malloc_bandwidth", Rate},
           {"host.free", Time},
           {"host.free_bandwidth", Rate},
           {"cudaMalloc", Time, "64MiB"},
           {"cudaFree", Time, "64MiB"}},
          [] {
            const Times small = device_memory(kMi), middle = device_memory(64 * kMi),
                        large = device_memory(kGi);
            return Values{small.make,      slope(kMi, small.make, kGi, large.make),
                          small.give_back, slope(kMi, small.give_back, kGi, large.give_back),
                          middle.make,     middle.give_back};
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

/// A base that is no less than a tenth of the smaller one's time: what is below is noise.
double base(std::size_t bytes, double seconds, double rate) {
  return std::max(seconds - static_cast<double>(bytes) / rate, seconds / 10);
}

Probe pinned_allocations() {
  return {{{"host.host_alloc_least", Time},
           {"host.host_alloc", Time},
           {"host.host_alloc_bandwidth", Rate},
           {"host.host_free_least", Time},
           {"host.host_free", Time},
           {"host.host_free_bandwidth", Rate},
           {"cudaHostAlloc", Time, "1MiB"},
           {"cudaFreeHost", Time, "1MiB"}},
          [] {
            const Times least = pinned_memory(64 * kKi), small = pinned_memory(kMi),
                        middle = pinned_memory(16 * kMi), large = pinned_memory(128 * kMi);
            const double make = slope(16 * kMi, middle.make, 128 * kMi, large.make);
            const double back = slope(16 * kMi, middle.give_back, 128 * kMi, large.give_back);
            return Values{least.make,
                          base(16 * kMi, middle.make, make),
                          make,
                          least.give_back,
                          base(16 * kMi, middle.give_back, back),
                          back,
                          small.make,
                          small.give_back};
          }};
}

Probe registrations() {
  return {{{"host.host_register", Time},
           {"host.host_register_bandwidth", Rate},
           {"cudaHostRegister of pages of 4 KiB", Rate, "64MiB"},
           {"cudaHostRegister of pages of 2 MiB", Rate, "64MiB"},
           {"cudaHostUnregister", Rate, "64MiB"}},
          [] {
            const Times small = registered_memory(4 * kMi), large = registered_memory(64 * kMi);
            const double rate = slope(4 * kMi, small.make, 64 * kMi, large.make);
            const auto block = static_cast<double>(64 * kMi);
            return Values{base(4 * kMi, small.make, rate), rate,
                          block / registered_memory(64 * kMi, PageKind::Small).make,
                          block / registered_memory(64 * kMi, PageKind::Huge).make,
                          block / large.give_back};
          }};
}

enum class Source { Rewritten, Again };

/// From its call to the stream's end.
double upload(const Device& on, const HostPages& from, std::size_t bytes, Source source) {
  const auto copy = [&] {
    cuda_check(cudaMemcpyAsync(on.memory, from.data(), bytes, cudaMemcpyHostToDevice, on.stream));
    cuda_check(cudaStreamSynchronize(on.stream));
  };
  if (source == Source::Rewritten) {
    std::memset(from.data(), 1, from.bytes());
  } else {
    for (int i = 0; i < 3; ++i) copy();
  }
  return seconds_of(copy);
}

double download(const Device& on, const HostPages& to, std::size_t bytes) {
  return seconds_of([&] {
    cuda_check(cudaMemcpyAsync(to.data(), on.memory, bytes, cudaMemcpyDeviceToHost, on.stream));
    cuda_check(cudaStreamSynchronize(on.stream));
  });
}

Probe uploads(const Shared& device) {
  auto large = std::make_shared<HostPages>(64 * kMi);
  return {{{"copy.pageable_h2d_bandwidth", Rate},
           {"copy.pageable_h2d_cached_bandwidth", Rate},
           {"copy.pageable_h2d_core_bandwidth", Rate},
           {"pageable upload", Time, "64KiB"},
           {"pageable upload, waited for", Time, "1MiB"}},
          [=] {
            const auto at = [&](std::size_t bytes, Source source) {
              return upload(*device, *large, bytes, source);
            };
            return Values{
                slope(16 * kMi, at(16 * kMi, Source::Rewritten), 64 * kMi,
                      at(64 * kMi, Source::Rewritten)),
                slope(4 * kMi, at(4 * kMi, Source::Again), 16 * kMi, at(16 * kMi, Source::Again)),
                slope(256 * kKi, at(256 * kKi, Source::Again), kMi, at(kMi, Source::Again)),
                at(64 * kKi, Source::Rewritten), at(kMi, Source::Rewritten)};
          }};
}

Probe downloads(const Shared& device) {
  auto touched = std::make_shared<HostPages>(64 * kMi);
  std::memset(touched->data(), 1, touched->bytes());
  return {{{"copy.pageable_d2h_bandwidth", Rate},
           {"copy.pageable_d2h_first_bandwidth", Rate},
           {"copy.fresh_d2h_bandwidth", Rate},
           {"pageable download to fresh pages of 4 KiB", Rate, "64MiB"},
           {"pageable download to fresh pages of 2 MiB", Rate, "64MiB"},
           {"pageable download", Time, "64KiB"},
           {"pageable download, waited for", Time, "1MiB"}},
          [=] {
            const Device& on = *device;
            const auto fresh = [&](std::size_t bytes, PageKind kind) {
              return download(on, HostPages{bytes, kind}, bytes);
            };
            const auto at = [&](std::size_t bytes) { return download(on, *touched, bytes); };
            const auto block = static_cast<double>(64 * kMi);
            return Values{slope(16 * kMi, at(16 * kMi), 64 * kMi, at(64 * kMi)),
                          slope(256 * kKi, at(256 * kKi), kMi, at(kMi)),
                          slope(16 * kMi, fresh(16 * kMi, PageKind::Usual), 64 * kMi,
                                fresh(64 * kMi, PageKind::Usual)),
                          block / fresh(64 * kMi, PageKind::Small),
                          block / fresh(64 * kMi, PageKind::Huge),
                          at(64 * kKi),
                          at(kMi)};
          }};
}

/// cudaMemcpy from host to host: the driver's own loop.
Probe host_copies() {
  auto from = std::make_shared<HostPages>(64 * kMi);
  auto to = std::make_shared<HostPages>(64 * kMi);
  std::memset(from->data(), 1, from->bytes());
  std::memset(to->data(), 1, to->bytes());
  return {{{"host.copy_bandwidth", Rate}, {"host.copy_cached_bandwidth", Rate}}, [=] {
            const auto copy = [&](std::size_t bytes, Source source) {
              const auto once = [&] {
                cuda_check(cudaMemcpy(to->data(), from->data(), bytes, cudaMemcpyHostToHost));
              };
              if (source == Source::Rewritten) std::memset(from->data(), 1, from->bytes());
              if (source == Source::Again) {
                for (int i = 0; i < 3; ++i) once();
              }
              return seconds_of(once);
            };
            return Values{
                slope(16 * kMi, copy(16 * kMi, Source::Rewritten), 64 * kMi,
                      copy(64 * kMi, Source::Rewritten)),
                slope(kMi, copy(kMi, Source::Again), 8 * kMi, copy(8 * kMi, Source::Again))};
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
  const auto device = std::make_shared<Device>();
  return {launches(device),     calls(device),        products(device), lock(device),
          device_allocations(), pinned_allocations(), registrations(),  uploads(device),
          downloads(device),    host_copies()};
}

}  // namespace foretrace::hw
