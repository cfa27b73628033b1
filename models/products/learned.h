// What was learned about cuBLAS: networks and numbers in models/products, which `foretrace
// fit-products` writes.
#pragma once

#include <filesystem>
#include <string>

#include "models/cost/products/heuristic.h"
#include "models/cost/products/residual.h"

namespace foretrace::products {

/// models/products, beside models/machines.
std::filesystem::path learned_directory();

/// Throw UsageError with the file's name where it is not as fit-products writes it: a network's
/// sizes that do not belong together, a number that is none.
Heuristic read_heuristic(const std::filesystem::path& file);
Residual read_residual(const std::filesystem::path& file);

/// The files' text. `by`: the options of fit-products that learned it.
std::string text_of(const Heuristic& heuristic, const std::string& by);
std::string text_of(const Residual& residual, const std::string& by);

/// "half", as files are called. Only of families that have a heuristic.
std::string name_of(Family family);

}  // namespace foretrace::products
