#include "reports/timeline/origin.h"

#include <algorithm>
#include <filesystem>

#include "scenarios/text/data_directory.h"
#include "scenarios/text/errors.h"

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

const char* data_type_name(DataType type) {
  switch (type) {
    case DataType::Float16:
      return "float16";
    case DataType::BFloat16:
      return "bfloat16";
    case DataType::Float32:
      return "float32";
    case DataType::Float64:
      return "float64";
    case DataType::Int8:
      return "int8";
    case DataType::Int32:
      return "int32";
    case DataType::Int64:
      return "int64";
  }
  return "";
}

/// The member that the reference means when its index is constant; else the family's first.
const Buffer& some_member(const Program& program, const BufferRef& ref) {
  const auto index = ref.index.is_constant() ? ref.index.eval({}) : 0;
  return program.buffers[ref.first.value + static_cast<std::size_t>(index)];
}

std::string copy_variant(const Buffer& src, const Buffer& dst) {
  const bool from_device = src.memory == MemoryKind::Device;
  const bool to_device = dst.memory == MemoryKind::Device;
  if (from_device && to_device) return src.device == dst.device ? "d2d" : "p2p";
  const Buffer& host = from_device ? dst : src;
  const std::string memory = host.memory == MemoryKind::Pinned ? " pinned" : " pageable";
  return (from_device ? "d2h" : to_device ? "h2d" : "h2h") + memory;
}

std::string variant_of(const Program& program, const OpKind& kind) {
  return std::visit(
      [&](const auto& op) -> std::string {
        if constexpr (requires { op.src_offset; }) {
          return copy_variant(some_member(program, op.src), some_member(program, op.dst));
        } else if constexpr (requires { op.type; }) {
          return data_type_name(op.type);
        } else {
          return {};
        }
      },
      kind);
}

}  // namespace

std::string scenario_path(const std::string& file) {
  namespace fs = std::filesystem;
  try {
    std::error_code none;
    const fs::path below = fs::weakly_canonical(file, none)
                               .lexically_relative(fs::weakly_canonical(data_directory(), none));
    if (below.empty() || *below.begin() == "..") return file;
    if (fs::path{file}.is_absolute() || *below.begin() == "scenarios")
      return below.generic_string();
  } catch (const UsageError&) {  // a program that is installed without its data
  }
  return file;
}

Origin origin_of(const Program& program) {
  Origin origin;
  origin.program_hash = program.hash;
  origin.scenario = program.name;
  origin.file = scenario_path(program.file);
  return origin;
}

std::vector<OpRow> op_rows(const Program& program) {
  const std::vector<OpInfo> infos = index_ops(program);
  std::vector<OpRow> rows;
  rows.reserve(infos.size());
  for (const OpInfo& info : infos) {
    OpRow row;
    row.kind = kind_name(info.op->kind);
    row.variant = variant_of(program, info.op->kind);
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

bool has_ops_of(const Timeline& timeline, const std::vector<OpRow>& rows) {
  return std::ranges::equal(timeline.ops, rows, [](const OpRow& a, const OpRow& b) {
    return a.kind == b.kind && a.loops == b.loops;
  });
}

}  // namespace foretrace
