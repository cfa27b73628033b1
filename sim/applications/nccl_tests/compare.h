// Measured nccl-tests results against the prediction of the same runs.
#pragma once

#include <string>
#include <vector>

#include "reports/table/output_format.h"
#include "sim/applications/nccl_tests/log.h"
#include "sim/applications/nccl_tests/predict.h"

namespace foretrace {

struct NcclTestsComparedRow {
  NcclTestsRow predicted;
  std::vector<double> measured_us;  ///< one for each time the size was measured
  double median_us = 0;
  std::size_t in_band = 0;  ///< how many of measured_us
  double error = 0;         ///< (predicted - median) / median
};

/// All samples of one kind of run, whichever files they come from.
struct NcclTestsComparison {
  NcclTestsPlan plan;
  std::vector<std::string> files;
  std::vector<NcclTestsComparedRow> rows;  ///< by size
};

/// Throws UsageError when a run does not fit on `machine`. Sizes without an element for each rank
/// are left out.
std::vector<NcclTestsComparison> compare_nccl_tests(const std::vector<NcclTestsSample>& samples,
                                                    const Machine& machine);

/// The largest |error|.
double worst_error(const std::vector<NcclTestsComparison>& comparisons);

/// Text has a summary: mean, 95th percentile and worst |error|, below and from 1 MiB.
std::string render_nccl_tests(const std::vector<NcclTestsComparison>& comparisons,
                              OutputFormat format);

}  // namespace foretrace
