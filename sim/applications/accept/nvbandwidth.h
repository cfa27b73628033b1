// What NVIDIA's nvbandwidth printed: its matrices, of its text and of -j's JSON.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/base/text/diagnostic.h"

namespace foretrace {

/// One test: rows and columns are GPUs, or a row is the host.
struct NvbandwidthMatrix {
  std::string test;                                      ///< "device_to_device_memcpy_read_ce"
  int line = 0;                                          ///< of "Running"; 0 in JSON
  std::vector<std::vector<std::optional<double>>> gbps;  ///< row, column; none: N/A
};

/// What both forms of a file tell.
struct Nvbandwidth {
  std::string gpu;  ///< "NVIDIA H100 80GB HBM3"; empty: not told
  std::vector<NvbandwidthMatrix> matrices;
  std::vector<std::string> not_run;  ///< tests that failed or were waived, by name
};

/// Whether it looks like such a file: which reader to ask.
bool is_nvbandwidth(std::string_view text);

/// Tests without a matrix of GB/s (latencies) are left out.
Checked<Nvbandwidth> read_nvbandwidth(std::string_view text, const std::string& file);

}  // namespace foretrace
