#include "sim/host/thread.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scenarios/program/environment.h"
#include "scenarios/program/op_facts.h"
#include "scenarios/program/program_walk.h"

namespace foretrace::sim {
HostThread::HostThread(Engine& engine, World& world, Recorder& recorder, const Machine& machine,
                       const Program& program, const foretrace::HostThread& declared,
                       std::uint32_t process)
    : engine_{engine},
      world_{world},
      recorder_{recorder},
      machine_{machine},
      program_{program},
      declared_{declared},
      process_{world.process(process)},
      lane_{recorder.add_lane({LaneKind::HostThread, node_of_process(program, process), process,
                               kNoDevice, declared.name})},
      slot_{process_.in_call_until.size()} {
  launches_block_ = blocks_launches(program.environment);
  process_.users.push_back(this);
  process_.in_call_until.emplace_back();
  made_.resize(kParamCount);
  variables_.push_back(process);
  frames_.push_back({&declared.ops, 0, nullptr, 1, 0, {}});
}

void HostThread::fire(std::uint64_t what) {
  switch (static_cast<Event>(what)) {
    case kNext:
      next();
      return;
    case kReturn:
      returned();
      return;
    case kWake:
      wake();
      return;
  }
}

/// Runs on until a call takes time. Blocks take none.
void HostThread::next() {
  while (!frames_.empty()) {
    Frame& frame = frames_.back();
    if (frame.position == frame.block->size()) {
      if (!leave()) return;
      continue;
    }
    const Op& op = (*frame.block)[frame.position++];
    current_ = {&op, frame.instance};
    called_ = engine_.now();
    if (process_.fault.op != nullptr && op_facts(op.kind).reports_errors) {
      context_lost();
      return;
    }
    const std::size_t depth = frames_.size();
    std::visit([this](const auto& kind) { run(kind); }, op.kind);
    if (frames_.size() != depth) continue;  // entered a block
    if (!std::exchange(passed_, false)) return;
  }
}

void HostThread::fail(std::string what) {
  failure_ = std::move(what);
  frames_.clear();
}

/// Every call of the process that is waiting, or comes later, reports the error.
void HostThread::context_lost() {
  if (finished() || !failure_.empty()) return;
  const bool waits = pending_wakes_ > 0 && waits_for_stream_ != nullptr;
  const bool calls = called_ == engine_.now() && op_facts(current_.op->kind).reports_errors;
  if (!waits && !calls) return;  // notices at its next call
  Reading read{machine_};
  const TimePoint end = engine_.now() + cost::wake_time(read, cost::Wait::Device);
  recorder_.span(lane_, current_, 0, called_, end, 0);
  fail(fmt::format("an illegal memory access of line {} ({}) surfaced here",
                   process_.fault.op->line, kind_name(process_.fault.op->kind)));
}

/// At the end of a block: around again, or out. False when leaving takes time (a group's launch).
bool HostThread::leave() {
  Frame& frame = frames_.back();
  if (frame.left > 1) {
    --frame.left;
    ++frame.instance;
    ++variables_.back();
    frame.position = 0;
    return true;
  }
  const Frame done = frame;
  frames_.pop_back();
  if (done.owner == nullptr) return true;
  if (std::holds_alternative<Repeat>(done.owner->kind)) {
    variables_.pop_back();
  } else if (std::holds_alternative<Region>(done.owner->kind)) {
    recorder_.region({done.owner, done.instance}, process_.index, done.began, engine_.now());
  } else if (group_depth_ > 0) {
    if (--group_depth_ > 0) return true;
    current_ = {done.owner, done.instance};
    called_ = engine_.now();
    nccl_issue();
    return false;
  } else if (capture_ != nullptr) {
    current_ = {done.owner, done.instance};
    called_ = engine_.now();
    end_capture();
    return false;
  }
  return true;
}

void HostThread::run(const Repeat& op) {
  if (op.times == 0 || is_void(op.ops, false)) {
    passed_ = true;
    return;
  }
  frames_.push_back({&op.ops, 0, current_.op, op.times, current_.instance * op.times, {}});
  variables_.push_back(0);
}

void HostThread::run(const Region& op) {
  recorder_.begin_region(current_, process_.index);
  frames_.push_back({&op.ops, 0, current_.op, 1, current_.instance, engine_.now()});
}

void HostThread::run(const NcclGroup& op) {
  ++group_depth_;
  frames_.push_back({&op.ops, 0, current_.op, 1, current_.instance, {}});
}

void HostThread::take(Priced call) {
  const TimePoint end = engine_.now() + call.time;
  recorder_.span(lane_, current_, 0, called_, end, call.detail);
  engine_.queue().at(end, *this, kNext);
}

void HostThread::block(Priced call, Duration wake_time, std::string waits_for) {
  if (pending_wakes_ == 0) {
    take(call);
    return;
  }
  earliest_return_ = engine_.now() + call.time;
  wake_time_ = wake_time;
  waits_for_ = std::move(waits_for);
}

void HostThread::wake() {
  if (--pending_wakes_ > 0) return;
  TimePoint end = std::max(earliest_return_, engine_.now() + wake_time_);
  for (const Connection* connection : connections_) end = std::max(end, connection->ready);
  engine_.queue().at(end, *this, kReturn);
}

void HostThread::returned() {
  waits_for_stream_ = nullptr;
  connections_.clear();
  if (nccl_stage_ != NcclStage::None) {
    nccl_go_on();
    return;
  }
  if (std::exchange(retry_, false)) {  // the queue has room again
    std::visit([this](const auto& kind) { run(kind); }, current_.op->kind);
    return;
  }
  recorder_.span(lane_, current_, 0, called_, engine_.now(), std::exchange(waiting_detail_, 0));
  next();
}

void HostThread::wait_for_stream(StreamQueue& stream) {
  stream.seen_to(stream.issued());
  if (stream.pending() == 0) return;
  stream.wait_for_count(stream.issued(), *this);
  ++pending_wakes_;
  waits_for_stream_ = &stream;
}

/// A stream holds so many entries; the call that would add another waits for room.
bool HostThread::queue_full(StreamQueue& stream) {
  const std::uint64_t depth = machine_.count(Param::LaunchQueueDepth);
  if (capture_ != nullptr || stream.pending() < depth) return false;
  wait_for_entry(stream, stream.issued() - depth + 1, "room in the full launch queue");
  return true;
}

/// Then the call is made again.
void HostThread::wait_for_entry(StreamQueue& stream, std::uint64_t count, std::string_view what) {
  stream.wait_for_count(count, *this);
  pending_wakes_ = 1;
  waits_for_stream_ = &stream;
  retry_ = true;
  block({}, Duration{0}, fmt::format("{} of stream {}", what, stream.declared().name));
}

cost::Call HostThread::begin_call(Param param) {
  cost::Call call{.param = param};
  if (capture_ != nullptr) {
    call.is_captured = true;
    // cuBLAS looks for its kernel all the same.
    if (param == Param::HostLaunchGemm) made_[static_cast<std::size_t>(param)] = true;
    return call;
  }
  // What torch.distributed does inside a call is not called from Python; the call itself is.
  call.is_inner = current_.op->lowered && param != Param::NcclHostCollective;
  const auto kind = static_cast<std::size_t>(param);
  call.is_first = !made_[kind];
  made_[kind] = true;
  // PyTorch's calls were measured in two processes at once.
  if (!call.is_inner && !machine_.is_replaced(param)) call.processes = program_.processes - 1;
  auto& until = process_.in_call_until;
  if (until.size() < 2 || !machine_.has(Param::HostContention)) return call;
  const TimePoint now = engine_.now();
  for (std::size_t i = 0; i < until.size(); ++i) {
    call.others += i != slot_ && until[i].until > now && until[i].device == device_;
  }
  until[slot_] = {now + world_.costs().of(call), device_};
  return call;
}

cost::Call HostThread::begin_call(Param param, std::uint32_t device) {
  const bool switches = switches_to(device);
  cost::Call call = begin_call(param);
  call.switches_device = switches;
  return call;
}

bool HostThread::switches_to(std::uint32_t device) {
  return std::exchange(device_, device) != device;
}

StreamQueue& HostThread::stream(const StreamRef& ref) { return stream_at(ref, variables_); }

StreamQueue& HostThread::stream_at(const StreamRef& ref, Variables variables) {
  const StreamId id = ref.resolve(variables);
  if (program_.streams[id.value].kind == StreamKind::PerThreadDefault) {
    return world_.per_thread_stream(process_, lane_, id);
  }
  return *process_.streams[id.value];
}

const Buffer& HostThread::buffer(const BufferRef& ref) const {
  return program_.buffers[ref.resolve(variables_).value];
}

}  // namespace foretrace::sim
