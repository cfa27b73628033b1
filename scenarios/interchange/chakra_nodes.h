// Chakra's execution trace as bytes: messages of protobuf's wire format, each behind its length; a
// GlobalMetadata, then Nodes (schema/protobuf/et_def.proto of mlcommons/chakra).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace foretrace::interchange {

enum class NodeType : std::uint8_t {
  Invalid,
  Metadata,
  MemLoad,
  MemStore,
  Comp,
  CommSend,
  CommRecv,
  CommColl
};
inline constexpr std::uint64_t kNodeTypes = 8;

struct ChakraNode {
  std::uint64_t id = 0;
  std::string name;
  NodeType type = NodeType::Invalid;
  std::vector<std::uint64_t> data, control;  ///< ids of what it depends on
  std::uint64_t duration_us = 0;
  std::map<std::string, std::int64_t> numbers;  ///< attributes that hold one
  std::map<std::string, std::string> texts;
  std::uint64_t begin_us = 0;  ///< in the run that it was recorded in
  std::string inputs;          ///< of the node that lists the process groups: its input values
  std::size_t byte = 0;        ///< where it begins

  std::int64_t number(const std::string& name_, std::int64_t otherwise) const {
    const auto found = numbers.find(name_);
    return found == numbers.end() ? otherwise : found->second;
  }
};

/// What PyTorch's execution traces name the node that lists the process groups, as JSON.
inline constexpr const char* kGroupsNode = "## process_group:init ##";
/// The same list as an attribute of the trace: simulators refuse nodes without work.
inline constexpr const char* kGroups = "process_groups";
/// Of a trace whose nodes of the CPU are one host thread's calls, none inside another.
inline constexpr const char* kHostInLine = "host_in_line";

struct ChakraTrace {
  std::string version;
  std::map<std::string, std::int64_t> numbers;  ///< its own attributes
  std::map<std::string, std::string> texts;
  std::vector<ChakraNode> nodes;
  std::map<std::string, std::size_t> unread;  ///< attributes without a meaning here, how often
};

/// Throws UsageError naming file and byte: at most 2^20 nodes and 2^23 dependencies.
ChakraTrace read_chakra_nodes(const std::string& file, std::string_view bytes);

/// The bytes of such a file. Numbers have the kinds that Chakra's feeder reads them by; what it
/// does not know is int64.
std::string chakra_bytes(const ChakraTrace& trace);

}  // namespace foretrace::interchange
