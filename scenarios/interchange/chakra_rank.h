// One rank's nodes as operations of a scenario, in an order that their dependencies allow.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "scenarios/interchange/chakra_nodes.h"
#include "scenarios/interchange/interchange.h"

namespace foretrace::interchange {

/// Ranks that a collective is of, and the scenario's name for their communicator.
struct ChakraGroup {
  std::string comm;
  std::vector<std::uint64_t> ranks;
};

/// What the ranks have in common, filled as they are read.
struct ChakraFacts {
  std::uint64_t processes = 1;
  std::uint64_t largest = 16;  ///< bytes of a buffer
  std::size_t events = 0;      ///< of the rank that needs most at once
  std::map<std::string, std::size_t> counts;
  std::set<std::string> streams;         ///< named by the operations
  std::set<std::string> comms;           ///< the same
  std::set<std::string> unknown_groups;  ///< `pg_name`s whose ranks are not known
};

/// Its operations, a line each, and at their end the host's wait for its device. `groups` are
/// this rank's, by `pg_name`. Throws UsageError with file and byte.
std::string rank_ops(const std::string& file, const ChakraTrace& trace, const Options& options,
                     const std::map<std::string, ChakraGroup>& groups, ChakraFacts& facts);

}  // namespace foretrace::interchange
