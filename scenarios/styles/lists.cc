#include "scenarios/styles/lists.h"

#include <algorithm>
#include <limits>

namespace foretrace::styles {

std::vector<std::int64_t> launches_over(const ListRule& rule,
                                        const std::vector<std::int64_t>& elements) {
  std::vector<std::int64_t> made;
  if (rule.blocks == 0) {
    const auto count = static_cast<std::int64_t>(elements.size());
    for (std::int64_t at = 0; at < count; at += rule.tensors)
      made.push_back(std::min(rule.tensors, count - at));
    return made;
  }
  std::int64_t tensors = 0, blocks = 0;
  for (const std::int64_t n : elements) {
    ++tensors;
    const std::int64_t chunks = (n + rule.chunk - 1) / rule.chunk;
    for (std::int64_t chunk = 1; chunk <= chunks; ++chunk) {
      ++blocks;
      const bool is_last = chunk == chunks;
      if (!(tensors == rule.tensors && is_last) && blocks != rule.blocks) continue;
      made.push_back(blocks);
      blocks = 0;
      tensors = is_last ? 0 : 1;  // the rest of this one goes on in the next launch
    }
  }
  if (blocks > 0) made.push_back(blocks);
  return made;
}

std::int64_t pieces_of(std::int64_t elements, std::int64_t width) {
  std::int64_t pieces = 1;
  while (elements / pieces > std::numeric_limits<std::int32_t>::max() / width) pieces *= 2;
  return pieces;
}

}  // namespace foretrace::styles
