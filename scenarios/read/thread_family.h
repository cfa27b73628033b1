// Families of host threads: one description, a thread for each index, as buffers have them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/read/op_fields.h"

namespace foretrace {

/// One thread of a family. All empty of a thread that is in none.
struct ThreadMember {
  std::string of_thread;   ///< "(2)", behind the name
  std::string of_regions;  ///< ".2", behind the names of its regions
  std::vector<std::pair<std::string, std::int64_t>> indices;  ///< by their names
};

/// `count` with `index`, `each: device` with `device`: all threads that `map` is, one where it has
/// neither, and one more than `most` where it has more than that.
std::vector<ThreadMember> read_members(Reader& reader, MapReader& map, std::size_t most);

}  // namespace foretrace
