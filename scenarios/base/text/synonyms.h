// What CUDA, NCCL, PyTorch and MPI call what a scenario calls otherwise. One table, for every
// message that suggests a word: keys, operations, types, names in expressions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace foretrace {

/// What `given` means where `known` may stand: "did you mean 'process'?" for 'rank' in a thread.
/// Empty when nothing there has another name elsewhere.
std::string meant_by(std::string_view given, const std::vector<std::string>& known);

}  // namespace foretrace
