// Launches over a list of tensors: which of them have how many blocks.
#pragma once

#include <cstdint>
#include <vector>

namespace foretrace::styles {

/// Of a launch at most.
struct ListRule {
  std::int64_t tensors = 1;
  std::int64_t blocks = 0;  ///< 0: a block for each tensor
  std::int64_t chunk = 1;   ///< elements of a block
};

/// Blocks of each launch over tensors of so many elements: PyTorch's multi_tensor_apply.
std::vector<std::int64_t> launches_over(const ListRule& rule,
                                        const std::vector<std::int64_t>& elements);

/// Launches of an elementwise kernel: tensors beyond 2 GiB are halved until they are below.
std::int64_t pieces_of(std::int64_t elements, std::int64_t width);

}  // namespace foretrace::styles
