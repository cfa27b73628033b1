// How operations are written that read as several operations of the Program. Internal to
// scenarios/.
#pragma once

#include <span>
#include <string_view>

#include "scenarios/lower/lowering.h"
#include "scenarios/read/op_fields.h"

namespace foretrace {

/// How such an operation is written in a scenario.
struct LoweredSyntax {
  std::string_view name;
  std::string_view keys;
  std::string_view summary;
  void (*read)(OpFields&, Lowering&);
  std::string_view stands_as = {};  ///< it may stand where this operation may; empty: in no group
};
std::span<const LoweredSyntax> torch_ops();
std::span<const LoweredSyntax> torch_waits();
std::span<const LoweredSyntax> all_to_all_v_ops();
std::span<const LoweredSyntax> task_graph_ops();

}  // namespace foretrace
