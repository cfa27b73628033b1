// Communicators of one captured rank, carried over to the ranks that it stands for.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scenarios/captured/expand.h"

namespace foretrace::captured {

/// Ranks that make the same calls with the same communicators: one host thread in the scenario.
struct Party {
  const Record* record{};
  std::vector<std::int64_t> ranks;
  bool stands_for_others = false;                   ///< its record does, than the captured rank
  std::map<std::uint32_t, std::string> comm_names;  ///< of the record's communicators
};

struct Groups {
  std::map<std::string, std::vector<std::int64_t>> members;  ///< by the communicator's name
  std::vector<Party> parties;
};

/// A communicator of the captured rank is repeated over the world: ranks 0, 2, 4, 6 of 8 become 0,
/// 2, 4, 6 and 1, 3, 5, 7. Throws UsageError where the ranks do not tile the world.
Groups groups_of(const CapturedStep& step);

}  // namespace foretrace::captured
