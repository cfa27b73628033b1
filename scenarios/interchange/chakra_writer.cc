// Chakra's execution trace as bytes: what chakra_nodes.cc reads.
#include <protozero/pbf_writer.hpp>
#include <protozero/varint.hpp>

#include "scenarios/interchange/chakra_nodes.h"

namespace foretrace::interchange {
namespace {

using protozero::pbf_writer;

// Field numbers of schema/protobuf/et_def.proto.
namespace attribute {
constexpr protozero::pbf_tag_type kName = 1, kInt32 = 7, kInt64 = 9, kUint64 = 13, kBool = 27,
                                  kText = 29;
}
namespace metadata {
constexpr protozero::pbf_tag_type kVersion = 1, kAttribute = 2;
}
namespace node {
constexpr protozero::pbf_tag_type kId = 1, kName = 2, kType = 3, kControl = 4, kData = 5,
                                  kBegin = 6, kDuration = 7, kAttribute = 10;
}

/// Chakra's feeder reads each of its attributes from one field alone.
void add_number(pbf_writer& to, protozero::pbf_tag_type field, const std::string& name,
                std::int64_t value) {
  pbf_writer one{to, field};
  one.add_string(attribute::kName, name);
  if (name.starts_with("is_")) {
    one.add_bool(attribute::kBool, value != 0);
  } else if (name == "tensor_size") {
    one.add_uint64(attribute::kUint64, static_cast<std::uint64_t>(value));
  } else if (name == "comm_src" || name == "comm_dst" || name == "comm_tag") {
    one.add_int32(attribute::kInt32, static_cast<std::int32_t>(value));
  } else {
    one.add_int64(attribute::kInt64, value);
  }
}

template <class Owner>
void add_attributes(pbf_writer& to, protozero::pbf_tag_type field, const Owner& owner) {
  for (const auto& [name, value] : owner.numbers) add_number(to, field, name, value);
  for (const auto& [name, value] : owner.texts) {
    pbf_writer one{to, field};
    one.add_string(attribute::kName, name);
    one.add_string(attribute::kText, value);
  }
}

void append(std::string& out, const std::string& message) {
  protozero::write_varint(std::back_inserter(out), message.size());
  out += message;
}

}  // namespace

std::string chakra_bytes(const ChakraTrace& trace) {
  std::string out, message;
  {
    pbf_writer to{message};
    to.add_string(metadata::kVersion, trace.version);
    add_attributes(to, metadata::kAttribute, trace);
  }
  append(out, message);
  for (const ChakraNode& one : trace.nodes) {
    message.clear();
    pbf_writer to{message};
    to.add_uint64(node::kId, one.id);
    to.add_string(node::kName, one.name);
    to.add_enum(node::kType, static_cast<std::int32_t>(one.type));
    to.add_packed_uint64(node::kControl, one.control.begin(), one.control.end());
    to.add_packed_uint64(node::kData, one.data.begin(), one.data.end());
    to.add_uint64(node::kBegin, one.begin_us);
    to.add_uint64(node::kDuration, one.duration_us);
    add_attributes(to, node::kAttribute, one);
    append(out, message);
  }
  return out;
}

}  // namespace foretrace::interchange
