// What the system says of the host: /proc and /sys.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace foretrace::hw {

struct HostSystem {
  std::string cpu;          ///< "INTEL(R) XEON(R) PLATINUM 8581C CPU @ 2.10GHz"
  std::string vendor;       ///< intel, amd or arm; empty where the system does not say it
  std::uint32_t cores = 1;  ///< that this process may use
  std::uint32_t sockets = 1;
  std::uint32_t numa_nodes = 1;
  std::uint32_t threads_per_core = 1;
  std::uint64_t memory = 0;      ///< bytes
  std::uint64_t core_cache = 0;  ///< bytes of a core's own level-2 cache; 0: not known
  std::uint64_t last_cache = 0;  ///< bytes of a socket's last cache; 0: not known
  std::string huge_pages;        ///< "always", "madvise" or "never"; empty: not known
};

/// Below `root`, which is "/" but for tests.
HostSystem read_system(const std::filesystem::path& root = "/");

/// "0-3,8" has five; 0 for what is no such list.
std::uint32_t count_of_list(const std::string& list);

}  // namespace foretrace::hw
