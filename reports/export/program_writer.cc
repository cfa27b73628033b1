#include "reports/export/program_writer.h"

#include <array>
#include <nlohmann/json.hpp>

#include "reports/timeline/op_work.h"
#include "reports/timeline/origin.h"
#include "reports/timeline/timeline_json.h"
#include "scenarios/program/op_members.h"
#include "scenarios/program/product_type.h"

namespace foretrace {
namespace {

using OrderedJson = nlohmann::ordered_json;

template <class Kind, std::size_t N>
const char* name_in(const std::array<const char*, N>& names, Kind kind) {
  return names.at(static_cast<std::size_t>(kind));
}
constexpr std::array kStreamKinds{"legacy_default", "per_thread_default", "blocking",
                                  "non_blocking"};
constexpr std::array kMemoryKinds{"device", "pinned", "pageable", "fresh_pageable"};
constexpr std::array kContents{"random", "zeros", "normal"};
constexpr std::array kCommInits{"all", "rank", "op"};
constexpr std::array kRedOps{"sum", "prod", "min", "max", "avg"};

OrderedJson word(const Expr::Instruction& code) {
  using Op = Expr::Op;
  switch (code.op) {
    case Op::Constant:
      return code.value;
    case Op::Variable:
      return code.value == 0 ? std::string{"process"} : "i" + std::to_string(code.value);
    case Op::Add:
      return "+";
    case Op::Sub:
      return "-";
    case Op::Mul:
      return "*";
    case Op::Div:
      return "//";
    case Op::Mod:
      return "%";
    case Op::Pow:
      return "**";
    case Op::Neg:
      return "neg";
    case Op::Min:
      return "min";
    case Op::Max:
      return "max";
    case Op::Less:
      return "<";
    case Op::LessEqual:
      return "<=";
    case Op::Equal:
      return "==";
    case Op::NotEqual:
      return "!=";
    case Op::Select:
      return "if";
  }
  return nullptr;
}

OrderedJson json(const Expr& expr) {
  if (expr.is_constant()) return expr.constant();
  OrderedJson code = OrderedJson::array();
  for (const Expr::Instruction& one : expr.code()) code.push_back(word(one));
  return {{"postfix", code}};
}
OrderedJson json(const BytesExpr& bytes) { return json(bytes.expr); }
OrderedJson json(const DurationExpr& duration) { return json(duration.expr); }
OrderedJson json(DataType type) { return data_type_name(type); }
OrderedJson json(Scales scales) { return scales_word(scales); }
OrderedJson json(RedOp op) { return name_in(kRedOps, op); }
OrderedJson json(KernelKind kind) { return kernel_kind_name(kind); }
OrderedJson json(FrameworkWork work) { return framework_work_name(work); }
OrderedJson json(std::uint32_t n) { return n; }
OrderedJson json(std::uint64_t n) { return n; }
OrderedJson json(const std::string& text) { return text; }
template <class Tag>
OrderedJson json(Id<Tag> id) {
  return id.value;
}
template <class Tag>
OrderedJson json(const Ref<Tag>& ref) {
  if (ref.index.is_constant()) return ref.first.value + ref.index.constant();
  return {{"first", ref.first.value}, {"index", json(ref.index)}};
}
template <class T>
OrderedJson json(const std::vector<T>& all) {
  OrderedJson list = OrderedJson::array();
  for (const T& one : all) list.push_back(json(one));
  return list;
}
template <class T>
OrderedJson json(const std::optional<T>& one) {
  return one ? json(*one) : OrderedJson{};
}

struct Members {
  OrderedJson& row;
  template <class T>
  void value(const char* name, const T& member) {
    row[name] = json(member);
  }
  void flag(const char* name, bool set) { row[name] = set; }
  void number(const char* name, const Expr& expr) { row[name] = json(expr); }
};

OrderedJson json(const Block& block) {
  OrderedJson list = OrderedJson::array();
  for (const Op& op : block) {
    OrderedJson row{{"id", op.id.value}, {"kind", kind_name(op.kind)}};
    if (!op.label.empty()) row["label"] = op.label;
    for_each_member(op.kind, Members{row});
    if (const auto* region = std::get_if<Region>(&op.kind)) row["name"] = region->name;
    if (const Block* inner = block_of(op.kind)) row["ops"] = json(*inner);
    list.push_back(std::move(row));
  }
  return list;
}

template <class Objects, class Write>
OrderedJson list_of(const Objects& objects, Write write) {
  OrderedJson list = OrderedJson::array();
  for (const auto& object : objects) list.push_back(write(object));
  return list;
}

void add_objects(OrderedJson& out, const Program& program) {
  const auto named = [](const auto& object) -> OrderedJson { return {{"name", object.name}}; };
  out["streams"] = list_of(program.streams, [](const Stream& s) -> OrderedJson {
    return {{"name", s.name},
            {"device", s.device},
            {"kind", name_in(kStreamKinds, s.kind)},
            {"priority", s.priority}};
  });
  out["events"] = list_of(program.events, [](const Event& e) -> OrderedJson {
    return {{"name", e.name}, {"device", e.device}, {"timing", e.timing}};
  });
  out["buffers"] = list_of(program.buffers, [](const Buffer& b) -> OrderedJson {
    return {{"name", b.name},
            {"memory", name_in(kMemoryKinds, b.memory)},
            {"device", b.device},
            {"size", b.size.count},
            {"contents", name_in(kContents, b.contents)},
            {"allocated_by_program", b.allocated_by_program},
            {"by_nccl", b.by_nccl}};
  });
  out["communicators"] = list_of(program.communicators, [](const Communicator& c) -> OrderedJson {
    return {{"name", c.name},
            {"init", name_in(kCommInits, c.init)},
            {"members", list_of(c.members, [](const RankPlace& rank) -> OrderedJson {
               return {{"process", rank.process}, {"device", rank.device}};
             })}};
  });
  out["comms"] = list_of(program.comms, [](const CommHandle& handle) -> OrderedJson {
    return {{"communicator", handle.communicator}, {"device", handle.device}};
  });
  out["signals"] = list_of(program.signals, named);
  out["graphs"] = list_of(program.graphs, named);
  out["barriers"] = list_of(program.barriers, [](const Barrier& barrier) -> OrderedJson {
    return {{"name", barrier.name},
            {"parties", list_of(barrier.parties, [](const BarrierParty& party) -> OrderedJson {
               return {{"process", party.process}, {"thread", party.thread}};
             })}};
  });
}

}  // namespace

OrderedJson program_json(const Program& program) {
  const Origin origin = origin_of(program);
  OrderedJson out{
      {"schema_version", 1},
      {"kind", "program"},
      {"scenario",
       {{"name", origin.scenario}, {"file", origin.file}, {"program_hash", origin.program_hash}}},
      {"nodes", program.nodes},
      {"processes", program.processes},
      {"devices", program.devices},
      {"warmup", program.warmup},
      {"environment", program.environment}};
  add_objects(out, program);
  out["threads"] = list_of(program.threads, [](const HostThread& thread) -> OrderedJson {
    return {{"name", thread.name}, {"processes", thread.processes}, {"ops", json(thread.ops)}};
  });
  out["ops"] = OrderedJson::array();
  const std::vector<OpRow> rows = op_rows(program);
  for (std::size_t id = 0; id < rows.size(); ++id) out["ops"].push_back(op_row_json(rows[id], id));
  return out;
}

}  // namespace foretrace
