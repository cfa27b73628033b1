// What a timeline says about the program it is of: shared by simulator and harness, so that their
// timelines join.
#pragma once

#include <string>
#include <vector>

#include "reports/timeline/timeline.h"
#include "scenarios/program/program.h"

namespace foretrace {

/// The hash of what was captured and is of no scenario: by names alone two of them are compared.
inline constexpr const char* kCapturedHash = "capture";

/// The hash of a measured step of a user's script, which is of no program: `compare` joins it call by
/// call (reports/calls). scenarios/pytorch/foretrace/timeline.py writes it.
inline constexpr const char* kMeasuredStepHash = "pytorch-step";

/// How results name a scenario file: one of the repository from there ("scenarios/streams/x.yaml"),
/// wherever the repository is and the command runs; any other as it was typed.
std::string scenario_path(const std::string& file);

/// Scenario name, file and program hash filled in; machine and versions are the executor's.
Origin origin_of(const Program& program);

/// One row per operation, by OpId.
std::vector<OpRow> op_rows(const Program& program);

/// Whether `timeline` is of these operations in these loops: its hash alone may say so wrongly.
/// Captured ones count on neither side.
bool has_ops_of(const Timeline& timeline, const std::vector<OpRow>& rows);

}  // namespace foretrace
