// Where the time of each GPU goes in a timeline, simulated or measured.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "reports/timeline/timeline.h"

namespace foretrace::explain {

/// What a GPU does or waits for at a time; of several the first that holds.
enum class Use : std::uint8_t {
  Kernel,           ///< a kernel that is not NCCL's runs
  Copy,             ///< only copies and fills
  Bubble,           ///< only NCCL: sends and receives
  Straggler,        ///< only NCCL: a collective whose last rank has not begun. The n-th of a kind
                    ///< and size in each process is one collective
  Communication,    ///< only NCCL: the rest of it
  Synchronization,  ///< nothing: the host was waiting for the device, and queued what comes too
                    ///< late
  Host,             ///< nothing: the call of what comes next has not returned, or just has
  Dependency  ///< nothing, though what comes next was queued long before: it waits for a stream
};
inline constexpr std::size_t kUses = static_cast<std::size_t>(Use::Dependency) + 1;
std::string_view name_of(Use use);

/// NCCL's sends and receives.
bool moves_to_one_peer(const OpRow& op);

struct UseTime {
  std::int64_t begin_ns = 0, end_ns = 0;
  Use use{};
};

struct GpuTime {
  std::uint32_t process = 0, device = 0;
  std::int64_t ns = 0;  ///< from the run's first span to its last
  std::array<std::int64_t, kUses> by_use{};
  std::vector<UseTime> times = {};  ///< all of it, in order, without gaps
};

/// By process and device, of those that do anything.
std::vector<GpuTime> gpu_times(const Timeline& timeline);

}  // namespace foretrace::explain
