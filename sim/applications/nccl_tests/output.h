// nccl-tests' table as text (nccl-tests' own), CSV and JSON.
#pragma once

#include <string>
#include <vector>

#include "sim/applications/nccl_tests/predict.h"

namespace foretrace {

/// Scripts that read nccl-tests' output read this too; `range` is for its header.
std::string nccl_tests_text(const NcclTestsPlan& plan, const NcclTestsRange& range,
                            const Machine& machine, const std::vector<NcclTestsRow>& rows);
std::string nccl_tests_csv(const NcclTestsPlan& plan, const std::vector<NcclTestsRow>& rows);
std::string nccl_tests_json(const NcclTestsPlan& plan, const Machine& machine,
                            const std::vector<NcclTestsRow>& rows);

}  // namespace foretrace
