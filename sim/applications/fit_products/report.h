// How far predictions are from a table of measured products, and what a fit has to be written.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/applications/fit_products/fit.h"

namespace foretrace::fit_products {

/// Of one row, relative: 0.02 is 2 % too long.
struct Error {
  Row row;
  double burst = 0, sustained = 0;
};
std::vector<Error> errors_of(const Machine& machine, const products::Heuristics& heuristics,
                             const std::vector<Row>& rows);

/// Every row predicted by a fit of the four fifths of the shapes that it does not belong to.
std::vector<Error> cross_validated(const std::vector<Row>& rows,
                                   const std::function<Fit(const std::vector<Row>&)>& fit);

struct Summary {
  std::size_t rows = 0;
  double median = 0, percentile_90 = 0, bias = 0;  ///< of |error|; of the signed error
};
/// Of burst and sustained errors of those that `wanted` takes, together.
Summary summary(const std::vector<Error>& errors, const std::function<bool(const Row&)>& wanted);

/// By type and length, by purpose, by family.
std::string errors_text(const std::vector<Error>& errors);
/// The same: rows of {"of", "rows", "median", "percentile_90", "bias"}, errors as fractions.
nlohmann::ordered_json errors_json(const std::vector<Error>& errors);
/// Lines of a machine file.
std::string parameters_text(const Fit& fit);
/// Rows of {"parameter", "value" in SI base units, "spread" as a fraction}.
nlohmann::ordered_json parameters_json(const Fit& fit);

}  // namespace foretrace::fit_products
