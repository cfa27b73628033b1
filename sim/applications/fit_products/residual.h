// What kernels take beside what the formula says, learned from products that were timed: networks
// of their own for each kind of kernel, on the rows of several GPUs with the same kernels.
#pragma once

#include <string>
#include <vector>

#include "models/cost/products/residual.h"
#include "sim/applications/fit_products/predict.h"

namespace foretrace::fit_products {

/// A GPU's rows, with the machine that has its speeds.
struct Timed {
  Machine machine;
  std::vector<Row> rows;
};

struct LearnedResiduals {
  std::string name;  ///< of the kind of kernel: half, half_pairs, odd, float32
  products::Residual residual;
  std::size_t learned_from = 0, judged = 0;  ///< rows
  double before = 0, after = 0, before_90 = 0,
         after_90 = 0;  ///< |error| of the judging rows, recorded plans: median and 90th percentile
};

/// Of every kind. Rows that judge are not learned from.
std::vector<LearnedResiduals> learn_residuals(const std::vector<Timed>& timed);

}  // namespace foretrace::fit_products
