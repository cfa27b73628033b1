// What cuBLAS would launch for a product, without running it: a captured graph tells, some
// five thousand products in a second. Timed as well, some hundred.
#pragma once

#include <filesystem>
#include <vector>

#include "hw/products/shapes.h"

namespace foretrace::hw {

struct ListedChoices {
  std::size_t products = 0;
  std::size_t refused = 0;  ///< by cuBLAS; each is named on stderr, the first ten
};

struct ListOptions {
  int device = 0;
  double seconds = 3600;  ///< for all of them
  bool timed = false;     ///< quick_timer.h
  bool rotated = false;   ///< timed with operands that the level-2 cache does not have
};

/// Writes a line for each shape into `output`: the shape's columns, the number of kernels, and of
/// the main one name, grid, threads, cluster and blocks on an SM; timed, whose memory (same,
/// rotated), how (stream, graph), us and the SMs' clock behind it. `gpu` and `cublas` stand in a
/// comment at the top, written when all are known. Stops before the next shape after `seconds`.
/// Throws CannotHereError where there is no such device or memory, CudaError, and what
/// `read_shapes` throws.
ListedChoices list_choices(const std::vector<Shape>& shapes, const ListOptions& options,
                           const std::filesystem::path& output);

}  // namespace foretrace::hw
