#include <algorithm>
#include <optional>

#include "reports/timeline/origin.h"
#include "scenarios/program/op_facts.h"
#include "scenarios/program/program_walk.h"

namespace foretrace {
namespace {

/// Sweeps are shorter; other loops need no list of sizes.
constexpr std::uint64_t kMostSizes = 1024;

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

/// Null for what has no size of its own.
const Expr* size_of(const OpKind& kind) {
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

/// What a record or a wait is about: "ready on compute" where a stream is told to record or to
/// wait, "ready" where the host waits for the event, "compute" where it waits for the stream.
std::string waited_name(const Program& program, const OpKind& kind) {
  const OpFacts facts = op_facts(kind);
  std::string event;
  if (facts.event_recorded != nullptr) event = member_name(*facts.event_recorded, program.events);
  if (facts.events_waited_for.size() == 1) {
    event = member_name(*facts.events_waited_for.front(), program.events);
  }
  const bool waits_for_stream = facts.waits == HostWaits::ForStream && size_of(kind) == nullptr;
  if (facts.stream == nullptr || (event.empty() && !waits_for_stream)) return event;
  const std::string stream = member_name(*facts.stream, program.streams);
  return event.empty() ? stream : event + " on " + stream;
}

/// What is to be known of an operation that moves bytes or multiplies.
void set_work(OpRow& row, const Program& program, const OpKind& kind) {
  row.variant = variant_of(program, kind);
  if (const Expr* size = size_of(kind)) set_sizes(row, *size);
  if (const auto* gemm = std::get_if<Gemm>(&kind)) {
    for (const Expr* side : {&gemm->m, &gemm->n, &gemm->k}) {
      if (side->is_constant()) row.shape.push_back(static_cast<std::uint64_t>(side->constant()));
    }
    if (row.shape.size() != 3) row.shape.clear();
  }
  const CommRef* comm = op_facts(kind).work == StreamWork::Nccl ? nccl_comm(kind) : nullptr;
  if (comm != nullptr) {
    const CommHandle& handle = program.comms[comm->first.value];
    row.ranks =
        static_cast<std::uint32_t>(program.communicators[handle.communicator].members.size());
  }
}

/// The operations inside a region that put work on a stream; none when one of them is of no size.
struct Inside {
  std::vector<const Op*> ops;
  bool is_grouped = true;            ///< all of them stand in NCCL groups
  std::vector<std::uint64_t> times;  ///< that each runs in one run of the region
};

Inside inside(const Region& region) {
  Inside found;
  for_each_op(region.ops, [&](const Op& op, Around around) {
    const StreamWork work = op_facts(op.kind).work;
    const bool takes_no_time =
        work == StreamWork::None || work == StreamWork::Record || work == StreamWork::Wait;
    if (takes_no_time || block_of(op.kind) != nullptr) return;
    found.ops.push_back(&op);
    found.is_grouped = found.is_grouped && is_inside<NcclGroup>(around);
    found.times.push_back(executions(around));
  });
  return found;
}

/// Whether they are the parts of one transfer: the ranks of one thread's devices, or what a rank
/// sends and receives at once.
bool are_one_transfer(const Inside& found) {
  const OpKind& first = found.ops.front()->kind;
  if (!found.is_grouped || std::holds_alternative<NcclRecv>(first)) return false;
  std::vector<const CommRef*> senders;
  for (const Op* op : found.ops) {
    const CommRef* comm = nccl_comm(op->kind);
    const bool receives = std::holds_alternative<NcclRecv>(op->kind);
    if (comm == nullptr || *size_of(op->kind) != *size_of(first)) return false;
    if (receives) continue;
    const bool is_second =
        std::ranges::any_of(senders, [&](const CommRef* other) { return *other == *comm; });
    if (is_second || kind_name(op->kind) != kind_name(first)) return false;
    senders.push_back(comm);
  }
  return true;
}

void set_work_of_region(OpRow& row, const Program& program, const Region& region) {
  const Inside found = inside(region);
  if (found.ops.empty() || (found.ops.size() > 1 && !are_one_transfer(found))) return;
  const bool is_one_each =
      std::ranges::all_of(found.times, [&](std::uint64_t times) { return times == region.per; });
  const OpKind& kind = found.ops.front()->kind;
  const bool is_product = std::holds_alternative<Gemm>(kind);
  if (!is_one_each || (size_of(kind) == nullptr && !is_product)) return;
  row.work = kind_name(kind);
  set_work(row, program, kind);
}

}  // namespace

std::vector<OpRow> op_rows(const Program& program) {
  const std::vector<OpInfo> infos = index_ops(program);
  std::vector<OpRow> rows;
  rows.reserve(infos.size());
  for (const OpInfo& info : infos) {
    OpRow row;
    row.kind = kind_name(info.op->kind);
    row.label = info.op->label;
    row.line = info.op->line;
    for (const OpId loop : info.loops) {
      row.loops.push_back(std::get<Repeat>(infos[loop.value].op->kind).times);
    }
    if (const auto* region = std::get_if<Region>(&info.op->kind)) {
      row.label = region->name;
      for_each_op(region->ops, [&](const Op&) { ++row.inside; });
      set_work_of_region(row, program, *region);
    } else {
      set_work(row, program, info.op->kind);
      if (row.variant.empty()) row.variant = waited_name(program, info.op->kind);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace foretrace
