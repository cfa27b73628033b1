// Passes a program's calls of CUDA, cuBLAS, cuDNN and NCCL on to the real libraries, and notes when
// each was made and how long it took: the host's timeline of a step without a profiler. `python3 -m
// foretrace measure` has programs load it (LD_PRELOAD).
#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hw/emulated/abi.h"
#include "hw/emulated/exported.h"

namespace foretrace::call_timer {
namespace {

struct Call {
  int64_t t;    // ns, monotonic
  uint32_t ns;  // that it took
  uint16_t function, thread;
};
static_assert(sizeof(Call) == 16);

constexpr size_t kMost = 1 << 18;  // calls that are kept: more than a step makes
Call calls[kMost];
std::atomic<size_t> count{0};
std::atomic<bool> on{false};
const char* functions[128];
std::atomic<int> function_count{0};
std::atomic<int> thread_count{0};
thread_local int thread_number = -1;
thread_local int depth = 0;  // a library's function may call another one: the outermost is noted

int64_t now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// The function of this name behind ours. Libraries that PyTorch loads for itself alone are not
// among the next ones.
void* real(const char* name) {
  if (void* const found = dlsym(RTLD_NEXT, name)) return found;
  constexpr const char* kLibraries[] = {
      "libcudart.so.13", "libcudart.so.12",     "libcublas.so.13",
      "libcublas.so.12", "libcublasLt.so.13",   "libcublasLt.so.12",
      "libcudnn.so.9",   "libcudnn_graph.so.9", "libnccl.so.2"};
  for (const char* const library : kLibraries)
    if (void* const handle = dlopen(library, RTLD_NOLOAD | RTLD_LAZY))
      if (void* const found = dlsym(handle, name)) return found;
  return nullptr;
}

int number_of(const char* name) {
  const int number = function_count++;
  functions[number] = name;
  return number;
}

class Timed {
 public:
  explicit Timed(int function)
      : function_(function),
        begin_(depth++ == 0 && on.load(std::memory_order_relaxed) ? now() : -1) {}
  ~Timed() {
    --depth;
    if (begin_ < 0) return;
    const int64_t end = now();
    if (thread_number < 0) thread_number = thread_count++;
    const size_t i = count.fetch_add(1, std::memory_order_relaxed);
    if (i < kMost)
      calls[i] = {begin_, static_cast<uint32_t>(end - begin_), static_cast<uint16_t>(function_),
                  static_cast<uint16_t>(thread_number)};
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  int function_;
  int64_t begin_;
};

}  // namespace
}  // namespace foretrace::call_timer

using namespace foretrace::call_timer;
using foretrace::emulated::Dim3;
using P = void*;
using C = const void*;

// 1: begins anew; 0: stops. The calls stay until it begins anew.
FORETRACE_EXPORTED void foretrace_timer(int begin) {
  if (begin) count = 0;
  on = begin != 0;
}
FORETRACE_EXPORTED size_t foretrace_timer_count() { return count < kMost ? count.load() : kMost; }
FORETRACE_EXPORTED void foretrace_timer_calls(Call* out) {
  std::memcpy(out, calls, foretrace_timer_count() * sizeof(Call));
}
FORETRACE_EXPORTED const char* foretrace_timer_function(int i) {
  return i < function_count ? functions[i] : "";
}
FORETRACE_EXPORTED int64_t foretrace_timer_now() { return now(); }

#define FORETRACE_TIMED(name, parameters, ...)                                    \
  FORETRACE_EXPORTED int name parameters {                                        \
    static auto* const behind = reinterpret_cast<int(*) parameters>(real(#name)); \
    static const int number = number_of(#name);                                   \
    const Timed timed(number);                                                    \
    return behind(__VA_ARGS__);                                                   \
  }
#include "hw/call_timer/functions.def"
