// What the host's experiments share: a clock, rows of CSV, pages in known states.
#pragma once

#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace lab {

constexpr std::size_t kKi = 1024, kMi = kKi * kKi, kGi = kKi * kMi;

inline double now() {  // seconds
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

inline void wait(double seconds) {
  for (const double until = now() + seconds; now() < until;) {
  }
}

#define LAB_CHECK(call)                                                  \
  do {                                                                   \
    const cudaError_t lab_error = (call);                                \
    if (lab_error != cudaSuccess) {                                      \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, \
                   cudaGetErrorString(lab_error));                       \
      std::exit(1);                                                      \
    }                                                                    \
  } while (false)

/// One row: the median, the tenth and the ninetieth percentile of `seconds`, in us.
inline void row(const char* experiment, const std::string& variant, std::size_t size, int threads,
                std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const std::size_t n = seconds.size();
  const auto at = [&](double share) {
    return seconds[static_cast<std::size_t>(share * static_cast<double>(n - 1) + 0.5)] * 1e6;
  };
  std::printf("%s,\"%s\",%zu,%d,%.3f,%.3f,%.3f,%zu\n", experiment, variant.c_str(), size, threads,
              at(0.5), at(0.1), at(0.9), n);
  std::fflush(stdout);
}

/// `times` values of `once`; the first one warms up and is not counted.
template <class Once>
std::vector<double> repeat(int times, Once&& once) {
  std::vector<double> values;
  for (int i = 0; i <= times; ++i) {
    const double value = once();
    if (i > 0) values.push_back(value);
  }
  return values;
}

template <class Function>
double timed(Function&& function) {
  const double begin = now();
  function();
  return now() - begin;
}

enum class Kind { Usual, Small, Huge };
inline const char* name(Kind kind) {
  return kind == Kind::Usual ? "usual" : kind == Kind::Small ? "4KiB" : "2MiB";
}

/// Pages that nobody has touched, at a multiple of 2 MiB and `offset` bytes.
class Memory {
 public:
  explicit Memory(std::size_t bytes, Kind kind = Kind::Usual, std::size_t offset = 0)
      : mapped_{bytes + 2 * kMi + offset} {
    base_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base_ == MAP_FAILED) std::exit(1);
    const auto address = reinterpret_cast<std::uintptr_t>(base_);
    char* const aligned = static_cast<char*>(base_) + (2 * kMi - address % (2 * kMi)) % (2 * kMi);
    if (kind == Kind::Small) madvise(aligned, bytes, MADV_NOHUGEPAGE);
    if (kind == Kind::Huge) madvise(aligned, bytes, MADV_HUGEPAGE);
    data = aligned + offset;
  }
  ~Memory() { munmap(base_, mapped_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  char* data;

 private:
  void* base_;
  std::size_t mapped_;
};

}  // namespace lab

void pageable_copies();
void first_touch();
void allocations();
void storms();
void tiny_products();
void locks();
