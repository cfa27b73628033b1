// foretrace explain-kernel for kernels that go once through arrays, and wait for memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/machine/machine.h"

namespace foretrace {

struct MemoryKernel {
  std::string name;          ///< of memory_kernel_names()
  std::string size;          ///< of each array: "4MiB"
  std::uint32_t arrays = 2;  ///< elementwise: all but the last are read, the last is written
  bool cold = false;         ///< the level-2 cache has nothing of them
};

std::vector<std::string> memory_kernel_names();

/// Its time, the parameters that decide it, and what each term makes of it, as text or as JSON.
/// Throws UsageError for a size that is none.
std::string explain_memory_kernel(const Machine& machine, const MemoryKernel& kernel, bool json);

}  // namespace foretrace
