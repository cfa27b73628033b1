#include "reports/origin.h"

namespace foretrace {
namespace {

std::uint64_t constant_size(const OpKind& kind) {
  return std::visit(
      [](const auto& op) -> std::uint64_t {
        if constexpr (requires { op.size; }) {
          if (op.size.expr.is_constant()) return op.size.eval({}).count;
        }
        return 0;
      },
      kind);
}

}  // namespace

Origin origin_of(const Program& program) {
  Origin origin;
  origin.program_hash = program.hash;
  origin.scenario = program.name;
  origin.file = program.file;
  return origin;
}

std::vector<OpRow> op_rows(const Program& program) {
  const std::vector<OpInfo> infos = index_ops(program);
  std::vector<OpRow> rows;
  rows.reserve(infos.size());
  for (const OpInfo& info : infos) {
    OpRow row;
    row.kind = kind_name(info.op->kind);
    row.label = info.op->label;
    if (const auto* region = std::get_if<Region>(&info.op->kind)) row.label = region->name;
    row.line = info.op->line;
    row.size_bytes = constant_size(info.op->kind);
    for (const OpId loop : info.loops) {
      row.loops.push_back(std::get<Repeat>(infos[loop.value].op->kind).times);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace foretrace
