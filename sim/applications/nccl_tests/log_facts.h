// What a file of results says of the run beside its table: the release of NCCL, settings of the
// environment.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "sim/applications/nccl_tests/plan.h"

namespace foretrace {

/// 21805 is "2.18.5", 2803 "2.8.3": NCCL_VERSION_CODE.
std::string release_of_code(std::uint32_t code);

/// "2.21.5" of "NCCL version 2.21.5+cuda12.4", "21805" as 2.18.5 of "nccl-library=21805"; empty
/// where a line has neither, or RCCL's.
std::string release_in(std::string_view line);

/// Notes that a file says once, whichever of its lines says it again.
class LogFacts {
 public:
  explicit LogFacts(const std::string& file) : file_{file} {}

  /// `release` chooses from now on, where its rules are known and the plan has none.
  void take_release(const std::string& release, int line);
  /// Says which setting of NCCL stands in the line and not in `plan`'s environment.
  void note_settings(std::string_view line, int number, const NcclTestsPlan& plan);
  void apply(NcclTestsPlan& plan);

 private:
  void note(const std::string& text);

  const std::string& file_;
  std::string release_;
  std::set<std::string> said_;
};

/// Whether algorithm and bus bandwidth, as printed with two digits, fit the plan's operation and
/// ranks. Before nccl-tests' commit ec1b5e2 (2020-06-19) all_gather and reduce_scatter counted n -
/// 1 parts in the first, and both were the same.
bool bandwidths_fit(const NcclTestsPlan& plan, double algorithm_gbps, double bus_gbps);

}  // namespace foretrace
