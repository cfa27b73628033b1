// In which order the nodes of a trace may be issued.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/interchange/chakra_nodes.h"

namespace foretrace::interchange {

struct ChakraOrder {
  std::vector<std::size_t>
      nodes;                 ///< indices into ChakraTrace::nodes, each behind its dependencies
  std::size_t missing = 0;   ///< dependencies on nodes that are not there
  bool with_control = true;  ///< false: control dependencies form a circle, and do not count
};

/// The least id of those that are ready comes first. Throws UsageError where an id is there twice,
/// and where data dependencies form a circle.
ChakraOrder order_of(const std::string& file, const ChakraTrace& trace);

std::vector<std::uint64_t> deps_of(const ChakraNode& node, bool with_control);

/// Throws UsageError naming file, byte and node.
[[noreturn]] void fail(const std::string& file, const ChakraNode& node, std::string_view what);

}  // namespace foretrace::interchange
