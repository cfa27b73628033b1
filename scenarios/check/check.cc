#include "scenarios/check/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "scenarios/program/op_refs.h"
#include "scenarios/values/range_check.h"

namespace foretrace {
namespace {

// Iterations looked at per operation. Indices repeat after a few, so this is enough in practice;
// what lies beyond is left to the executors.
constexpr std::uint64_t kMostAssignments = std::uint64_t{1} << 20;

/// Calls `visit(op, domain)` for every operation, with the variables in force there.
template <class Visit>
void walk(const Block& block, VariableDomain& domain, const Visit& visit) {
  for (const Op& op : block) {
    visit(op, domain);
    const Block* inner = block_of(op.kind);
    if (inner == nullptr) continue;
    const auto* repeat = std::get_if<Repeat>(&op.kind);
    if (repeat != nullptr) domain.loops.push_back({{}, static_cast<std::int64_t>(repeat->times)});
    walk(*inner, domain, visit);
    if (repeat != nullptr) domain.loops.pop_back();
  }
}

template <class Visit>
void walk(const Program& program, const Visit& visit) {
  for (const HostThread& thread : program.threads) {
    VariableDomain domain{thread.processes, {}};
    walk(thread.ops, domain, visit);
  }
}

/// Calls `visit` with the ids that `ref` takes.
template <class Tag, class Visit>
void for_each_target(const Ref<Tag>& ref, const VariableDomain& domain, const Visit& visit) {
  for_each_assignment(domain, {&ref.index}, kMostAssignments, [&](Variables v) {
    visit(ref.resolve(v).value);
    return true;
  });
}

void report(Problems& problems, const Op& op, Severity severity, std::string message,
            std::string hint = {}) {
  problems.add(op.line, op.column, severity, std::move(message), std::move(hint));
}

// ---- completing
// -----------------------------------------------------------------------------------

void fill_in_barriers(Program& program) {
  for (std::uint32_t thread = 0; thread < program.threads.size(); ++thread) {
    std::set<std::uint32_t> named;
    VariableDomain domain{program.threads[thread].processes, {}};
    walk(program.threads[thread].ops, domain, [&](const Op& op, const VariableDomain&) {
      if (const auto* arrival = std::get_if<HostBarrier>(&op.kind)) {
        named.insert(arrival->barrier.value);
      }
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
    const auto* record = std::get_if<EventRecord>(&op.kind);
    if (record == nullptr) return;
    for_each_assignment(
        domain, {&record->event.index, &record->stream.index}, kMostAssignments, [&](Variables v) {
          const std::uint32_t id = record->event.resolve(v).value;
          const std::uint32_t device = program.streams[record->stream.resolve(v).value].device;
          Event& event = program.events[id];
          const Op* first = recorded_by[id];
          if (first != nullptr && event.device != device) {
            report(
                problems, op, Severity::Error,
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
    if (const auto* record = std::get_if<EventRecord>(&op.kind)) {
      for_each_target(record->event, domain, [&](std::uint32_t id) { is_recorded[id] = true; });
    }
  });
  walk(program, [&](const Op& op, const VariableDomain& domain) {
    std::set<std::uint32_t> missing;
    for (const EventRef* event : events_waited_for(op.kind)) {
      for_each_target(*event, domain, [&](std::uint32_t id) {
        if (!is_recorded[id]) missing.insert(id);
      });
    }
    if (missing.empty()) return;
    report(problems, op, Severity::Warning,
           fmt::format("event '{}' is recorded nowhere in this file",
                       program.events[*missing.begin()].name),
           "an event that was never recorded counts as complete: nothing waits here");
  });
}

void warn_of_signals_never_given(const Program& program, Problems& problems) {
  std::vector<bool> is_given(program.signals.size());
  walk(program, [&](const Op& op, const VariableDomain& domain) {
    if (const auto* signal = std::get_if<HostSignal>(&op.kind)) {
      for_each_target(signal->signal, domain, [&](std::uint32_t id) { is_given[id] = true; });
    } else if (const auto* function = std::get_if<HostFunc>(&op.kind)) {
      if (!function->signal) return;
      for_each_target(*function->signal, domain, [&](std::uint32_t id) { is_given[id] = true; });
    }
  });
  walk(program, [&](const Op& op, const VariableDomain& domain) {
    const auto* wait = std::get_if<HostWait>(&op.kind);
    if (wait == nullptr) return;
    std::optional<std::uint32_t> missing;
    for_each_target(wait->signal, domain, [&](std::uint32_t id) {
      if (!is_given[id] && !missing) missing = id;
    });
    if (!missing) return;
    report(problems, op, Severity::Warning,
           fmt::format("nothing in this file gives the signal '{}': this waits for ever",
                       program.signals[*missing].name));
  });
}

/// A kernel's buffers lie on its stream's device, unless peers may access each other.
void check_kernel_devices(const Program& program, Problems& problems) {
  bool has_peer_access = false;
  walk(program, [&](const Op& op, const VariableDomain&) {
    has_peer_access = has_peer_access || std::holds_alternative<EnablePeerAccess>(op.kind);
  });
  walk(program, [&](const Op& op, const VariableDomain& domain) {
    const StreamRef* stream = kernel_stream(op.kind);
    if (stream == nullptr) return;
    const bool is_nccl = nccl_comm(op.kind) != nullptr;
    if (has_peer_access && !is_nccl) return;
    for (const BufferRef* buffer : kernel_buffers(op.kind)) {
      for_each_assignment(
          domain, {&stream->index, &buffer->index}, kMostAssignments, [&](Variables v) {
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
  walk(program, [&](const Op& op, const VariableDomain& domain) {
    const CommRef* comm = nccl_comm(op.kind);
    if (comm == nullptr) return;
    const StreamRef* stream = kernel_stream(op.kind);
    static const Expr kProcess = *Expr::from_postfix({{Expr::Op::Variable, 0}});
    std::vector<const Expr*> indices{&comm->index, &kProcess};
    if (stream != nullptr) indices.push_back(&stream->index);
    for_each_assignment(domain, indices, kMostAssignments, [&](Variables v) {
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
      if (std::ranges::find(communicator.members, place) == communicator.members.end()) {
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
  check_nccl_order(program, problems);
  const HappensBefore order = happens_before(program, {.mode = OrderMode::Likely});
  if (problems.count() == warnings_before) check_hangs(program, order, problems);
  check_races(program, order, problems);
}

}  // namespace foretrace
