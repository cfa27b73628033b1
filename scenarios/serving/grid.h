// Which iterations are asked: sizes and contexts between which the times of all others lie.
#pragma once

#include <vector>

#include "scenarios/serving/iteration.h"

namespace foretrace::serving {

/// Batches of one size, by growing work of attention.
struct GridRow {
  std::int64_t size = 0;  ///< tokens; of a padded graph its requests
  bool is_graph = false;  ///< of the engine's that calls others kernel by kernel
  std::vector<Batch> batches;
};

/// Rows of graphs first, each kind by growing size.
std::vector<GridRow> grid_of(const Serving& serving);

/// All batches of the rows, in their order: what `serving:` reads as a program is their iterations.
std::vector<Batch> batches_of(const std::vector<GridRow>& rows);

/// Requests that decode, each with so many keys.
Batch decoding(std::int64_t requests, std::int64_t keys);
/// One prompt's chunk behind so many cached tokens.
Batch prefilling(std::int64_t tokens, std::int64_t cached);

}  // namespace foretrace::serving
