// Allocations, storms of small copies, thousands of tiny products, and who holds whom up.
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <functional>
#include <thread>

#include "lab.h"

using namespace lab;

namespace {

__global__ void short_kernel() {}
__global__ void spin_kernel(long long cycles) {
  for (const long long until = clock64() + cycles; clock64() < until;) {
  }
}

cudaStream_t new_stream() {
  cudaStream_t stream{};
  LAB_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

/// Times of making and of giving back, as two rows.
template <class Make, class Back>
void both(const char* what, const char* variant, std::size_t size, int times, Make&& make,
          Back&& back) {
  std::vector<double> made, given;
  for (int i = 0; i <= times; ++i) {
    const double m = timed(make), b = timed(back);
    if (i == 0) continue;
    made.push_back(m), given.push_back(b);
  }
  row(what, std::string{variant} + " make", size, 1, made);
  row(what, std::string{variant} + " free", size, 1, given);
}

void device_memory() {
  const cudaStream_t stream = new_stream();
  void* at = nullptr;
  for (const std::size_t size :
       {4 * kKi, 256 * kKi, kMi, 2 * kMi, 3 * kMi, 8 * kMi, 32 * kMi, 128 * kMi, kGi, 8 * kGi}) {
    const auto make = [&] { LAB_CHECK(cudaMalloc(&at, size)); };
    const auto free_it = [&] { LAB_CHECK(cudaFree(at)); };
    both("malloc", "in a row", size, 20, make, free_it);
    std::vector<double> made, given;
    for (int i = 0; i < 10; ++i) {  // rested: what was freed has been cleared
      wait(0.01);
      made.push_back(timed(make));
      wait(0.002);
      given.push_back(timed(free_it));
    }
    row("malloc", "rested make", size, 1, made);
    row("malloc", "rested free", size, 1, given);
    made.clear(), given.clear();
    for (int i = 0; i < 10; ++i) {  // the GPU has written to it, and a kernel ran in between
      make();
      LAB_CHECK(cudaMemsetAsync(at, 0, std::min(size, 256 * kMi), stream));
      LAB_CHECK(cudaStreamSynchronize(stream));
      given.push_back(timed(free_it));
      made.push_back(timed(make));
      free_it();
    }
    row("malloc", "after use make", size, 1, made);
    row("malloc", "after use free", size, 1, given);
    if (size > kGi) continue;
    both(
        "malloc_async", "pool given back each time", size, 10,
        [&] { LAB_CHECK(cudaMallocAsync(&at, size, stream)); },
        [&] {
          LAB_CHECK(cudaFreeAsync(at, stream));
          LAB_CHECK(cudaStreamSynchronize(stream));
        });
  }
  // Many that stay, as a program's tensors.
  for (const std::size_t size : {512 * kKi, 2 * kMi, 20 * kMi}) {
    std::vector<double> made, given;
    for (int round = 0; round < 3; ++round) {
      std::vector<void*> all(64);
      made.push_back(timed([&] {
                       for (void*& one : all) LAB_CHECK(cudaMalloc(&one, size));
                     }) /
                     64);
      given.push_back(timed([&] {
                        for (void* one : all) LAB_CHECK(cudaFree(one));
                      }) /
                      64);
    }
    row("malloc", "64 that stay make", size, 1, made);
    row("malloc", "64 that stay free", size, 1, given);
  }
}

void pinned_memory() {
  void* at = nullptr;
  for (const std::size_t size :
       {4 * kKi, 64 * kKi, 256 * kKi, kMi, 2 * kMi, 4 * kMi, 16 * kMi, 64 * kMi, 256 * kMi, kGi}) {
    const int times = size > 64 * kMi ? 3 : 8;
    const auto free_it = [&] { LAB_CHECK(cudaFreeHost(at)); };
    both(
        "pinned", "cudaHostAlloc", size, times,
        [&] { LAB_CHECK(cudaHostAlloc(&at, size, cudaHostAllocPortable)); }, free_it);
    both(
        "pinned", "cudaMallocHost", size, times, [&] { LAB_CHECK(cudaMallocHost(&at, size)); },
        free_it);
    both(
        "pinned", "cudaHostAlloc written", size, times,
        [&] {
          LAB_CHECK(cudaHostAlloc(&at, size, cudaHostAllocPortable));
          std::memset(at, 1, size);
        },
        free_it);
    if (size > 256 * kMi) continue;
    for (const Kind kind : {Kind::Usual, Kind::Small, Kind::Huge}) {
      for (const bool touched : {true, false}) {
        std::vector<double> made, given;
        for (int i = 0; i <= times; ++i) {
          Memory memory{size, kind};
          if (touched) std::memset(memory.data, 1, size);
          const double m = timed(
              [&] { LAB_CHECK(cudaHostRegister(memory.data, size, cudaHostRegisterPortable)); });
          const double b = timed([&] { LAB_CHECK(cudaHostUnregister(memory.data)); });
          if (i > 0) made.push_back(m), given.push_back(b);
        }
        const std::string variant =
            std::string{"register pages "} + name(kind) + (touched ? " touched" : " fresh");
        row("pinned", variant, size, 1, made);
        row("pinned", variant + " undone", size, 1, given);
      }
    }
  }
}

/// `count` copies in a row, dealt over streams, then one wait: time a copy.
void storm(const char* variant, std::size_t size, int streams, int count, bool pinned,
           bool both_ways, int threads) {
  constexpr std::size_t kSpace = 64 * kMi;
  static void* device = [] {
    void* at = nullptr;
    LAB_CHECK(cudaMalloc(&at, kSpace));
    return at;
  }();
  static void* pages = [] {
    void* at = nullptr;
    LAB_CHECK(cudaHostAlloc(&at, kSpace, cudaHostAllocPortable));
    std::memset(at, 1, kSpace);
    return at;
  }();
  static Memory pageable{kSpace};
  static std::vector<cudaStream_t> all = [] {
    std::vector<cudaStream_t> made;
    for (int i = 0; i < 16; ++i) made.push_back(new_stream());
    return made;
  }();
  std::memset(pageable.data, 1, kSpace);
  char* const host = pinned ? static_cast<char*>(pages) : pageable.data;
  const auto run = [&](int thread) {
    for (int i = 0; i < count; ++i) {
      const std::size_t at =
          (static_cast<std::size_t>(i) * size + kSpace / 8 * static_cast<std::size_t>(thread)) %
          (kSpace - size);
      const bool up = !both_ways || i % 2 == 0;
      void* const to = up ? static_cast<char*>(device) + at : host + at;
      const void* const from = up ? host + at : static_cast<char*>(device) + at;
      LAB_CHECK(cudaMemcpyAsync(to, from, size,
                                up ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost,
                                all[static_cast<std::size_t>(thread * streams + i % streams)]));
    }
  };
  std::vector<double> calls, whole;
  for (int turn = 0; turn < 6; ++turn) {
    const double begin = now();
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(run, t);
    run(0);
    for (std::thread& other : others) other.join();
    const double called = now();
    LAB_CHECK(cudaDeviceSynchronize());
    if (turn == 0) continue;
    calls.push_back((called - begin) / count);
    whole.push_back((now() - begin) / count);
  }
  const std::string text = std::string{variant} + (pinned ? " pinned" : " pageable") +
                           (both_ways ? " both ways" : " up") + " streams " +
                           std::to_string(streams) + " copies " + std::to_string(count);
  row("storm", text + " calls", size, threads, calls);
  row("storm", text, size, threads, whole);
}

/// What `call` takes while another thread does `other` on and on.
void beside(const char* variant, const std::function<void()>& call,
            const std::function<void()>& other) {
  std::atomic<bool> stop{false};
  std::thread thread{[&] {
    while (!stop) other();
  }};
  wait(0.005);
  std::vector<double> seconds;
  for (int i = 0; i < 400; ++i) {
    seconds.push_back(timed(call));
    wait(20e-6);
  }
  stop = true;
  thread.join();
  LAB_CHECK(cudaDeviceSynchronize());
  double sum = 0;
  for (const double one : seconds) sum += one;
  row("lock", std::string{variant} + " mean", 0, 2, {sum / static_cast<double>(seconds.size())});
  row("lock", variant, 0, 2, seconds);
}

}  // namespace

void allocations() {
  device_memory();
  pinned_memory();
}

void storms() {
  for (const std::size_t size : {4 * kKi, 16 * kKi, 32 * kKi, 64 * kKi, 256 * kKi}) {
    for (const int count : {16, 128, 512, 1000, 4000}) {
      storm("one thread", size, 1, count, true, false, 1);
      storm("one thread", size, 4, count, true, false, 1);
      storm("one thread", size, 1, count, true, true, 1);
      storm("one thread", size, 2, count, true, true, 1);
    }
    storm("one thread", size, 1, 512, false, false, 1);
    storm("one thread", size, 4, 512, false, false, 1);
    storm("one thread", size, 2, 512, false, true, 1);
    storm("threads", size, 1, 512, true, false, 4);
    storm("threads", size, 1, 512, false, false, 4);
    storm("threads", size, 2, 512, true, true, 4);
  }
}

void tiny_products() {
  cublasHandle_t handle{};
  if (cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS) return;
  const cudaStream_t stream = new_stream(), second = new_stream();
  void* memory = nullptr;
  LAB_CHECK(cudaMalloc(&memory, 64 * kMi));
  const float one = 1, none = 0;
  for (const int n : {16, 32, 64, 128, 256}) {
    for (const int count : {1, 16, 100, 1000, 5000}) {
      for (const int streams : {1, 2}) {
        std::vector<double> calls, whole;
        for (int turn = 0; turn < 6; ++turn) {
          const double begin = now();
          for (int i = 0; i < count; ++i) {
            if (streams == 2) cublasSetStream(handle, i % 2 == 0 ? stream : second);
            if (streams == 1 && i == 0) cublasSetStream(handle, stream);
            cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, memory, CUDA_R_16BF, n,
                         static_cast<char*>(memory) + kMi, CUDA_R_16BF, n, &none,
                         static_cast<char*>(memory) + 2 * kMi, CUDA_R_16BF, n, CUBLAS_COMPUTE_32F,
                         CUBLAS_GEMM_DEFAULT);
          }
          const double called = now();
          LAB_CHECK(cudaDeviceSynchronize());
          if (turn == 0) continue;
          calls.push_back((called - begin) / count);
          whole.push_back((now() - begin) / count);
        }
        const std::string text =
            "in a row " + std::to_string(count) + " streams " + std::to_string(streams);
        row("products", text + " calls", static_cast<std::size_t>(n), 1, calls);
        row("products", text, static_cast<std::size_t>(n), 1, whole);
      }
    }
  }
  for (const int count : {16, 100, 1000, 5000}) {
    std::vector<double> calls, whole;
    for (int turn = 0; turn < 6; ++turn) {
      const double begin = now();
      for (int i = 0; i < count; ++i) short_kernel<<<1, 32, 0, stream>>>();
      const double called = now();
      LAB_CHECK(cudaDeviceSynchronize());
      if (turn == 0) continue;
      calls.push_back((called - begin) / count);
      whole.push_back((now() - begin) / count);
    }
    row("launches", "in a row " + std::to_string(count) + " calls", 0, 1, calls);
    row("launches", "in a row " + std::to_string(count), 0, 1, whole);
  }
  cublasDestroy(handle);
}

