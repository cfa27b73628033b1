// Parameters of products from a table that `foretrace-hw products` measured: first the speeds, at
// the clock that was measured beside each time, then the library's taste, then the clock.
#pragma once

#include <vector>

#include "sim/fit_products/predict.h"

namespace foretrace::fit_products {

struct Fit {
  Machine machine;
  products::Tastes tastes;
  std::vector<Param> fitted;
};

/// The rested clock is the highest in the table. Rows that judge are for the caller to leave out.
Fit fit(const Machine& machine, const products::Tastes& tastes, const std::vector<Row>& rows);

/// Only float32's kernels, speeds and taste; the rest stays.
Fit fit_float32_kernels(const Machine& machine, const products::Tastes& tastes,
                        const std::vector<Row>& rows);

/// The same with given tastes: another GPU, the same library.
Fit fit_float32_machine(const Machine& machine, const products::Tastes& tastes,
                        const std::vector<Row>& rows);

/// Only what operands of nvjet cost more whose rows begin within a sector; its taste, too.
Fit fit_straddling(const Machine& machine, const products::Tastes& tastes,
                   const std::vector<Row>& rows);
Fit fit_straddling_and_taste(const Machine& machine, const products::Tastes& tastes,
                             const std::vector<Row>& rows);

/// Only half precision without whole 16 bytes: kernels, speeds and taste.
Fit fit_older_half_kernels(const Machine& machine, const products::Tastes& tastes,
                           const std::vector<Row>& rows);

/// The same with given tastes.
Fit fit_older_half_machine(const Machine& machine, const products::Tastes& tastes,
                           const std::vector<Row>& rows);

/// All of it with given tastes.
Fit fit_machine(const Machine& machine, const products::Tastes& tastes,
                const std::vector<Row>& rows);

}  // namespace foretrace::fit_products
