#include "sim/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <variant>

#include "scenarios/base/values/range_check.h"
#include "scenarios/program/program_walk.h"
#include "sim/engine/event_queue.h"

namespace foretrace {
namespace {

constexpr std::uint64_t kMostStreams = std::uint64_t{1} << 20;  // of all processes; a KiB each
constexpr std::uint64_t kMostOthers = std::uint64_t{1} << 26;   // events, buffers, ...: 16 bytes

Diagnostic error_at(const Program& program, int line, int column, std::string message) {
  Diagnostic problem;
  problem.at.file = program.file;
  problem.at.line = line;
  problem.at.column = column;
  problem.message = std::move(message);
  return problem;
}
Diagnostic error_at(const Program& program, const Op& op, std::string message) {
  return error_at(program, op.line, op.column, std::move(message));
}

/// What one launch of a graph executes, at most.
std::uint64_t largest_capture(const Program& program) {
  std::uint64_t largest = 0;
  for_each_op(program, [&](const HostThread&, const Op& op, Around) {
    const auto* capture = std::get_if<GraphCapture>(&op.kind);
    if (capture != nullptr) largest = std::max(largest, count_executions(capture->ops));
  });
  return largest;
}

/// The operation that executes most, when all together are too many.
std::optional<Diagnostic> too_many_executions(const Program& program,
                                              const std::vector<bool>& runs) {
  const std::uint64_t captured = largest_capture(program);
  std::uint64_t all = 0;
  std::uint64_t most = 0;
  const Op* busiest = nullptr;
  for_each_op(program, [&](const HostThread& thread, const Op& op, Around around) {
    if (const auto* repeat = std::get_if<Repeat>(&op.kind); repeat && is_void(repeat->ops, false)) {
      return;
    }
    const auto processes = static_cast<std::uint64_t>(std::ranges::count_if(
        thread.processes, [&](std::uint32_t process) { return runs.empty() || runs[process]; }));
    std::uint64_t times = times_capped(executions(around), processes);
    if (std::holds_alternative<GraphLaunch>(op.kind)) times = times_capped(times, captured + 1);
    if (const auto* repeat = std::get_if<Repeat>(&op.kind)) {
      times = times_capped(times, repeat->times);  // going around is work, too
    }
    all = std::min(all + times, kMostExecutions);
    if (times <= most) return;
    most = times;
    busiest = &op;
  });
  if (all <= kMostExecuted || busiest == nullptr) return std::nullopt;
  return error_at(program, *busiest,
                  fmt::format("{} executions of this of {} in all: at most {} can be simulated",
                              most, all, kMostExecuted));
}

/// The first operation that can last too long by itself.
std::optional<Diagnostic> too_long_a_time(const Program& program) {
  constexpr std::int64_t kMost = sim::kEndOfTime.time_since_epoch().count();
  std::optional<Diagnostic> found;
  for_each_op(program, [&](const HostThread& thread, const Op& op, Around around) {
    if (found) return;
    std::visit(
        [&](const auto& kind) {
          if constexpr (requires { kind.duration.expr; }) {
            VariableDomain domain{thread.processes, {}};
            for (const Op* loop : loops_of(around)) {
              const auto times = std::get<Repeat>(loop->kind).times;
              domain.loops.push_back({{}, static_cast<std::int64_t>(times)});
            }
            const auto reason = leaves_range(kind.duration.expr, 0, kMost, domain);
            if (!reason) return;
            found = error_at(program, op, "a time of more than an hour cannot be simulated");
          }
        },
        op.kind);
  });
  return found;
}

/// A process that does not run has none.
std::optional<Diagnostic> too_many_objects(const Program& program, const std::vector<bool>& runs) {
  const auto processes = runs.empty() ? std::uint64_t{program.processes}
                                      : static_cast<std::uint64_t>(std::ranges::count(runs, true));
  const std::uint64_t streams = program.streams.size();
  const std::uint64_t others = program.events.size() + program.buffers.size() +
                               program.signals.size() + program.graphs.size() +
                               std::uint64_t{program.devices} * program.devices;
  const bool fits = processes * streams <= kMostStreams && processes * others <= kMostOthers;
  if (fits) return std::nullopt;
  const SourceSpot& at = program.processes_spot;
  return error_at(program, at.line, at.column,
                  fmt::format("{} processes with {} streams and {} other objects each: at most {} "
                              "and {} in all can be simulated",
                              processes, streams, others, kMostStreams, kMostOthers));
}

}  // namespace

Diagnostics too_large_to_simulate(const Program& program, const std::vector<bool>& runs) {
  Diagnostics problems;
  if (auto problem = too_many_executions(program, runs)) problems.push_back(*std::move(problem));
  if (auto problem = too_long_a_time(program)) problems.push_back(*std::move(problem));
  if (auto problem = too_many_objects(program, runs)) problems.push_back(*std::move(problem));
  return problems;
}

}  // namespace foretrace
