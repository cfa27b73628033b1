// Random rows of operations, as scenario text: every collective and transfer of NCCL with any size,
// root, type and stream, alone, in groups and in graphs, on some communicators of processes with
// one device or several, on one node or more; and what programs do between them.
//
// Every rank makes its calls in one order that all share, so that a program ends; but where
// `differ`, one rank leaves a call out, changes it, or makes it later.
#pragma once

#include <string>

#include "tests/properties/choices.h"

namespace foretrace::test {

struct RowsShape {
  std::uint32_t rows = 1;  ///< of 1 to 6 steps each; then all devices are waited for, or not
  bool only_nccl = false;  ///< nothing but NCCL's calls, delays of the host and waits
  bool differ = false;     ///< in one step or a few the ranks do not agree: most never end
};

/// Scenario text with name `name`, in which `rows` rows stand; below 5 GiB of memory on each device.
std::string random_rows(Choices choices, const RowsShape& shape, const std::string& name);

}  // namespace foretrace::test
