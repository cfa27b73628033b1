// Reports of Nsight Systems, exported as SQLite (nsys export --type sqlite): CUDA's calls, kernels,
// copies and fills.
#pragma once

#include <filesystem>
#include <vector>

#include "reports/capture/capture.h"

namespace foretrace::capture {

/// Whether bytes begin as a SQLite database does.
bool is_sqlite(std::string_view bytes);

/// One process for each that called CUDA. Throws UsageError naming the file: damaged, without the
/// tables of CUDA's activity, numbers that are no times, more than kMostEvents.
std::vector<Process> read_nsight(const std::filesystem::path& file, Names& names);

}  // namespace foretrace::capture
