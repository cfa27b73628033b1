#include "hw/execute/cpu_team.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "scenarios/base/text/text_file.h"

namespace foretrace::hw {
namespace {

constexpr std::size_t kLanes = 8;
/// Eight vectors at once: enough that no multiply-add waits for the one before it.
constexpr std::size_t kVectors = 8;
using Vector = float __attribute__((vector_size(kLanes * sizeof(float))));
constexpr std::size_t kBlock = kLanes * kVectors;  ///< floats

/// `rounds` multiply-adds of every element of `blocks` blocks.
__attribute__((always_inline)) inline void go_through(Vector* data, std::size_t blocks,
                                                      std::uint64_t rounds) {
  constexpr float kFactor = 0.999F;
  constexpr float kAddend = 0.001F;
  for (std::size_t b = 0; b < blocks; ++b, data += kVectors) {
    Vector v0 = data[0], v1 = data[1], v2 = data[2], v3 = data[3];
    Vector v4 = data[4], v5 = data[5], v6 = data[6], v7 = data[7];
    for (std::uint64_t r = 0; r < rounds; ++r) {
      v0 = v0 * kFactor + kAddend;
      v1 = v1 * kFactor + kAddend;
      v2 = v2 * kFactor + kAddend;
      v3 = v3 * kFactor + kAddend;
      v4 = v4 * kFactor + kAddend;
      v5 = v5 * kFactor + kAddend;
      v6 = v6 * kFactor + kAddend;
      v7 = v7 * kFactor + kAddend;
    }
    data[0] = v0, data[1] = v1, data[2] = v2, data[3] = v3;
    data[4] = v4, data[5] = v5, data[6] = v6, data[7] = v7;
  }
}

using GoThrough = void (*)(Vector*, std::size_t, std::uint64_t);
void go_through_plain(Vector* data, std::size_t blocks, std::uint64_t rounds) {
  go_through(data, blocks, rounds);
}
#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void go_through_avx2(Vector* data, std::size_t blocks,
                                                         std::uint64_t rounds) {
  go_through(data, blocks, rounds);
}
GoThrough best() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? go_through_avx2
                                                                         : go_through_plain;
}
#else
GoThrough best() { return go_through_plain; }
#endif

/// "200000 100000" of a control group: so much time in so long; "max" is no limit.
std::uint32_t cores_of_control_group() {
  const std::string text = read_plain_file("/sys/fs/cgroup/cpu.max", 4096).value_or("");
  double quota = 0;
  double period = 0;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, quota);
  if (first.ec != std::errc{} || first.ptr == end) return 0;
  if (std::from_chars(first.ptr + 1, end, period).ec != std::errc{} || period <= 0) return 0;
  return static_cast<std::uint32_t>(std::max(1.0, std::floor(quota / period)));
}

using Pages = std::unique_ptr<Vector, void (*)(void*)>;

/// Zeros; whole pages of them.
Pages make_pages(std::size_t floats) {
  constexpr std::size_t kPage = 4096;
  const std::size_t bytes = (floats * sizeof(float) + kPage - 1) / kPage * kPage;
  void* pages = std::aligned_alloc(kPage, bytes);
  if (pages == nullptr) throw std::bad_alloc{};
  std::memset(pages, 0, bytes);
  return Pages{static_cast<Vector*>(pages), std::free};
}

}  // namespace

std::uint32_t cores_of_this_process() {
  cpu_set_t allowed;
  const int bound = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
  const std::uint32_t cores = static_cast<std::uint32_t>(std::max(1, bound));
  const std::uint32_t given = cores_of_control_group();
  return given == 0 ? cores : std::min(cores, given);
}

/// Touched first by the thread that uses it, which places it. On pages of its own: a std::vector
/// would not keep the alignment of a vector type.
struct CpuTeam::Memory {
  Pages data{nullptr, std::free};
  std::size_t next = 0;  ///< block that the next call begins with
};

CpuTeam::CpuTeam(std::uint32_t threads, std::size_t bytes) {
  const std::size_t share = bytes / std::max(1U, threads) / sizeof(float);
  floats_ = std::max(kBlock, share / kBlock * kBlock);
  for (std::uint32_t t = 0; t < threads; ++t) memories_.push_back(std::make_unique<Memory>());
  for (const auto& memory : memories_) {
    threads_.emplace_back([this, own = memory.get()] { work(*own); });
  }
}

CpuTeam::~CpuTeam() {
  {
    const std::lock_guard lock{mutex_};
    stop_ = true;
  }
  begin_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void CpuTeam::run(double flops, double bytes) {
  std::unique_lock lock{mutex_};
  flops_ = flops / size();
  bytes_ = bytes / size();
  busy_ = size();
  ++call_;
  begin_.notify_all();
  end_.wait(lock, [this] { return busy_ == 0; });
}

void CpuTeam::work(Memory& memory) {
  const GoThrough go = best();
  const double block_flops = 2.0 * kBlock;                  // a multiply and an add
  const double block_bytes = 2.0 * kBlock * sizeof(float);  // read and written
  std::uint64_t done = 0;
  const auto registers = make_pages(kBlock);
  for (;;) {
    double flops = 0;
    double bytes = 0;
    {
      std::unique_lock lock{mutex_};
      begin_.wait(lock, [&] { return stop_ || call_ != done; });
      if (stop_) return;
      done = call_;
      flops = flops_;
      bytes = bytes_;
    }
    if (bytes < block_bytes) {
      go(registers.get(), 1, static_cast<std::uint64_t>(std::llround(flops / block_flops)));
    } else {
      const std::size_t all = floats_ / kBlock;
      if (!memory.data) memory.data = make_pages(floats_);
      auto left = static_cast<std::size_t>(std::llround(bytes / block_bytes));
      const auto rounds = std::max<std::uint64_t>(
          1, static_cast<std::uint64_t>(
                 std::llround(flops / block_flops / static_cast<double>(left))));
      while (left > 0) {
        const std::size_t now = std::min(left, all - memory.next);
        go(memory.data.get() + memory.next * kVectors, now, rounds);
        memory.next = (memory.next + now) % all;
        left -= now;
      }
    }
    const std::lock_guard lock{mutex_};
    if (--busy_ == 0) end_.notify_all();
  }
}

void CpuTeams::run(std::uint32_t threads, double flops, double bytes) {
  static const std::uint32_t cores = cores_of_this_process();
  const std::uint32_t size = threads == 0 ? cores : threads;
  std::unique_ptr<CpuTeam> team;
  {
    const std::lock_guard lock{mutex_};
    const auto found = std::ranges::find(idle_, size, [](const auto& one) { return one->size(); });
    if (found != idle_.end()) {
      team = std::move(*found);
      idle_.erase(found);
    }
  }
  if (!team) team = std::make_unique<CpuTeam>(size);
  team->run(flops, bytes);
  const std::lock_guard lock{mutex_};
  idle_.push_back(std::move(team));
}

}  // namespace foretrace::hw
