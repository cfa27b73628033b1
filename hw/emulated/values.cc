#include "hw/emulated/values.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "hw/emulated/exported.h"
#include "hw/emulated/memory.h"
#include "hw/emulated/record.h"

namespace foretrace::emulated {
namespace {

constexpr size_t kScalar = 8;
// A kernel's parameters lie on its caller's stack, about where the first of them does. So much is
// searched for the pointer to its result: PyTorch's largest structs of parameters take 4 KiB.
constexpr size_t kWindow = 4096;

struct Reads {
  std::mutex mutex;
  std::string_view kernel;  // the last one
  std::array<std::byte, kWindow> parameters{};
  size_t parameter_bytes = 0;
  enum { kByRule, kKeep, kReplay } mode = kByRule;
  std::vector<std::string> kept;
  size_t next = 0, misfits = 0, ruled = 0;
  bool trust = false;  // what lies in memory is what a kernel would have put there
  int64_t poked = 0;    // what the next scalars are
  int poked_reads = 0;  // how many
  const void* moved = nullptr;  // where a copy on the GPU put the last value that a rule decided
};

Reads& reads() {
  static auto* const the = new Reads;
  return *the;
}

thread_local std::string read_json;

struct Range {
  uintptr_t begin, end;
};

Range this_stack() {
  thread_local const Range range = [] {
    pthread_attr_t attributes;
    void* begin = nullptr;
    size_t bytes = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
      pthread_attr_getstack(&attributes, &begin, &bytes);
      pthread_attr_destroy(&attributes);
    }
    return Range{reinterpret_cast<uintptr_t>(begin), reinterpret_cast<uintptr_t>(begin) + bytes};
  }();
  return range;
}

// Under the lock. Whether the last kernel had a pointer to `address` among its parameters.
bool written_by_kernel(const Reads& r, const void* address) {
  for (size_t i = 0; i + sizeof address <= r.parameter_bytes; i += sizeof address)
    if (std::memcmp(r.parameters.data() + i, &address, sizeof address) == 0) return true;
  return false;
}

// `all` and equality hold, nothing is not-a-number, sums and other numbers are 0.
uint64_t by_rule(std::string_view kernel, size_t bytes) {
  if (bytes != 1) return 0;
  const auto has = [&](const char* part) { return kernel.find(part) != std::string_view::npos; };
  if (has("or_kernel") || has("isnan") || has("isinf") || has("compare_ne") || has("NEFunctor"))
    return 0;
  return 1;
}

// Under the lock. What the kernel wrote there is gone.
void overwritten(Reads& r, const void* address) {
  for (size_t i = 0; i + sizeof address <= r.parameter_bytes; i += sizeof address)
    if (std::memcmp(r.parameters.data() + i, &address, sizeof address) == 0)
      std::memset(r.parameters.data() + i, 0, sizeof address);
}

}  // namespace

void note_launch(const char* name, void** arguments) {
  Reads& r = reads();
  const std::lock_guard lock(r.mutex);
  r.kernel = name;
  r.parameter_bytes = 0;
  if (!arguments || !arguments[0]) return;
  const auto first = reinterpret_cast<uintptr_t>(arguments[0]) & ~(sizeof(void*) - 1);
  const Range stack = this_stack();
  const uintptr_t end = first >= stack.begin && first < stack.end ? stack.end : (first | 4095) + 1;
  r.parameter_bytes = std::min<size_t>(kWindow, end - first);
  std::memcpy(r.parameters.data(), reinterpret_cast<const void*>(first), r.parameter_bytes);
}

void carry(void* to, const void* from, size_t bytes, bool down) {
  read_json.clear();
  if (!to || !from) return;
  Reads& r = reads();
  const std::lock_guard lock(r.mutex);
  const char* how = "data";
  const bool small = bytes <= kScalar && !r.trust;
  const bool by_kernel = small && written_by_kernel(r, from);
  const bool moved = small && down && from == r.moved;
  if (!down) overwritten(r, to);
  if (!down && r.moved == to) r.moved = nullptr;
  if (down && r.mode == Reads::kReplay && r.next < r.kept.size() &&
      r.kept[r.next].size() == bytes) {
    std::memcpy(to, r.kept[r.next++].data(), bytes);
    how = "kept";
  } else if (down && bytes <= kScalar && r.poked_reads > 0) {
    std::memcpy(to, &r.poked, bytes);
    --r.poked_reads;
  } else if (by_kernel || moved) {
    const uint64_t value = by_rule(r.kernel, bytes);
    std::memcpy(to, moved ? from : static_cast<const void*>(&value), bytes);
    if (!down) r.moved = to;
    r.ruled += down;
    how = "rule";
  } else if (bytes <= kCarried) {
    std::memmove(to, from, bytes);
  } else if (!on_device(to)) {
    std::memset(to, 0, bytes);
  }
  if (!down) return;
  if (r.mode == Reads::kReplay && *how != 'k') ++r.misfits;
  if (r.mode == Reads::kKeep)
    r.kept.emplace_back(static_cast<const char*>(to), bytes <= kCarried ? bytes : 0);
  if (bytes > kScalar) return;
  uint64_t value = 0;
  std::memcpy(&value, to, bytes);
  read_json = format(R"("k":"host_read","n":%zu,"v":%llu,"from":"%s")", bytes,
                     static_cast<unsigned long long>(value), how);
  if (*how == 'r') read_json += format(R"(,"after":%s)", quoted(r.kernel).c_str());
}

std::string last_read() { return std::exchange(read_json, {}); }

}  // namespace foretrace::emulated

using namespace foretrace::emulated;

// 0: by rule; 1: keep what the host reads; 2: give it again, in order.
FORETRACE_EXPORTED void foretrace_reads(int mode) {
  const std::lock_guard lock(reads().mutex);
  reads().mode = mode == 1 ? Reads::kKeep : mode == 2 ? Reads::kReplay : Reads::kByRule;
  if (mode == 1) reads().kept.clear();
  reads().next = reads().misfits = 0;
}
FORETRACE_EXPORTED size_t foretrace_misfits() {
  const std::lock_guard lock(reads().mutex);
  return reads().misfits;
}
// What was kept, one by one; and what is to be given in a later run.
FORETRACE_EXPORTED size_t foretrace_kept_count() {
  const std::lock_guard lock(reads().mutex);
  return reads().kept.size();
}
FORETRACE_EXPORTED size_t foretrace_kept(size_t index, char* out) {
  const std::lock_guard lock(reads().mutex);
  const std::string& bytes = reads().kept.at(index);
  if (out) bytes.copy(out, bytes.size());
  return bytes.size();
}
FORETRACE_EXPORTED void foretrace_keep(const char* bytes, size_t n) {
  const std::lock_guard lock(reads().mutex);
  reads().kept.emplace_back(bytes, n);
}
// 1: memory holds what kernels would have put there, so no rule decides.
FORETRACE_EXPORTED void foretrace_trust(int on) {
  const std::lock_guard lock(reads().mutex);
  reads().trust = on != 0;
}
// What the next so many scalars are that the host reads.
FORETRACE_EXPORTED void foretrace_poke(long long value, int times) {
  const std::lock_guard lock(reads().mutex);
  reads().poked = value;
  reads().poked_reads = times;
}
// Reads that a rule decided, since the start.
FORETRACE_EXPORTED size_t foretrace_ruled_reads() {
  const std::lock_guard lock(reads().mutex);
  return reads().ruled;
}
