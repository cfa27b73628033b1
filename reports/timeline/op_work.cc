#include "reports/timeline/op_work.h"

#include <algorithm>

#include "scenarios/program/op_facts.h"
#include "scenarios/program/program_walk.h"

namespace foretrace {
namespace {

/// Sweeps are shorter; other loops need no list of sizes.
constexpr std::uint64_t kMostSizes = 1024;

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
        } else if constexpr (requires { op.captured; }) {
          return op.captured.name;
        } else if constexpr (requires { op.type; }) {
          return data_type_name(op.type);
        } else {
          return {};
        }
      },
      kind);
}

/// Whether it is known from the outermost `loops` indices: not of the process, nor of inner loops.
bool depends_on_loops_only(const Expr& expr, std::size_t loops) {
  return std::ranges::all_of(expr.code(), [&](const Expr::Instruction& one) {
    return one.op != Expr::Op::Variable ||
           (one.value >= 1 && one.value <= static_cast<std::int64_t>(loops));
  });
}

/// The size in every instance, or the one size that all have.
void set_sizes(OpRow& row, const Expr& size) {
  if (size.is_constant()) {
    row.size_bytes = static_cast<std::uint64_t>(size.constant());
    return;
  }
  std::uint64_t instances = 1;
  for (const std::uint64_t times : row.loops) instances = times_capped(instances, times);
  if (instances > kMostSizes || !depends_on_loops_only(size, row.loops.size())) return;
  for (std::uint64_t instance = 0; instance < instances; ++instance) {
    std::vector<std::int64_t> variables = loop_indices(instance, row.loops);
    variables.insert(variables.begin(), 0);
    row.sizes.push_back(static_cast<std::uint64_t>(size.eval(variables)));
  }
}

/// A member's name, where every execution has the same; else its family's.
template <class Ref, class All>
std::string member_name(const Ref& ref, const All& all) {
  const std::string& first = all[ref.first.value].name;
  if (!ref.index.is_constant()) return first.substr(0, first.find('('));
  return all[ref.first.value + static_cast<std::size_t>(ref.index.constant())].name;
}

}  // namespace

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
    case DataType::Float8E4M3:
      return "float8_e4m3";
    case DataType::Float8E5M2:
      return "float8_e5m2";
    case DataType::Float4E2M1:
      return "float4_e2m1";
  }
  return "";
}

const Expr* work_size(const OpKind& kind) {
  return std::visit(
      [](const auto& op) -> const Expr* {
        if constexpr (requires { op.size; }) {
          return &op.size.expr;
        } else {
          return nullptr;
        }
      },
      kind);
}

std::string waited_name(const Program& program, const OpKind& kind) {
  const OpFacts facts = op_facts(kind);
  std::string event;
  if (facts.event_recorded != nullptr) event = member_name(*facts.event_recorded, program.events);
  if (facts.events_waited_for.size() == 1) {
    event = member_name(*facts.events_waited_for.front(), program.events);
  }
  const bool waits_for_stream = facts.waits == HostWaits::ForStream && work_size(kind) == nullptr;
  if (facts.stream == nullptr || (event.empty() && !waits_for_stream)) return event;
  const std::string stream = member_name(*facts.stream, program.streams);
  return event.empty() ? stream : event + " on " + stream;
}

void set_work(OpRow& row, const Program& program, const OpKind& kind) {
  row.variant = variant_of(program, kind);
  if (const Expr* size = work_size(kind)) set_sizes(row, *size);
  if (const auto* gemm = std::get_if<Gemm>(&kind)) {
    for (const Expr* side : {&gemm->m, &gemm->n, &gemm->k}) {
      if (side->is_constant()) row.shape.push_back(static_cast<std::uint64_t>(side->constant()));
    }
    if (row.shape.size() != 3 || !gemm->batch.is_constant()) {
      row.shape.clear();
    } else if (gemm->batch.constant() != 1) {
      row.shape.push_back(static_cast<std::uint64_t>(gemm->batch.constant()));
    }
  }
  const CommRef* comm = op_facts(kind).work == StreamWork::Nccl ? nccl_comm(kind) : nullptr;
  if (comm != nullptr) {
    const CommHandle& handle = program.comms[comm->first.value];
    row.ranks =
        static_cast<std::uint32_t>(program.communicators[handle.communicator].members.size());
  }
}

}  // namespace foretrace
