#include "scenarios/read/op_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "scenarios/program/product_type.h"

namespace foretrace {
namespace {

const Choices<DataType> kTypes{{"float32", DataType::Float32},   {"float16", DataType::Float16},
                               {"bfloat16", DataType::BFloat16}, {"float64", DataType::Float64},
                               {"int8", DataType::Int8},         {"int32", DataType::Int32},
                               {"int64", DataType::Int64}};
const Choices<DataType> kNarrowTypes{{"float8_e4m3", DataType::Float8E4M3},
                                     {"float8_e5m2", DataType::Float8E5M2},
                                     {"float4_e2m1", DataType::Float4E2M1}};
const Choices<RedOp> kRedOps{{"sum", RedOp::Sum},
                             {"prod", RedOp::Prod},
                             {"min", RedOp::Min},
                             {"max", RedOp::Max},
                             {"avg", RedOp::Avg}};

Choices<DataType> product_types() {
  Choices<DataType> all;
  for (const Choices<DataType>* some : {&kTypes, &kNarrowTypes}) {
    for (const auto& one : *some) {
      if (is_product_type(one.second)) all.push_back(one);
    }
  }
  return all;
}

std::string_view memory_name(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::Device:
      return "device";
    case MemoryKind::Pinned:
      return "pinned";
    case MemoryKind::Pageable:
      return "pageable";
    case MemoryKind::FreshPageable:
      return "fresh_pageable";
  }
  return {};
}

std::string_view describe_memories(unsigned memories) {
  switch (memories) {
    case kDeviceMemory:
      return "device memory";
    case kPinnedMemory:
      return "pinned memory";
    case kPageableMemory:
      return "pageable memory";
    case kHostMemory:
      return "host memory";
    case kDeviceMemory | kPinnedMemory:
      return "device or pinned memory";
    default:
      return "memory";
  }
}

}  // namespace

std::string_view type_word(DataType type) {
  const Choices<DataType>& all = is_narrow(type) ? kNarrowTypes : kTypes;
  return std::ranges::find(all, type, &std::pair<std::string, DataType>::second)->first;
}
std::string_view operator_word(RedOp op) {
  return std::ranges::find(kRedOps, op, &std::pair<std::string, RedOp>::second)->first;
}

std::vector<std::string> type_words() {
  std::vector<std::string> words;
  for (const auto& [word, type] : kTypes) words.push_back(word);
  return words;
}

std::vector<std::string> product_type_words() {
  std::vector<std::string> words;
  for (const auto& [word, type] : product_types()) words.push_back(word);
  return words;
}

std::vector<std::string> operator_words() {
  std::vector<std::string> words;
  for (const auto& [word, op] : kRedOps) words.push_back(word);
  return words;
}

const YamlNode& OpFields::where(std::string_view key) const {
  const YamlNode& node = map_.node();
  const auto found =
      std::ranges::find(node.entries, key, [](const YamlEntry& e) { return e.key.text; });
  return found == node.entries.end() ? node : found->value;
}

template <class Tag>
Ref<Tag> OpFields::reference_at(const YamlNode& node, std::string_view what,
                                const Families& families) {
  const auto found = read_reference(reader_, node, what, families);
  if (!found) return {};
  uses_broken_ = uses_broken_ || found->is_broken;
  return {{found->first}, found->index};
}

template <class Tag>
Ref<Tag> OpFields::reference(std::string_view key, std::string_view what,
                             const Families& families) {
  const YamlNode* node = map_.required(key);
  return node == nullptr ? Ref<Tag>{} : reference_at<Tag>(*node, what, families);
}

