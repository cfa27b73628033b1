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
  std::size_t byte = 0;  ///< where it begins

  std::int64_t number(const std::string& name_, std::int64_t otherwise) const {
    const auto found = numbers.find(name_);
    return found == numbers.end() ? otherwise : found->second;
  }
};

struct ChakraTrace {
  std::string version;
  std::vector<ChakraNode> nodes;
  std::map<std::string, std::size_t> unread;  ///< attributes without a meaning here, how often
};

/// Throws UsageError naming file and byte: at most 2^20 nodes and 2^23 dependencies.
ChakraTrace read_chakra_nodes(const std::string& file, std::string_view bytes);

}  // namespace foretrace::interchange
