// What real nccl-tests printed: its text tables, and CSV files of such results.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/base/text/diagnostic.h"
#include "sim/applications/nccl_tests/plan.h"

namespace foretrace {

/// What holds where a file does not tell, and which rows of a CSV file count.
struct NcclTestsAssumed {
  NcclTestsPlan plan;             ///< from the command line
  std::optional<NcclTestsOp> op;  ///< --op-name
  std::map<std::string, std::string> where;
};

/// One measured line; `plan` has no sizes.
struct NcclTestsSample {
  NcclTestsPlan plan;
  std::uint64_t bytes = 0;  ///< the size column
  double time_us = 0;       ///< out of place
  std::string file;
  std::string gpu;                   ///< its name as the file has it; empty: not told
  std::vector<std::string> hosts{};  ///< that took part, by name; empty: not told
};

/// nccl-tests' own output, behind any launcher's prefixes (log_lines.h); one file may hold several
/// runs. Lines between the tables are skipped, but NCCL's version, which chooses where plan.nccl is
/// empty, and the settings that they show.
Checked<std::vector<NcclTestsSample>> read_nccl_tests_log(std::string_view text,
                                                          const std::string& file,
                                                          const NcclTestsAssumed& assumed);

/// What nccl-tests writes with -J FILE.json.
Checked<std::vector<NcclTestsSample>> read_nccl_tests_json(std::string_view text,
                                                           const std::string& file,
                                                           const NcclTestsAssumed& assumed);

/// The first line that is neither empty nor a comment (#) names the columns: op or collective,
/// bytes or size_bytes, ranks or gpus, and time_us (where that is empty: algbw_GBps, busbw_GBps).
/// Also read: nccl (the release whose rules choose, where a row tells one that is known), gpu,
/// nodes, processes, gpus_per_process, threads, type, redop; what they do not tell, a `note` does
/// with nccl-tests' -t, -g or -d in it, or with "single process" or "one process"; else the plan's
/// own.
Checked<std::vector<NcclTestsSample>> read_nccl_tests_csv(std::string_view text,
                                                          const std::string& file,
                                                          const NcclTestsAssumed& assumed);

/// All of them, each by what is in it; "-" is standard input. Throws UsageError with every mistake
/// of a file.
std::vector<NcclTestsSample> read_nccl_tests(const std::vector<std::filesystem::path>& files,
                                             const NcclTestsAssumed& assumed);

}  // namespace foretrace