StreamRef OpFields::stream() {
  if (!map_.has("stream")) {
    static_cast<void>(map_.optional("stream"));
    return {};  // Program::streams begins with the legacy default stream of device 0
  }
  return reference<StreamTag>("stream", "stream", reader_.streams);
}
EventRef OpFields::event(std::string_view key) {
  return reference<EventTag>(key, "event", reader_.events);
}
SignalRef OpFields::signal(std::string_view key) {
  return reference<SignalTag>(key, "signal", reader_.signals);
}
std::optional<SignalRef> OpFields::signal_or_none(std::string_view key) {
  if (map_.has(key)) return signal(key);
  static_cast<void>(map_.optional(key));
  return std::nullopt;
}
GraphRef OpFields::graph() { return reference<GraphTag>("graph", "graph", reader_.graphs); }
CommRef OpFields::comm() {
  return reference<CommTag>("comm", "communicator", reader_.communicators);
}

CommRef OpFields::group() {
  return reference<CommTag>("group", "process group", reader_.group_names);
}
EventRef OpFields::work() {
  const YamlNode* node = map_.required("work");
  if (node == nullptr) return {};
  const std::string name = work_name(*node);
  if (reader_.events.contains(name)) {
    return reference_at<EventTag>(*node, "event", reader_.events);
  }
  if (!is_name(node->text)) {
    reader_.problems.error(*node, fmt::format("no family of events has the name '{}'", name),
                           "a work with an index is declared: events: {w: {count: 2}}");
    return {};
  }
  auto& events = reader_.program.events;
  const auto [found, is_new] =
      reader_.works.emplace(name, EventId{static_cast<std::uint32_t>(events.size())});
  if (is_new) events.push_back({name, 0, false});
  return {found->second, {}};
}

BufferRef OpFields::buffer(std::string_view key, unsigned memories) {
  const YamlNode* node = map_.required(key);
  return node == nullptr ? BufferRef{} : buffer_at(*node, key, memories);
}

BufferRef OpFields::buffer_at(const YamlNode& node, std::string_view key, unsigned memories) {
  auto ref = reference_at<BufferTag>(node, "buffer", reader_.buffers);
  if (is_uneven(ref)) uneven_.push_back(ref);
  const MemoryKind kind = buffer_of(ref).memory;
  if (is_sound() && (memories & (1U << static_cast<unsigned>(kind))) == 0) {
    reader_.problems.error(
        node, fmt::format("'{}' must be {}, and '{}' is {}", key, describe_memories(memories),
                          node.text, memory_name(kind)));
  }
  return ref;
}

DurationExpr OpFields::duration(std::string_view key) {
  const YamlNode* node = map_.required(key);
  return {node == nullptr ? Expr{} : read_expr(reader_, *node, kTime)};
}

Expr OpFields::number(std::string_view key, std::int64_t low, std::int64_t high) {
  const YamlNode* node = map_.required(key);
  return node == nullptr ? Expr{low} : read_expr(reader_, *node, kNumber, low, high);
}

Expr OpFields::number_or(std::string_view key, std::int64_t otherwise, std::int64_t low,
                         std::int64_t high) {
  const YamlNode* node = map_.optional(key);
  return node == nullptr ? Expr{otherwise} : read_expr(reader_, *node, kNumber, low, high);
}

bool OpFields::flag(std::string_view key) {
  const YamlNode* node = map_.optional(key);
  return node != nullptr && read_flag(reader_, *node, key);
}

DataType OpFields::type() {
  takes_type_ = true;
  const YamlNode* node = map_.optional("type");
  return node == nullptr ? DataType::Float32 : read_choice(reader_, *node, "type", kTypes);
}

DataType OpFields::product_type() {
  takes_type_ = true;
  const YamlNode* node = map_.optional("type");
  return node == nullptr ? DataType::Float32 : read_choice(reader_, *node, "type", product_types());
}

std::optional<DataType> OpFields::result_type(DataType operands) {
  const YamlNode* node = map_.optional("result");
  if (node == nullptr) return std::nullopt;
  const DataType chosen = read_choice(reader_, *node, "type", kTypes);
  if (chosen == result_of(operands)) return std::nullopt;
  if (!makes(operands, chosen)) {
    reader_.problems.error(
        where("result"),
        fmt::format("a product of {} is no {}", type_word(operands), type_word(chosen)),
        is_narrow(operands) ? "float8 and float4 make bfloat16, float16 or float32"
                            : fmt::format("it is {}", type_word(result_of(operands))));
  }
  return chosen;
}

