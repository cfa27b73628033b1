#include "scenarios/interchange/chakra_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "scenarios/base/text/errors.h"

namespace foretrace::interchange {
namespace {

constexpr std::size_t kMostNodes = 1 << 20;
constexpr std::size_t kMostDependencies = 1 << 23;
constexpr std::size_t kMostNames = 1 << 12;
constexpr std::size_t kLongestText = 256, kLongestList = 1 << 22;

/// Attributes that the scenario is made of, or that say nothing that it could use.
constexpr std::array kKnown{
    "is_cpu_op",      "comm_type",   "comm_size",    "comm_src",    "comm_dst",  "comm_tag",
    "num_ops",        "tensor_size", "pg_name",      "root_rank",   "rf_id",     "fw_parent",
    "seq_id",         "scope",       "tid",          "fw_tid",      "op_schema", "stream",
    "kernel_backend", "kernel_file", "involved_dim", "duration_ns", "data_type", "launch"};

enum class Wire : std::uint8_t { Varint, Fixed64, Bytes, Fixed32 = 5 };

/// A field of a message: its number, and what it holds.
struct Field {
  std::uint64_t number = 0;
  Wire wire = Wire::Varint;
  std::uint64_t value = 0;
  std::string_view bytes;
};

class Wires {
 public:
  Wires(const std::string& file, std::string_view bytes, std::size_t begin)
      : file_{file}, bytes_{bytes}, begin_{begin} {}

  bool is_over() const { return at_ >= bytes_.size(); }
  std::size_t byte() const { return begin_ + at_; }

  [[noreturn]] void fail(std::string_view what) const {
    throw UsageError{fmt::format("{}: byte {}: {}", file_, byte(), what)};
  }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (is_over()) fail("ends inside a number");
      const auto c = static_cast<unsigned char>(bytes_[at_++]);
      if (shift == 63 && c > 1) fail("a number of more than 64 bits");
      value |= std::uint64_t{c & 0x7FU} << shift;
      if (c < 0x80) return value;
    }
    fail("a number of more than 64 bits");
  }

  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) {
      fail(fmt::format("{} bytes are announced, {} are there", count, bytes_.size() - at_));
    }
    const std::string_view part = bytes_.substr(at_, count);
    at_ += count;
    return part;
  }

  Field field() {
    Field field;
    const std::uint64_t tag = varint();
    field.number = tag >> 3;
    if (field.number == 0) fail("a field without a number");
    field.wire = static_cast<Wire>(tag & 7);
    switch (field.wire) {
      case Wire::Varint:
        field.value = varint();
        break;
      case Wire::Bytes:
        field.bytes = take(varint());
        break;
      case Wire::Fixed64:
        field.bytes = take(8);
        std::memcpy(&field.value, field.bytes.data(), 8);
        break;
      case Wire::Fixed32: {
        field.bytes = take(4);
        std::uint32_t value = 0;
        std::memcpy(&value, field.bytes.data(), 4);
        field.value = value;
        break;
      }
      default:
        fail(fmt::format("a field of kind {}, which protobuf 3 does not have", tag & 7));
    }
    return field;
  }

 private:
  const std::string& file_;
  std::string_view bytes_;
  std::size_t begin_;
  std::size_t at_ = 0;
};

std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

std::int64_t rounded(double value) {
  constexpr double kMost = 0x1p62;
  return std::isfinite(value) && std::abs(value) < kMost ? std::llround(value) : 0;
}

bool is_known(std::string_view name) {
  return std::ranges::any_of(kKnown, [&](const char* known) { return name == known; });
}

