#include "sim/message_limit.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/program/program_walk.h"
#include "sim/world.h"

namespace foretrace::sim {
namespace {

constexpr const char* kUseFlow =
    "--fidelity flow, the default, takes an operation as one flow, whatever its size";

Diagnostic error_at(const Program& program, const Op& op, std::string message) {
  Diagnostic problem;
  problem.at = {program.file, op.line, op.column};
  problem.message = std::move(message);
  problem.hint = kUseFlow;
  return problem;
}

bool is_counted(const Op& op, Around around) {
  if (is_inside<GraphCapture>(around)) return false;
  const auto* const collective = std::get_if<NcclCollective>(&op.kind);
  if (collective == nullptr) return std::holds_alternative<NcclSend>(op.kind);
  return nccl::is_send_recv(collective->kind) || !is_inside<NcclGroup>(around);
}

/// One execution of `op` by all its ranks: the mean of the first and the last of its loops.
ChunkSize size_of(const Program& program, World& world, const Op& op, Around around,
                  std::uint32_t process, std::uint32_t& ranks) {
  std::vector<std::int64_t> first{process}, last{process};
  for (const Op* loop : loops_of(around)) {
    first.push_back(0);
    last.push_back(
        static_cast<std::int64_t>(std::max<std::uint64_t>(1, std::get<Repeat>(loop->kind).times)) -
        1);
  }
  const CommRef& ref = *op_facts(op.kind).comm;
  const auto of = [&](const std::vector<std::int64_t>& variables) {
    NcclComm& comm = world.communicator(program.comms[ref.resolve(variables).value].communicator);
    ranks = comm.ranks();
    return comm.chunk_size_of(op.kind, variables);
  };
  const ChunkSize a = of(first);
  if (first == last) return a;
  const ChunkSize b = of(last);
  return {std::max(a.links, b.links), (a.messages + b.messages) / 2};
}

}  // namespace

Diagnostics too_many_messages(const Program& program, World& world, const std::vector<bool>& runs) {
  double all = 0;
  double most = 0;
  const Op* busiest = nullptr;
  Diagnostics problems;
  for_each_op(program, [&](const foretrace::HostThread& thread, const Op& op, Around around) {
    if (!is_counted(op, around) || executions(around) == 0) return;
    std::uint64_t processes = 0;
    std::uint32_t one = 0;
    for (const std::uint32_t process : thread.processes) {
      if (runs[process] && processes++ == 0) one = process;
    }
    if (processes == 0) return;
    std::uint32_t ranks = 1;
    const ChunkSize size = size_of(program, world, op, around, one, ranks);
    if (size.links > static_cast<double>(kMostLinks) && problems.empty()) {
      problems.push_back(error_at(
          program, op,
          fmt::format("{} of {} ranks has {:.3g} pairs of ranks that pass slices on: at most {} "
                      "can be simulated with --fidelity chunk",
                      kind_name(op.kind), ranks, size.links, kMostLinks)));
    }
    // Each of its ranks calls it: this thread's processes are so many of them.
    const double times = static_cast<double>(executions(around)) * static_cast<double>(processes);
    const double messages = size.messages * times / ranks;
    all += messages;
    if (messages <= most) return;
    most = messages;
    busiest = &op;
  });
  if (problems.empty() && busiest != nullptr && all > static_cast<double>(kMostMessages)) {
    problems.push_back(
        error_at(program, *busiest,
                 fmt::format("about {:.3g} messages of this of {:.3g} in all: at most {} can be "
                             "simulated with --fidelity chunk",
                             most, all, kMostMessages)));
  }
  return problems;
}

}  // namespace foretrace::sim
