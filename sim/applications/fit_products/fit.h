// Parameters of products from a table that `foretrace-hw products` measured: first the speeds, at
// the clock that was measured beside each time, then the clock.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/applications/fit_products/predict.h"

namespace foretrace::fit_products {

struct Fit {
  Machine machine;
  products::Heuristics heuristics;
  std::vector<Param> fitted;
};

/// Which parameters; the rest stays.
enum class Part : std::uint8_t {
  All,
  Float32,    ///< of its kernels
  OlderHalf,  ///< of half precision's whose leading dimensions are no whole 16 bytes
  Straddle    ///< what operands of nvjet cost more whose rows begin within a sector
};

/// Rows that judge are for the caller to leave out; the rested clock is the highest in the table.
/// `learns_tiles`: how slow each tile of the older kernels is, is learned too; for another GPU with
/// the same library that is given.
Fit fit(const Machine& machine, const products::Heuristics& heuristics,
        const std::vector<Row>& rows, Part part, bool learns_tiles);

}  // namespace foretrace::fit_products
