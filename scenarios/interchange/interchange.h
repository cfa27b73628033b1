// Workloads of other simulators as scenarios: Chakra execution traces (.et of mlcommons/chakra) and
// SimAI's workload files (text, by AICB). What they do not say is assumed, and said.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace foretrace::interchange {

struct Options {
  std::string name;             ///< of the scenario
  std::uint32_t processes = 0;  ///< 0: as the files say
  double flops = 0;             ///< of the GPU, for nodes with operations and no duration
  double bytes_per_second = 0;  ///< of its memory
};

struct Scenario {
  std::string text;
  std::vector<std::string> notes;  ///< what was assumed and left out, a line each
};

/// A file and its bytes, of one rank.
struct RankFile {
  std::string name;
  std::string bytes;
};

bool is_simai(std::string_view head);
/// Length-delimited messages; `file` decides by its ending.
bool is_chakra(std::string_view file);

/// Throws UsageError with file and line.
Scenario read_simai(const RankFile& file, const Options& options);
/// One file for each rank, by the ranks in their names ("rank.3.et") or in their order; one file
/// for all of them. Throws UsageError with file and byte.
Scenario read_chakra(const std::vector<RankFile>& files, const Options& options);

}  // namespace foretrace::interchange
