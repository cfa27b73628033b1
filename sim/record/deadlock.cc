#include "sim/record/deadlock.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>

namespace foretrace::sim {
namespace {

std::string place(const Program& program, const Op& op) {
  return fmt::format("{}:{}: {}", program.file, op.line, kind_name(op.kind));
}

/// A rank that has called it, and whose kernel is held up by something else.
std::string explain_late(const Transfer& transfer, const Transfer::Missing& late) {
  const auto part = std::ranges::find(late.launch->parts(), &transfer,
                                      [](const auto& one) { return one.transfer.get(); });
  std::string text = fmt::format("rank {} calls it in line {}", late.rank, part->op->line);
  const auto at = [&](const StreamQueue* stream, std::string_view where) {
    if (stream == nullptr || stream->front() == nullptr) return false;
    const Work& front = *stream->front();
    const auto* nccl = std::get_if<NcclWork>(&front.what);
    if (nccl != nullptr && nccl->launch.get() == late.launch) return false;
    text += fmt::format(", behind line {} {}", front.execution.op->line, where);
    return true;
  };
  if (!at(&late.launch->stream(), "in its stream")) {
    at(late.launch->after().stream, "of the same communicator");
  }
  return text;
}

std::string explain(const Transfer& transfer) {
  if (!transfer.mismatch().empty()) return transfer.mismatch();
  std::vector<std::uint32_t> never;
  std::vector<std::string> why;
  for (const Transfer::Missing& one : transfer.missing()) {
    if (one.launch == nullptr) {
      never.push_back(one.rank);
    } else {
      why.push_back(explain_late(transfer, one));
    }
  }
  if (!never.empty()) {
    why.push_back(fmt::format("rank{} {} never called it", never.size() == 1 ? "" : "s",
                              fmt::join(never, ", ")));
  }
  return fmt::format("{}: {}", transfer.key().what, fmt::join(why, ", "));
}

/// What the front entry of a stream is held up by.
std::string explain(const Program& program, const StreamQueue& stream) {
  const Work* work = stream.front();
  if (work == nullptr) return "";
  std::string text = fmt::format("stream {} is at {}", stream.declared().name,
                                 place(program, *work->execution.op));
  if (const auto* nccl = std::get_if<NcclWork>(&work->what)) {
    std::set<std::string> said;
    for (const auto& [transfer, party, op] : nccl->launch->parts()) {
      if (transfer->missing().empty() && transfer->mismatch().empty()) continue;
      const std::string why = explain(*transfer);
      if (said.insert(why).second) text += "; " + why;
    }
  } else if (const auto* function = std::get_if<HostFuncWork>(&work->what);
             function != nullptr && function->wait != nullptr) {
    text += "; its function waits for a signal that no thread gives";
  } else if (const auto* wait = std::get_if<WaitWork>(&work->what)) {
    text += fmt::format("; the event was recorded at {} and did not complete",
                        place(program, *wait->ticket->record.op));
  }
  return text;
}

std::string explain(const Program& program, const HostThread& thread) {
  std::string text =
      fmt::format("process {}, thread {}, {} waits for {}", thread.process().index, thread.name(),
                  place(program, *thread.current()), thread.waits_for());
  for (const Connection* connection : thread.waits_for_connections()) {
    if (connection->made()) continue;
    text += ": " + connection->needs();
  }
  if (thread.waits_for_stream() != nullptr) {
    const std::string stream = explain(program, *thread.waits_for_stream());
    if (!stream.empty()) text += "; " + stream;
  }
  return text;
}

/// A lost context leaves its streams as they are: its failure explains them.
bool has_failed(const std::vector<std::unique_ptr<HostThread>>& threads) {
  return std::ranges::any_of(threads,
                             [](const auto& thread) { return !thread->failure().empty(); });
}

}  // namespace

Outcome explain_outcome(const Program& program,
                        const std::vector<std::unique_ptr<HostThread>>& threads, World& world) {
  Outcome outcome;
  for (const auto& thread : threads) {
    if (!thread->failure().empty()) {
      outcome.kind = Outcome::Kind::Failed;
      outcome.explanation.push_back(
          fmt::format("process {}, thread {}, {}: {}", thread->process().index, thread->name(),
                      place(program, *thread->current()), thread->failure()));
    } else if (!thread->finished()) {
      if (outcome.kind == Outcome::Kind::Completed) outcome.kind = Outcome::Kind::Deadlock;
      outcome.explanation.push_back(explain(program, *thread));
    }
  }
  if (has_failed(threads)) return outcome;
  for (std::uint32_t p = 0; p < program.processes; ++p) {
    const auto judge = [&](const StreamQueue& stream) {
      if (stream.pending() == 0) return;
      if (outcome.kind == Outcome::Kind::Completed) outcome.kind = Outcome::Kind::Deadlock;
      outcome.explanation.push_back(fmt::format("process {}, {}", p, explain(program, stream)));
    };
    for (const auto& stream : world.process(p).streams) judge(*stream);
    for (const auto& [thread, stream] : world.process(p).per_thread) judge(*stream);
  }
  return outcome;
}

}  // namespace foretrace::sim
