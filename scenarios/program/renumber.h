// Objects in another order than operations first named them in.
#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/program/program.h"

namespace foretrace {

/// By the number that an object has the one that it gets; empty: all keep theirs.
struct NewNumbers {
  std::vector<std::uint32_t> streams, events, buffers, graphs;
};
/// In what all operations name. The objects themselves are the caller's to move.
void renumber(Program& program, const NewNumbers& numbers);

}  // namespace foretrace
