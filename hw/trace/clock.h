// The one clock of all measured times: CLOCK_MONOTONIC, common to all processes of a host. CUPTI's
// records are put on it too (activity_tracer.h).
#pragma once

#include <time.h>

#include <cstdint>

namespace foretrace::hw {

inline std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

/// Tells the core that this is a spin loop; other hardware threads of it go faster.
inline void relax_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Keeps the calling thread busy until `moment_ns`.
inline void wait_until(std::int64_t moment_ns) {
  while (now_ns() < moment_ns) relax_cpu();
}

}  // namespace foretrace::hw
