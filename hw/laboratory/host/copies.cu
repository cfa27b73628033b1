// Copies between a GPU and pageable memory, by what was done to the pages before; first touch.
#include <cuda_runtime_api.h>
#include <emmintrin.h>

#include <atomic>
#include <memory>
#include <thread>

#include "lab.h"

using namespace lab;

namespace {

constexpr int kTimes = 9;

void flush(const char* data, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 64) _mm_clflush(data + i);
  _mm_mfence();
}

struct Copies {
  Copies() {
    LAB_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    LAB_CHECK(cudaMalloc(&device, 64 * kMi));
  }
  double up(const char* from, std::size_t size, bool synchronous) const {
    return timed([&] {
      if (synchronous) {
        LAB_CHECK(cudaMemcpy(device, from, size, cudaMemcpyHostToDevice));
      } else {
        LAB_CHECK(cudaMemcpyAsync(device, from, size, cudaMemcpyHostToDevice, stream));
        LAB_CHECK(cudaStreamSynchronize(stream));
      }
    });
  }
  double down(char* to, std::size_t size) const {
    return timed([&] {
      LAB_CHECK(cudaMemcpyAsync(to, device, size, cudaMemcpyDeviceToHost, stream));
      LAB_CHECK(cudaStreamSynchronize(stream));
    });
  }
  cudaStream_t stream{};
  void* device{};
};

void uploads(const Copies& on, std::size_t size, Kind kind) {
  const std::string pages = std::string{"pages "} + name(kind);
  Memory memory{size, kind}, others{256 * kMi, Kind::Usual};
  std::memset(others.data, 1, 256 * kMi);
  std::memset(memory.data, 1, size);
  const auto say = [&](const char* state, bool synchronous, auto&& before) {
    row("upload", pages + ' ' + state + (synchronous ? " memcpy" : " async"), size, 1,
        repeat(kTimes, [&] {
          before();
          return on.up(memory.data, size, synchronous);
        }));
  };
  for (const bool synchronous : {false, true}) {
    say("again", synchronous, [] {});
    say("rewritten", synchronous, [&] { std::memset(memory.data, 1, size); });
    say("flushed", synchronous, [&] { flush(memory.data, size); });
    say("behind 256 MiB", synchronous, [&] { std::memset(others.data, 2, 256 * kMi); });
    say("rewritten by another thread", synchronous,
        [&] { std::thread{[&] { std::memset(memory.data, 1, size); }}.join(); });
  }
  row("upload", pages + " never touched", size, 1, repeat(kTimes, [&] {
        const Memory fresh{size, kind};
        return on.up(fresh.data, size, false);
      }));
  row("upload", pages + " touched once, new each time", size, 1, repeat(kTimes, [&] {
        const Memory fresh{size, kind};
        std::memset(fresh.data, 1, size);
        return on.up(fresh.data, size, false);
      }));
}

void downloads(const Copies& on, std::size_t size, Kind kind) {
  const std::string pages = std::string{"pages "} + name(kind);
  Memory memory{size, kind}, others{256 * kMi, Kind::Usual};
  std::memset(others.data, 1, 256 * kMi);
  std::memset(memory.data, 1, size);
  const auto say = [&](const char* state, auto&& before) {
    row("download", pages + ' ' + state, size, 1, repeat(kTimes, [&] {
          before();
          return on.down(memory.data, size);
        }));
  };
  say("again", [] {});
  say("read since", [&] {
    volatile char sum = 0;
    for (std::size_t i = 0; i < size; i += 64) sum = static_cast<char>(sum + memory.data[i]);
  });
  say("flushed", [&] { flush(memory.data, size); });
  say("behind 256 MiB", [&] { std::memset(others.data, 2, 256 * kMi); });
  row("download", pages + " never touched", size, 1, repeat(kTimes, [&] {
        const Memory fresh{size, kind};
        return on.down(fresh.data, size);
      }));
}

