#include "scenarios/check/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "scenarios/base/values/range_check.h"
#include "scenarios/program/program_walk.h"

namespace foretrace {
namespace {

// Iterations looked at per operation. Indices repeat after a few, so this is enough in practice;
// what lies beyond is left to the executors.
constexpr std::uint64_t kMostChecked = std::uint64_t{1} << 20;

/// Calls `visit(op, domain)` for every operation, with the variables in force there.
template <class Visit>
void walk(const Program& program, const Visit& visit) {
  for_each_op(program, [&](const HostThread& thread, const Op& op, Around around) {
    VariableDomain domain{thread.processes, {}};
    for (const Op* loop : loops_of(around)) {
      domain.loops.push_back({{}, static_cast<std::int64_t>(std::get<Repeat>(loop->kind).times)});
    }
    visit(op, domain);
  });
}

/// Calls `visit` with the ids that `ref` takes.
template <class Tag, class Visit>
void for_each_target(const Ref<Tag>& ref, const VariableDomain& domain, const Visit& visit) {
  for_each_assignment(domain, {&ref.index}, kMostChecked, [&](Variables v) {
    visit(ref.resolve(v).value);
    return true;
  });
}

void report(Problems& problems, const Op& op, Severity severity, std::string message,
            std::string hint = {}, std::string_view group = {}) {
  problems.add(op.line, op.column, severity, std::move(message), std::move(hint), group);
}

// ---- completing
// -----------------------------------------------------------------------------------

void fill_in_barriers(Program& program) {
  for (std::uint32_t thread = 0; thread < program.threads.size(); ++thread) {
    std::set<std::uint32_t> named;
    for_each_op(program.threads[thread].ops, [&](const Op& op) {
      if (const BarrierId* barrier = op_facts(op.kind).barrier) named.insert(barrier->value);
    });
    for (const std::uint32_t barrier : named) {
      for (const std::uint32_t process : program.threads[thread].processes) {
        program.barriers[barrier].parties.push_back({process, thread});
      }
    }
  }
}

/// CUDA records an event only on streams of the device where it was created.
void place_events(Program& program, Problems& problems) {
  std::vector<const Op*> recorded_by(program.events.size());
  walk(program, [&](const Op& op, const VariableDomain& domain) {
    const OpFacts facts = op_facts(op.kind);
    if (facts.event_recorded == nullptr) return;
    const EventRef& recorded = *facts.event_recorded;
    const StreamRef& stream = *facts.stream;
    for_each_assignment(domain, {&recorded.index, &stream.index}, kMostChecked, [&](Variables v) {
      const std::uint32_t id = recorded.resolve(v).value;
      const std::uint32_t device = program.streams[stream.resolve(v).value].device;
      Event& event = program.events[id];
      const Op* first = recorded_by[id];
      if (first != nullptr && event.device != device) {
        report(problems, op, Severity::Error,
               fmt::format("event '{}' is recorded on device {} here, and on device {} in line {}",
                           event.name, device, event.device, first->line),
               "an event belongs to one device: declare one event for each");
        return false;
      }
      event.device = device;
      if (first == nullptr) recorded_by[id] = &op;
      return true;
    });
  });
}

// ---- checking
// ---------------------------------------------------------------------------------------

void warn_of_events_never_recorded(const Program& program, Problems& problems) {
  std::vector<bool> is_recorded(program.events.size());
  walk(program, [&](const Op& op, const VariableDomain& domain) {
    if (const EventRef* event = op_facts(op.kind).event_recorded) {
      for_each_target(*event, domain, [&](std::uint32_t id) { is_recorded[id] = true; });
    }
  });
  walk(program, [&](const Op& op, const VariableDomain& domain) {
    std::set<std::uint32_t> missing;
    for (const EventRef* event : op_facts(op.kind).events_waited_for) {
      for_each_target(*event, domain, [&](std::uint32_t id) {
        if (!is_recorded[id]) missing.insert(id);
      });
    }
    if (missing.empty()) return;
    report(problems, op, Severity::Warning,
           fmt::format("event '{}' is recorded nowhere in this file",
                       program.events[*missing.begin()].name),
           "an event that was never recorded counts as complete: nothing waits here",
           "events recorded nowhere");
  });
}

void warn_of_signals_never_given(const Program& program, Problems& problems) {
  std::vector<bool> is_given(program.signals.size());
  walk(program, [&](const Op& op, const VariableDomain& domain) {
    if (const SignalRef* signal = op_facts(op.kind).signal_given) {
      for_each_target(*signal, domain, [&](std::uint32_t id) { is_given[id] = true; });
    }
  });
  walk(program, [&](const Op& op, const VariableDomain& domain) {
    const OpFacts facts = op_facts(op.kind);
    if (facts.waits != HostWaits::ForSignal) return;
    std::optional<std::uint32_t> missing;
    for_each_target(*facts.signal_taken, domain, [&](std::uint32_t id) {
      if (!is_given[id] && !missing) missing = id;
    });
    if (!missing) return;
    report(problems, op, Severity::Hang,
           fmt::format("nothing in this file gives the signal '{}': this waits for ever",
                       program.signals[*missing].name));
  });
}

/// A kernel's buffers lie on its stream's device, unless peers may access each other.
void check_kernel_devices(const Program& program, Problems& problems) {
  const bool has_peer_access = any_op(
      program, [](const Op& op) { return std::holds_alternative<EnablePeerAccess>(op.kind); });
  walk(program, [&](const Op& op, const VariableDomain& domain) {
    const OpFacts facts = op_facts(op.kind);
    const StreamRef* stream = facts.kernel_stream();
    if (stream == nullptr) return;
    const bool is_nccl = facts.comm != nullptr;
    if (has_peer_access && !is_nccl) return;
    for (const BufferAccess& access : facts.accesses) {
      const BufferRef* buffer = access.buffer;
      for_each_assignment(domain, {&stream->index, &buffer->index}, kMostChecked, [&](Variables v) {
        const Stream& s = program.streams[stream->resolve(v).value];
        const Buffer& b = program.buffers[buffer->resolve(v).value];
        if (s.device == b.device) return true;
        report(problems, op, Severity::Error,
               fmt::format("stream '{}' is on device {}, and buffer '{}' on device {}", s.name,
                           s.device, b.name, b.device),
               is_nccl ? "" : "copy it first, or enable_peer_access");
        return false;
      });
    }
  });
}

/// A communicator's handle belongs to one device, which must be a rank and have the stream.
void check_comm_devices(const Program& program, Problems& problems) {
  // A program of 16,384 ranks asks each operation of each.
  std::vector<std::set<RankPlace>> members;
  for (const Communicator& one : program.communicators) {
    members.emplace_back(one.members.begin(), one.members.end());
  }
  walk(program, [&](const Op& op, const VariableDomain& domain) {
    const OpFacts facts = op_facts(op.kind);
    const CommRef* comm = facts.comm;
    if (comm == nullptr) return;
    const StreamRef* stream = facts.kernel_stream();
    static const Expr kProcess = *Expr::from_postfix({{Expr::Op::Variable, 0}});
    std::vector<const Expr*> indices{&comm->index, &kProcess};
    if (stream != nullptr) indices.push_back(&stream->index);
    for_each_assignment(domain, indices, kMostChecked, [&](Variables v) {
      const CommHandle& handle = program.comms[comm->resolve(v).value];
      const Communicator& communicator = program.communicators[handle.communicator];
      const RankPlace place{static_cast<std::uint32_t>(v[0]), handle.device};
      if (stream != nullptr) {
        const Stream& s = program.streams[stream->resolve(v).value];
        if (s.device != handle.device) {
          report(problems, op, Severity::Error,
                 fmt::format("stream '{}' is on device {}, and this is the communicator of device "
                             "{}",
                             s.name, s.device, handle.device));
          return false;
        }
      }
      if (!members[handle.communicator].contains(place)) {
        report(problems, op, Severity::Error,
               fmt::format("device {} of process {} is no member of communicator '{}'",
                           place.device, place.process, communicator.name));
        return false;
      }
      return true;
    });
  });
}

/// init: op means that the run itself initialises it.
void check_comm_init(const Program& program, Problems& problems) {
  std::vector<bool> is_initialised(program.communicators.size());
  for (std::size_t i = 0; i < program.communicators.size(); ++i) {
    is_initialised[i] = program.communicators[i].init != CommInit::Op;
  }
  walk(program, [&](const Op& op, const VariableDomain&) {
    if (const auto* init = std::get_if<NcclCommInit>(&op.kind)) {
      is_initialised[program.comms[init->comm.first.value].communicator] = true;
    }
  });
  walk(program, [&](const Op& op, const VariableDomain&) {
    const CommRef* comm = nccl_comm(op.kind);
    if (comm == nullptr) return;
    const std::uint32_t id = program.comms[comm->first.value].communicator;
    if (is_initialised[id]) return;
    report(
        problems, op, Severity::Error,
        fmt::format("communicator '{}' is declared with init: op, and no nccl_comm_init names it",
                    program.communicators[id].name));
  });
}

void check_total_size(const Program& program, Problems& problems) {
  std::uint64_t total = 0;
  for (const Buffer& buffer : program.buffers) {
    if (!__builtin_add_overflow(total, buffer.size.count, &total)) continue;
    problems.add(0, 0, Severity::Error, "all buffers together have more than 2^64 bytes");
    return;
  }
}

}  // namespace

std::string place_of(const Op& op, const Op& other) {
  const bool is_told_by_line = op.line != other.line || op.column == other.column;
  return is_told_by_line ? fmt::format("line {}", op.line)
                         : fmt::format("line {}, column {}", op.line, op.column);
}

void complete_program(Program& program, Problems& problems) {
  fill_in_barriers(program);
  place_events(program, problems);
}

void check_program(const Program& program, Problems& problems) {
  const std::size_t errors_before = problems.error_count();
  check_total_size(program, problems);
  check_kernel_devices(program, problems);
  check_comm_devices(program, problems);
  check_comm_init(program, problems);
  warn_of_events_never_recorded(program, problems);
  const std::size_t warnings_before = problems.count();
  warn_of_signals_never_given(program, problems);
  if (problems.error_count() != errors_before) return;
  check_lifetimes(program, problems);
  if (problems.error_count() == errors_before) check_lifetimes_in_order(program, problems);
  check_pinned(program, problems);
  check_registrations(program, problems);
  check_captures(program, problems);
  check_nccl_order(program, problems);
  const HappensBefore order = happens_before(program, {.mode = OrderMode::Likely});
  if (problems.count() == warnings_before) check_hangs(program, order, problems);
  check_races(program, order, problems);
  check_regions(program, order, problems);
}

}  // namespace foretrace
