// Host threads that connect their ranks before they use each other for the first time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/program/nccl_connections.h"
#include "sim/engine/engine.h"

namespace foretrace::sim {

/// Host threads that connect to each other before the first use of a peer or an algorithm.
struct Connection {
  std::string what{};                    ///< for explaining a deadlock
  std::vector<std::uint32_t> missing{};  ///< ranks that have not come yet
  TimePoint ready{};                     ///< once nobody is missing
  std::vector<Waiter*> waiters{};
  /// Of pairs of ranks that one rank connects with at once, where they wait for each other.
  const NcclConnections* pairs = nullptr;
  std::uint32_t setup = 0;  ///< in `pairs`
  bool made() const { return pairs != nullptr ? pairs->is_done(setup) : missing.empty(); }
  /// Who has not come, and for what.
  std::string needs() const;
};

}  // namespace foretrace::sim