/// Several threads at once, each with memory and a stream of its own.
template <class One>
void at_once(const char* experiment, const char* variant, std::size_t size, int threads,
             One&& one) {
  row(experiment, variant, size, threads, repeat(kTimes, [&] {
        std::atomic<int> ready{0};
        std::atomic<bool> go{false};
        std::vector<std::thread> all;
        std::vector<double> seconds(static_cast<std::size_t>(threads));
        for (int t = 0; t < threads; ++t) {
          all.emplace_back([&, t] {
            one(t, [&] {
              ++ready;
              while (!go) {
              }
            });
            seconds[static_cast<std::size_t>(t)] = now();
          });
        }
        while (ready < threads) {
        }
        const double begin = now();
        go = true;
        for (std::thread& thread : all) thread.join();
        return *std::max_element(seconds.begin(), seconds.end()) - begin;
      }));
}

}  // namespace

void pageable_copies() {
  const Copies on;
  for (const Kind kind : {Kind::Usual, Kind::Small, Kind::Huge}) {
    for (const std::size_t size :
         {16 * kKi, 64 * kKi, 256 * kKi, kMi, 4 * kMi, 16 * kMi, 64 * kMi}) {
      uploads(on, size, kind);
      downloads(on, size, kind);
    }
  }
  for (const std::size_t offset : {std::size_t{4}, std::size_t{64}, std::size_t{2048}}) {
    Memory memory{4 * kMi, Kind::Usual, offset};
    std::memset(memory.data, 1, 4 * kMi);
    row("upload", "offset " + std::to_string(offset) + " again async", 4 * kMi, 1,
        repeat(kTimes, [&] { return on.up(memory.data, 4 * kMi, false); }));
    row("download", "offset " + std::to_string(offset) + " again", 4 * kMi, 1,
        repeat(kTimes, [&] { return on.down(memory.data, 4 * kMi); }));
  }
  for (const int threads : {1, 2, 4}) {
    std::vector<std::unique_ptr<Copies>> own;
    std::vector<std::unique_ptr<Memory>> memory;
    for (int t = 0; t < threads; ++t) {
      own.push_back(std::make_unique<Copies>());
      memory.push_back(std::make_unique<Memory>(16 * kMi));
      std::memset(memory.back()->data, 1, 16 * kMi);
    }
    at_once("upload", "threads at once", 16 * kMi, threads, [&](int t, auto&& meet) {
      const auto i = static_cast<std::size_t>(t);
      meet();
      own[i]->up(memory[i]->data, 16 * kMi, false);
    });
    at_once("download", "threads at once", 16 * kMi, threads, [&](int t, auto&& meet) {
      const auto i = static_cast<std::size_t>(t);
      meet();
      own[i]->down(memory[i]->data, 16 * kMi);
    });
  }
}

void first_touch() {
  for (const Kind kind : {Kind::Usual, Kind::Small, Kind::Huge}) {
    const std::string pages = std::string{"pages "} + name(kind);
    for (const std::size_t size : {64 * kKi, kMi, 16 * kMi, 64 * kMi, 256 * kMi}) {
      std::vector<double> fresh, again, back;
      for (int i = 0; i < 6; ++i) {
        auto memory = std::make_unique<Memory>(size, kind);
        fresh.push_back(timed([&] { std::memset(memory->data, 1, size); }));
        again.push_back(timed([&] { std::memset(memory->data, 2, size); }));
        back.push_back(timed([&] { memory.reset(); }));
      }
      row("touch", pages + " memset fresh", size, 1, fresh);
      row("touch", pages + " memset again", size, 1, again);
      row("touch", pages + " munmap", size, 1, back);
    }
  }
  const std::size_t size = 64 * kMi;
  for (const int threads : {1, 2, 4, 8, 16}) {
    at_once("touch", "threads at once, fresh", size, threads, [&](int, auto&& meet) {
      const Memory memory{size};
      meet();
      std::memset(memory.data, 1, size);
    });
    at_once("touch", "threads at once, again", size, threads, [&](int, auto&& meet) {
      const Memory memory{size};
      std::memset(memory.data, 1, size);
      meet();
      std::memset(memory.data, 2, size);
    });
  }
}