DataType OpFields::required_type() {
  takes_type_ = true;
  const YamlNode* node = map_.required("type");
  return node == nullptr ? DataType::Float32 : read_choice(reader_, *node, "type", kTypes);
}

RedOp OpFields::red_op() {
  const YamlNode* node = map_.optional("op");
  return node == nullptr ? RedOp::Sum : read_choice(reader_, *node, "operator", kRedOps);
}

const Buffer& OpFields::buffer_of(const BufferRef& ref) const {
  static const Buffer kNone{};
  const auto& all = reader_.program.buffers;
  if (ref.first.value >= all.size()) return kNone;
  const auto family = reader_.uneven.find(ref.first.value);
  if (family == reader_.uneven.end()) return all[ref.first.value];
  const auto begin = all.begin() + ref.first.value;
  if (ref.index.is_constant()) return *(begin + ref.index.constant());
  return *std::ranges::max_element(begin, begin + family->second, {},
                                   [](const Buffer& buffer) { return buffer.size.count; });
}

bool OpFields::is_uneven(const BufferRef& ref) const {
  return reader_.uneven.contains(ref.first.value) && !ref.index.is_constant();
}

void OpFields::require_fits_uneven(const BufferRef& ref, const Expr& size, const YamlNode& at) {
  constexpr std::uint64_t kMostCompared = std::uint64_t{1} << 20;
  const std::vector<const Expr*> exprs{&ref.index, &size};
  for_each_assignment(reader_.domain, exprs, kMostCompared, [&](Variables v) {
    const Buffer& buffer = reader_.program.buffers[ref.resolve(v).value];
    if (static_cast<std::uint64_t>(size.eval(v)) <= buffer.size.count) return true;
    reader_.problems.error(at,
                           fmt::format("buffer '{}' is too small with {} B for what is needed: "
                                       "it is {} for {}",
                                       buffer.name, buffer.size.count, size.eval(v),
                                       describe_assignment(reader_.domain, used_slots(exprs), v)));
    return false;
  });
}

const Communicator& OpFields::communicator_of(const CommRef& ref) const {
  static const Communicator kNone{{}, CommInit::Rank, {{}}};
  const auto& all = reader_.program.comms;
  if (ref.first.value >= all.size()) return kNone;
  const auto& communicator = reader_.program.communicators[all[ref.first.value].communicator];
  return communicator.members.empty() ? kNone : communicator;
}

ProcessGroup& OpFields::group_of(const CommRef& ref) {
  const auto found = reader_.groups.find(ref.first.value);
  return found == reader_.groups.end() ? no_group_ : found->second;
}

BytesExpr OpFields::size_up_to(Bytes largest, std::string_view of_what) {
  const auto limit = static_cast<std::int64_t>(largest.count);
  const YamlNode* node = map_.optional("size");
  if (node == nullptr && !uneven_.empty() && is_sound()) {
    reader_.problems.error(map_.node(), "the buffers of this family differ in size: say 'size'",
                           "an expression of the index, as the family's own size is");
  }
  if (node == nullptr) return {Expr{limit}};
  const Expr size = read_expr(reader_, *node, kSize, 0);
  const auto reason = is_sound() ? leaves_range(size, 0, limit, reader_.domain) : std::nullopt;
  if (reason) {
    reader_.problems.error(*node, fmt::format("size '{}' is larger than {}, {} B: {}", node->text,
                                              of_what, limit, *reason));
  } else if (is_sound()) {
    for (const BufferRef& ref : uneven_) require_fits_uneven(ref, size, *node);
  }
  return {size};
}

BytesExpr OpFields::typed_size_up_to(Bytes largest, std::string_view of_what, DataType type) {
  const auto element = static_cast<std::int64_t>(size_of(type).count);
  BytesExpr size = size_up_to(largest, of_what);
  const auto rest = combine(Expr::Op::Mod, size.expr, Expr{element});
  const auto reason = rest ? leaves_range(*rest, 0, 0, reader_.domain) : std::nullopt;
  if (reason && is_sound()) report_part_of_element(type);
  return size;
}

