#include <algorithm>

#include "reports/timeline/op_work.h"
#include "reports/timeline/origin.h"
#include "scenarios/program/op_facts.h"
#include "scenarios/program/program_walk.h"

namespace foretrace {
namespace {

/// The operations inside a region that put work on a stream; none when one of them is of no size.
struct Inside {
  std::vector<const Op*> ops;
  bool is_grouped = true;            ///< all of them stand in NCCL groups
  std::vector<std::uint64_t> times;  ///< that each runs in one run of the region
};

Inside inside(const Block& block) {
  Inside found;
  for_each_op(block, [&](const Op& op, Around around) {
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
    if (comm == nullptr || *work_size(op->kind) != *work_size(first)) return false;
    if (receives) continue;
    const bool is_second =
        std::ranges::any_of(senders, [&](const CommRef* other) { return *other == *comm; });
    if (is_second || kind_name(op->kind) != kind_name(first)) return false;
    senders.push_back(comm);
  }
  return true;
}

/// The capture that a launch of its graph runs, while the loops around it have the same turn.
struct Captured {
  const GraphCapture* capture{};
  std::vector<OpId> loops;
};
using Captures = std::vector<Captured>;

/// A launch alone is what was captured for it in the same turn of the loops.
Inside launched(Inside found, const Captures& captures, const std::vector<OpId>& loops) {
  if (found.ops.size() != 1) return found;
  const auto* launch = std::get_if<GraphLaunch>(&found.ops.front()->kind);
  if (launch == nullptr) return found;
  const auto at = std::find_if(captures.rbegin(), captures.rend(), [&](const Captured& one) {
    return one.capture->graph == launch->graph;
  });
  if (at == captures.rend() || at->loops != loops) return found;
  const std::uint64_t launches = found.times.front();
  found = inside(at->capture->ops);
  for (std::uint64_t& times : found.times) times = times_capped(times, launches);
  return found;
}

void set_work_of_region(OpRow& row, const Program& program, const Region& region,
                        const Inside& found) {
  if (found.ops.empty() || (found.ops.size() > 1 && !are_one_transfer(found))) return;
  const bool is_one_each =
      std::ranges::all_of(found.times, [&](std::uint64_t times) { return times == region.per; });
  const OpKind& kind = found.ops.front()->kind;
  const bool is_product = std::holds_alternative<Gemm>(kind);
  if (!is_one_each || (work_size(kind) == nullptr && !is_product)) return;
  row.work = kind_name(kind);
  set_work(row, program, kind);
}

}  // namespace

std::vector<OpRow> op_rows(const Program& program) {
  const std::vector<OpInfo> infos = index_ops(program);
  std::vector<OpRow> rows;
  rows.reserve(infos.size());
  Captures captures;
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
      set_work_of_region(row, program, *region,
                         launched(inside(region->ops), captures, info.loops));
    } else {
      set_work(row, program, info.op->kind);
      if (row.variant.empty()) row.variant = waited_name(program, info.op->kind);
      if (const auto* capture = std::get_if<GraphCapture>(&info.op->kind)) {
        captures.push_back({capture, info.loops});
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace foretrace
