#include "hw/execute/host_thread.h"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>

#include "hw/run/program_facts.h"
#include "hw/trace/activity_tracer.h"
#include "hw/trace/clock.h"
#include "scenarios/program/program_walk.h"

namespace foretrace::hw {

HostThreadRunner::HostThreadRunner(Context context, const Block& ops)
    : context_{std::move(context)}, ops_{ops} {}

void HostThreadRunner::start_pass() {
  regions_.clear();  // keeps its capacity: no allocation in later passes
  context_.variables.resize(1);
  context_.group_depth = 0;
  context_.capturing = nullptr;
  context_.host_functions.reset();
  context_.state.open_group = ThreadState::kNoGroup;
  groups_.clear();
}

void HostThreadRunner::run_pass() {
  start_pass();
  traced_ = false;
  run_block(ops_, 0);
}

void HostThreadRunner::run_traced_pass() {
  start_pass();
  trace_.calls.clear();
  // No reallocation within the pass; a million calls are 40 MB.
  constexpr std::uint64_t kMostReserved = 4'000'000;
  trace_.calls.reserve(std::min(count_executions(ops_), kMostReserved));
  trace_.grouped.clear();
  traced_ = true;
  run_block(ops_, 0);
  traced_ = false;
}

void HostThreadRunner::run_block(const Block& block, std::uint64_t instance) {
  for (const Op& op : block) run(op, instance);
}

template <class Kind>
void HostThreadRunner::run_one(const Op& op, const Kind& kind, std::uint64_t instance) {
  context_.state.begin(op.id, instance);
  if (!traced_) {
    execute(kind, context_);
  } else {
    const Execution execution{op.id.value, instance};
    if (context_.group_depth > 0) note_grouped_call(execution, op.kind);
    const OperationMark mark{execution};
    const std::int64_t begin_ns = now_ns();
    execute(kind, context_);
    // Inside a group an NCCL call is only noted: the group's end is the call that takes time.
    constexpr bool kIsNccl = requires { kind.comm; };
    if (!kIsNccl || context_.group_depth == 0) {
      trace_.calls.push_back({execution, begin_ns, now_ns()});
    }
  }
  context_.state.end();
  if constexpr (std::is_same_v<Kind, EventElapsedTime>) {
    if (is_timed(op)) regions_.push_back({{op.id.value, instance}, context_.elapsed_ns});
  }
}

void HostThreadRunner::run(const Op& op, std::uint64_t instance) {
  std::visit(Overloaded{
                 [&](const Repeat& kind) { repeat(kind, instance); },
                 [&](const Region& kind) { time_region(op, kind, instance); },
                 [&](const NcclGroup& kind) { run_group(op, kind, instance); },
                 [&](const GraphCapture& kind) { capture_graph(op, kind, instance); },
                 [&](const auto& kind) { run_one(op, kind, instance); },
             },
             op.kind);
}

void HostThreadRunner::repeat(const Repeat& repeat, std::uint64_t instance) {
  if (is_void(repeat.ops, false)) return;
  context_.variables.push_back(0);
  for (std::uint64_t i = 0; i < repeat.times; ++i) {
    context_.variables.back() = static_cast<std::int64_t>(i);
    run_block(repeat.ops, instance * repeat.times + i);
  }
  context_.variables.pop_back();
}

void HostThreadRunner::time_region(const Op& op, const Region& region, std::uint64_t instance) {
  const std::int64_t begin_ns = now_ns();
  run_block(region.ops, instance);
  regions_.push_back({{op.id.value, instance}, now_ns() - begin_ns});
}

void HostThreadRunner::run_group(const Op& op, const NcclGroup& group, std::uint64_t instance) {
  const Execution execution{op.id.value, instance};
  std::optional<OperationMark> mark;
  if (traced_) {
    groups_.push_back(execution);
    mark.emplace(execution);
  }
  const std::int64_t begin_ns = now_ns();
  context_.state.begin(op.id, instance);
  const bool outermost = context_.group_depth == 0;
  if (outermost) context_.state.open_group = op.id.value;
  begin_group(context_);
  run_block(group.ops, instance);
  context_.state.begin(op.id, instance);
  if (outermost) context_.state.open_group = ThreadState::kNoGroup;
  end_group(context_);
  context_.state.end();
  if (traced_) {
    trace_.calls.push_back({execution, begin_ns, now_ns()});
    groups_.pop_back();
  }
}

void HostThreadRunner::capture_graph(const Op& op, const GraphCapture& capture,
                                     std::uint64_t instance) {
  const Execution execution{op.id.value, instance};
  std::optional<OperationMark> mark;
  if (traced_) mark.emplace(execution);
  const std::int64_t begin_ns = now_ns();
  context_.state.begin(op.id, instance);
  begin_capture(capture, context_);
  run_block(capture.ops, instance);
  context_.state.begin(op.id, instance);
  end_capture(capture, context_);
  const std::int64_t end_ns = now_ns();
  upload_graph(capture, context_);
  context_.state.end();
  if (traced_) trace_.calls.push_back({execution, begin_ns, end_ns});
}

void HostThreadRunner::note_grouped_call(Execution execution, const OpKind& kind) {
  const auto stream = stream_of(context_.program, kind, context_.variables);
  if (!stream || groups_.empty()) return;
  const Stream& used = context_.objects.stream(*stream);
  trace_.grouped.push_back({groups_.front(), execution, used.ordinal(), used.handle()});
}

}  // namespace foretrace::hw
