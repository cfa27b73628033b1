// A random program's parts, and the scenario text they make.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace foretrace::test {

struct RandomStream {
  std::string name;
  std::uint32_t device;
  std::uint32_t number;                ///< of its buffers
  std::optional<std::uint32_t> owner;  ///< the only thread that may use it
  std::string declared;                ///< its declaration; empty for the default streams
};

struct ProgramParts {
  std::uint32_t processes, devices;
  std::uint32_t events, signals;
  std::uint32_t buffer_sets;  ///< one for each stream, then one for each graph
  const std::vector<RandomStream>& streams;
  const std::vector<std::uint32_t>& graph_devices;
  const std::vector<std::vector<std::string>>& threads;  ///< each one's operations
};

std::string scenario_text(const ProgramParts& parts, const std::string& name);

/// `threads:` of a thread for each process, of its operations.
std::string threads_text(const std::vector<std::vector<std::string>>& of_processes);

/// What a capture on stream sN(0) has: `ops`, which use sN of all devices. The others join and are
/// joined back by the events e(0), e(1), ...
std::vector<std::string> joined_by_all(std::uint32_t devices, std::uint32_t stream,
                                       const std::vector<std::string>& ops);

}  // namespace foretrace::test