void OpFields::report_part_of_element(DataType type) {
  const auto word = std::ranges::find(kTypes, type, [](const auto& one) { return one.second; });
  const bool is_default = takes_type_ && !map_.has("type");
  const bool is_of_type = map_.has("type") && !map_.has("size");
  reader_.problems.error(
      where(is_of_type ? "type" : "size"),
      fmt::format("the size is not a whole number of elements of {} B, which is {}{}",
                  size_of(type).count, word->first, is_default ? ", the default type" : ""),
      is_default ? "name the elements' type: type: float16" : "");
}

void OpFields::require_within(const BufferRef& ref, const Expr& offset, const Expr& size,
                              std::string_view buffer_key) {
  require_capacity(ref, combine(Expr::Op::Add, offset, size), buffer_key);
}

void OpFields::require_capacity(const BufferRef& ref, const std::optional<Expr>& needed,
                                std::string_view buffer_key) {
  if (!is_sound()) return;
  if (needed && is_uneven(ref)) return require_fits_uneven(ref, *needed, where(buffer_key));
  const auto capacity = static_cast<std::int64_t>(buffer_of(ref).size.count);
  const auto reason = needed ? leaves_range(*needed, 0, capacity, reader_.domain)
                             : std::optional<std::string>{"more than 2^63 - 1 B"};
  if (!reason) return;
  reader_.problems.error(where(buffer_key),
                         fmt::format("buffer '{}' is too small with {} B for what is needed: {}",
                                     where(buffer_key).text, capacity, *reason));
  ++errors_before_;  // the next buffer is judged all the same
}

void OpFields::require_multiple(const Expr& value, std::string_view key, std::int64_t of,
                                std::string_view why) {
  constexpr std::uint64_t kMostComputed = std::uint64_t{1} << 20;
  if (!is_sound()) return;
  const std::vector<const Expr*> values{&value};
  for_each_assignment(reader_.domain, values, kMostComputed, [&](Variables v) {
    const std::int64_t is = value.eval(v);
    if (is % of == 0) return true;
    const auto slots = used_slots(values);
    const std::int64_t below = is / of * of;
    reader_.problems.error(
        where(key),
        fmt::format("'{}' is {}{}: {}", key, is,
                    slots.empty() ? "" : " for " + describe_assignment(reader_.domain, slots, v),
                    why),
        below > 0 ? fmt::format("{} or {}", below, below + of) : fmt::format("{}", of));
    return false;
  });
}

void OpFields::require_apart(const BufferRef& ref, std::string_view key, const BufferRef& other,
                             std::string_view other_key, std::string_view why) {
  constexpr std::uint64_t kMostCompared = std::uint64_t{1} << 20;
  if (!is_sound()) return;
  const std::vector<const Expr*> indices{&ref.index, &other.index};
  for_each_assignment(reader_.domain, indices, kMostCompared, [&](Variables v) {
    if (ref.resolve(v) != other.resolve(v)) return true;
    const auto slots = used_slots(indices);
    reader_.problems.error(
        where(key),
        fmt::format("'{}' is the same buffer as '{}'{}: {}", key, other_key,
                    slots.empty() ? "" : " for " + describe_assignment(reader_.domain, slots, v),
                    why),
        fmt::format("give '{}' a buffer of its own", key));
    return false;
  });
}

const std::map<std::string_view, const OpSyntax*>& simple_ops() {
  static const auto kAll = [] {
    std::map<std::string_view, const OpSyntax*> all;
    for (const auto ops :
         {host_ops(), kernel_ops(), copy_ops(), order_ops(), memory_ops(), nccl_ops()}) {
      for (const OpSyntax& op : ops) all.emplace(op.name, &op);
    }
    return all;
  }();
  return kAll;
}

}  // namespace foretrace
