#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>

#include "hw/execute/cpu_team.h"
#include "hw/host/pages.h"
#include "hw/host/probes.h"
#include "hw/host/timer.h"

namespace foretrace::hw {
namespace {

using enum MeasuredUnit;

constexpr std::size_t kKi = 1024, kMi = kKi * kKi;
constexpr std::size_t kPageOf4KiB = 4 * kKi, kPageOf2MiB = 2 * kMi;
constexpr std::size_t kLongBlock = 64 * kMi;

std::string size_text(std::size_t bytes) {
  return bytes >= kMi ? fmt::format("{}MiB", bytes / kMi) : fmt::format("{}KiB", bytes / kKi);
}

double touch_seconds(PageKind kind, std::size_t page) {
  const HostPages pages{kLongBlock, kind};
  return seconds_of([&] { pages.touch(page); }) * static_cast<double>(page) /
         static_cast<double>(kLongBlock);
}

/// HostPages as a program gets them that asks for nothing.
Probe first_touch() {
  return {{{"host.touch_bandwidth", Rate},
           {"first touch of a 4 KiB page", Time},
           {"first touch of a 2 MiB page", Time},
           {"pages of touched memory given back", Rate}},
          [] {
            double again = 0, fresh = 0, back = 0;
            {
              auto pages = std::make_unique<HostPages>(kLongBlock);
              fresh = seconds_of([&] { std::memset(pages->data(), 1, kLongBlock); });
              again = seconds_of([&] { std::memset(pages->data(), 2, kLongBlock); });
              back = seconds_of([&] { pages.reset(); });
            }
            const auto block = static_cast<double>(kLongBlock);
            return std::vector{block / (fresh - again), touch_seconds(PageKind::Small, kPageOf4KiB),
                               touch_seconds(PageKind::Huge, kPageOf2MiB), block / back};
          }};
}

/// memcpy between touched pages: one after the other of a larger block, so that no cache has them.
Probe copies(std::size_t size, bool again) {
  auto from = std::make_shared<HostPages>(again ? size : 4 * kLongBlock);
  auto to = std::make_shared<HostPages>(again ? size : 4 * kLongBlock);
  std::memset(from->data(), 1, from->bytes());
  std::memset(to->data(), 1, to->bytes());
  const std::string what =
      again ? "memcpy of the same memory again" : "memcpy, touched pages in no cache";
  return {{{what, Rate, size_text(size)}}, [=] {
            const std::size_t times =
                std::max<std::size_t>(1, std::min(kLongBlock, from->bytes()) / size);
            const std::size_t step = again ? 0 : size;
            const double seconds = seconds_of([&] {
              for (std::size_t i = 0; i < times; ++i) {
                const std::size_t at = i * step % from->bytes();
                std::memcpy(to->chars() + at, from->chars() + at, size);
              }
            });
            return std::vector{static_cast<double>(times * size) / seconds};
          }};
}

Probe copies_to_fresh() {
  auto from = std::make_shared<HostPages>(kLongBlock);
  std::memset(from->data(), 1, kLongBlock);
  return {{{"memcpy to pages never touched", Rate, size_text(kLongBlock)}}, [=] {
            const HostPages to{kLongBlock};
            const double seconds =
                seconds_of([&] { std::memcpy(to.data(), from->data(), kLongBlock); });
            return std::vector{static_cast<double>(kLongBlock) / seconds};
          }};
}

Probe fills() {
  auto to = std::make_shared<HostPages>(4 * kMi);
  auto random = std::make_shared<std::mt19937>();
  std::memset(to->data(), 1, to->bytes());
  return {{{"host.fill_bandwidth", Rate}}, [=] {
            auto* const out = static_cast<float*>(to->data());
            const double seconds = seconds_of([&] {
              for (std::size_t i = 0; i < to->bytes() / sizeof(float); ++i) {
                out[i] = static_cast<float>((*random)() & 0xffffffU) * 0x1p-24F;
              }
            });
            return std::vector{static_cast<double>(to->bytes()) / seconds};
          }};
}

/// Bytes and flops a second of a team, as operators on the CPU go through memory and compute
/// (execute/cpu_team.h).
struct TeamRates {
  double memory = 0, flops = 0;
};
TeamRates rates_of(CpuTeam& team) {
  constexpr double kBytes = 128.0 * kMi, kFlops = 2e8;
  const double bytes = kBytes * team.size(), flops = kFlops * team.size();
  // The second is measured: the threads are awake, and their memory is touched.
  team.run(0, bytes / 4);
  const double going = seconds_of([&] { team.run(0, bytes); });
  const double computing = seconds_of([&] { team.run(flops, 0); });
  return {bytes / going, flops / computing};
}

/// What work that computes and goes through memory takes beyond the longer of both, as a share of
/// the shorter: two operations for each byte, as an optimizer's step on the CPU has.
double both_share(CpuTeam& team, const TeamRates& alone) {
  constexpr double kBytes = 64.0 * kMi, kFlopsOfByte = 2;
  const double bytes = kBytes * team.size(), flops = bytes * kFlopsOfByte;
  const double computing = flops / alone.flops, going = bytes / alone.memory;
  const double both = seconds_of([&] { team.run(flops, bytes); });
  return std::clamp((both - std::max(computing, going)) / std::min(computing, going), 0.01, 1.0);
}

/// One core, half of them and all: hardware threads of one core share it.
Probe cores(std::uint32_t count, std::size_t memory) {
  const std::uint32_t half = std::max(1U, count / 2);
  auto one_team = std::make_shared<CpuTeam>(1, memory);
  auto half_team = std::make_shared<CpuTeam>(half, memory);
  auto all_team = std::make_shared<CpuTeam>(count, memory);
  std::vector<Quantity> quantities{{"host.core_memory_bandwidth", Rate},
                                   {"host.core_flops", FlopRate},
                                   {"host.memory_bandwidth", Rate},
                                   {"host.core_both", Ratio}};
  constexpr std::uint32_t kOfTwo = 3;  // fewer have no half between one and all
  if (count > kOfTwo) {
    quantities.insert(quantities.end(), {{"host.flops_share", Ratio},
                                         {"host.half_memory_share", Ratio},
                                         {"host.half_flops_share", Ratio}});
  }
  return {std::move(quantities), [=] {
            const TeamRates one = rates_of(*one_team), some = rates_of(*half_team),
                            all = rates_of(*all_team);
            const double both = (both_share(*one_team, one) + both_share(*half_team, some)) / 2;
            return std::vector{one.memory,
                               one.flops,
                               all.memory,
                               both,
                               all.flops / one.flops / count,
                               some.memory / one.memory / half,
                               some.flops / one.flops / half};
          }};
}

Probe page_cache() {
  const int file = memfd_create("foretrace-host", MFD_CLOEXEC);
  auto to = std::make_shared<HostPages>(kLongBlock);
  std::memset(to->data(), 1, kLongBlock);
  auto opened = std::shared_ptr<int>{new int{file}, [](const int* one) {
                                       if (*one >= 0) close(*one);
                                       delete one;
                                     }};
  const bool is_there =
      file >= 0 && write(file, to->data(), kLongBlock) == static_cast<ssize_t>(kLongBlock);
  return {{{"read of a file in the page cache", Rate, size_text(kLongBlock)}}, [=] {
            if (!is_there) return std::vector{0.0};
            ssize_t got = 0;
            const double seconds =
                seconds_of([&] { got = pread(*opened, to->data(), kLongBlock, 0); });
            return std::vector{got > 0 ? static_cast<double>(got) / seconds : 0.0};
          }};
}

}  // namespace

std::vector<Probe> memory_probes(const HostSystem& system) {
  std::vector<Probe> probes;
  probes.push_back(first_touch());
  for (const std::size_t size : {4 * kKi, 32 * kKi, kMi, kLongBlock}) {
    probes.push_back(copies(size, false));
  }
  for (const std::size_t size : {32 * kKi, kMi / 2, 8 * kMi}) probes.push_back(copies(size, true));
  probes.push_back(copies_to_fresh());
  probes.push_back(fills());
  // Larger than any cache, and little of what there is.
  const std::size_t memory =
      std::clamp<std::size_t>(system.memory / 16, 4 * kLongBlock, CpuTeam::kMemory);
  probes.push_back(cores(system.cores, memory));
  probes.push_back(page_cache());
  return probes;
}

}  // namespace foretrace::hw
