// The executions of a timeline that made a GPU do something, in the order of the host's calls.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reports/timeline/timeline.h"

namespace foretrace {

struct Execution {
  std::uint32_t op{};
  std::uint64_t instance{};
  std::int64_t called_ns{};  ///< begin of the call; of the work where the call is not known
  std::string exact;         ///< a kernel by its name, a copy by direction and size, a collective
  std::string operation;     ///< a kernel's operation of PyTorch, as a label: "mul"; else empty
};

/// By process. `exact` and `operation` are spelled the same for both sides.
std::map<std::uint32_t, std::vector<Execution>> executions_of(const Timeline& timeline);

/// "gemm", "d2h", "all_reduce" or the operation: what a reader knows it by.
std::string operation_family(const OpRow& op);

}  // namespace foretrace