void locks() {
  const cudaStream_t stream = new_stream(), second = new_stream();
  void *device = nullptr, *pinned = nullptr;
  LAB_CHECK(cudaMalloc(&device, 64 * kMi));
  LAB_CHECK(cudaHostAlloc(&pinned, 64 * kMi, cudaHostAllocPortable));
  Memory pageable{16 * kMi}, other_pageable{16 * kMi};
  std::memset(pageable.data, 1, 16 * kMi);
  std::memset(other_pageable.data, 1, 16 * kMi);
  void* at = nullptr;
  const std::function<void()> launch = [&] { short_kernel<<<1, 32, 0, stream>>>(); };
  const std::function<void()> upload = [&] {
    LAB_CHECK(cudaMemcpyAsync(device, pageable.data, kMi, cudaMemcpyHostToDevice, stream));
  };
  const std::function<void()> allocate = [&] {
    void* here = nullptr;
    LAB_CHECK(cudaMalloc(&here, kMi));
    LAB_CHECK(cudaFree(here));
  };
  struct Other {
    const char* name;
    std::function<void()> run;
  };
  const std::vector<Other> others{
      {"nothing", [] { wait(50e-6); }},
      {"launches",
       [&] {
         for (int i = 0; i < 16; ++i) short_kernel<<<1, 32, 0, second>>>();
         LAB_CHECK(cudaStreamSynchronize(second));
       }},
      {"stream waits",
       [&] {
         spin_kernel<<<1, 1, 0, second>>>(200000);
         LAB_CHECK(cudaStreamSynchronize(second));
       }},
      {"pageable uploads of 16 MiB",
       [&] {
         LAB_CHECK(cudaMemcpyAsync(static_cast<char*>(device) + 16 * kMi, other_pageable.data,
                                   16 * kMi, cudaMemcpyHostToDevice, second));
         LAB_CHECK(cudaStreamSynchronize(second));
       }},
      {"pageable downloads of 16 MiB",
       [&] {
         LAB_CHECK(cudaMemcpyAsync(other_pageable.data, static_cast<char*>(device) + 16 * kMi,
                                   16 * kMi, cudaMemcpyDeviceToHost, second));
         LAB_CHECK(cudaStreamSynchronize(second));
       }},
      {"malloc and free of 64 MiB",
       [&] {
         LAB_CHECK(cudaMalloc(&at, 64 * kMi));
         LAB_CHECK(cudaFree(at));
       }},
      {"cudaHostAlloc of 16 MiB",
       [&] {
         LAB_CHECK(cudaHostAlloc(&at, 16 * kMi, cudaHostAllocPortable));
         LAB_CHECK(cudaFreeHost(at));
       }},
      {"first touch of 64 MiB", [&] {
         const Memory fresh{64 * kMi};
         std::memset(fresh.data, 1, 64 * kMi);
       }}};
  for (const Other& other : others) {
    beside((std::string{"launch beside "} + other.name).c_str(), launch, other.run);
    beside((std::string{"pageable upload of 1 MiB beside "} + other.name).c_str(), upload,
           other.run);
    beside((std::string{"malloc and free of 1 MiB beside "} + other.name).c_str(), allocate,
           other.run);
  }
}
