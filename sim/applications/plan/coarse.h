// A plan within a third of a second: which layouts fit, and a time below which the likely ones
// cannot be. For a page that asks again with every change; search.h says the rest behind it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/applications/plan/search.h"

namespace foretrace::plan {

struct CoarseRow {
  Layout layout;
  Fit fit;
  double bound = 0;  ///< seconds: no step of it is shorter (bound.h)
};

struct CoarseAnswer {
  std::int64_t gpus = 0;
  std::size_t tried = 0;        ///< layouts that divide evenly
  std::size_t fitting = 0;      ///< of them, into the GPUs' memory
  double least_bytes = 0;       ///< the smallest peak of a GPU
  std::vector<CoarseRow> rows;  ///< those whose micro-batches were simulated, the least bound first
};

/// Some micro-batches of the kinds of layer whose arithmetic alone takes least. Whether the others
/// fit is taken from the memory of few of their layers. Throws UsageError when no layout divides
/// evenly.
CoarseAnswer coarse_plan(const Question& question, std::int64_t gpus);

/// The rows in words, or for a program.
std::string text_of(const Question& question, const std::vector<CoarseAnswer>& answers);
std::string json_of(const Question& question, const std::vector<CoarseAnswer>& answers);

}  // namespace foretrace::plan
