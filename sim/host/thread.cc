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
    : Caller{engine, world, recorder, machine, program, declared, process} {
  process_.users.push_back(this);
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
    if (reports_fault()) return;
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
  if (waits || calls) reports_fault();  // otherwise it notices at its next call
}

/// The current call reports what lost the context, if it can: the thread goes no further then.
bool HostThread::reports_fault() {
  if (process_.fault.op == nullptr || !op_facts(current_.op->kind).reports_errors) return false;
  Reading read{machine_};
  const TimePoint end = engine_.now() + cost::wake_time(read, cost::Wait::Device);
  recorder_.span(lane_, current_, 0, called_, end, 0);
  fail(fmt::format("an illegal memory access of line {} ({}) surfaced here",
                   process_.fault.op->line, kind_name(process_.fault.op->kind)));
  return true;
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
    nccl_.issue();
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

void HostThread::returned() {
  waits_for_stream_ = nullptr;
  connections_.clear();
  if (nccl_.go_on()) return;
  if (std::exchange(retry_, false)) {  // the queue has room again, or a lock is free
    if (reports_fault()) return;
    std::visit([this](const auto& kind) { run(kind); }, current_.op->kind);
    return;
  }
  recorder_.span(lane_, current_, 0, called_, engine_.now(), std::exchange(waiting_detail_, 0));
  next();
}

}  // namespace foretrace::sim