/// AttributeProto: a name, and one of its kinds of values. Lists are passed over. Answers the name.
template <class Owner>
std::string read_attribute(Wires wires, Owner& owner, std::size_t longest) {
  std::string name;
  std::int64_t number = 0;
  std::string text;
  bool is_number = false, is_text = false;
  while (!wires.is_over()) {
    const Field field = wires.field();
    switch (field.number) {
      case 1:
        name = field.bytes;
        break;
      case 3:
        number = rounded(std::bit_cast<double>(field.value));
        is_number = true;
        break;
      case 5:
        number = rounded(std::bit_cast<float>(static_cast<std::uint32_t>(field.value)));
        is_number = true;
        break;
      case 15:
      case 17:
        number = unzigzag(field.value);
        is_number = true;
        break;
      case 7:
      case 9:
      case 11:
      case 13:
      case 19:
      case 21:
      case 23:
      case 25:
      case 27:
        number = static_cast<std::int64_t>(field.value);
        is_number = true;
        break;
      case 29:
        text = field.bytes;
        is_text = true;
        break;
      default:  // doc_string, lists, bytes
        break;
    }
  }
  if (is_number) owner.numbers[name] = number;
  if (is_text) owner.texts[name] = text.substr(0, longest);
  return name;
}

/// IOInfo: its values alone.
std::string read_values(Wires wires) {
  std::string values;
  while (!wires.is_over()) {
    const Field field = wires.field();
    if (field.number == 1) values = field.bytes.substr(0, kLongestList);
  }
  return values;
}

void add_dependencies(const Field& field, Wires packed, std::vector<std::uint64_t>& deps) {
  if (field.wire == Wire::Varint) {
    deps.push_back(field.value);
    return;
  }
  while (!packed.is_over()) deps.push_back(packed.varint());
}

ChakraNode read_node(const std::string& file, std::string_view bytes, std::size_t begin,
                     ChakraTrace& trace) {
  ChakraNode node;
  node.byte = begin;
  Wires wires{file, bytes, begin};
  while (!wires.is_over()) {
    const Field field = wires.field();
    const Wires inside{file, field.bytes, wires.byte() - field.bytes.size()};
    switch (field.number) {
      case 1:
        node.id = field.value;
        break;
      case 2:
        node.name = field.bytes.substr(0, 256);
        break;
      case 3:
        if (field.value >= kNodeTypes) wires.fail(fmt::format("node type {}", field.value));
        node.type = static_cast<NodeType>(field.value);
        break;
      case 4:
        add_dependencies(field, inside, node.control);
        break;
      case 5:
        add_dependencies(field, inside, node.data);
        break;
      case 7:
        node.duration_us = field.value;
        break;
      case 10:
        if (const std::string name = read_attribute(inside, node, kLongestText);
            !is_known(name) && trace.unread.size() < kMostNames) {
          ++trace.unread[name.substr(0, 64)];
        }
        break;
      case 6:
        node.begin_us = field.value;
        break;
      case 8:
        if (node.name == kGroupsNode) node.inputs = read_values(inside);
        break;
      case 9:  // outputs
        break;
      default:
        if (trace.unread.size() < kMostNames) {
          ++trace.unread[fmt::format("field {} of a node", field.number)];
        }
    }
  }
  return node;
}

}  // namespace

ChakraTrace read_chakra_nodes(const std::string& file, std::string_view bytes) {
  ChakraTrace trace;
  Wires wires{file, bytes, 0};
  if (wires.is_over()) wires.fail("the file is empty");
  const std::uint64_t length = wires.varint();
  const std::size_t begin = wires.byte();
  Wires metadata{file, wires.take(length), begin};
  while (!metadata.is_over()) {
    const Field field = metadata.field();
    if (field.number == 1) trace.version = field.bytes.substr(0, 64);
    if (field.number == 2) {
      read_attribute(Wires{file, field.bytes, metadata.byte() - field.bytes.size()}, trace,
                     kLongestList);
    }
  }
  std::size_t dependencies = 0;
  while (!wires.is_over()) {
    const std::uint64_t size = wires.varint();
    const std::size_t at = wires.byte();
    trace.nodes.push_back(read_node(file, wires.take(size), at, trace));
    dependencies += trace.nodes.back().data.size() + trace.nodes.back().control.size();
    if (trace.nodes.size() > kMostNodes) wires.fail(fmt::format("more than {} nodes", kMostNodes));
    if (dependencies > kMostDependencies) {
      wires.fail(fmt::format("more than {} dependencies", kMostDependencies));
    }
  }
  return trace;
}

}  // namespace foretrace::interchange
