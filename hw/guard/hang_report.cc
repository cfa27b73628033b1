#include "hw/guard/hang_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "hw/run/program_facts.h"
#include "reports/timeline/write_file.h"
#include "scenarios/program/op_facts.h"
#include "scenarios/base/text/text_file.h"

namespace foretrace::hw {
namespace {

using Json = nlohmann::json;

/// One NCCL operation of one rank, as its peers see it.
struct IssuedCall {
  std::uint32_t process;
  Execution execution;
};

/// All NCCL operations of a pass, sorted by what they must meet.
class IssuedCalls {
 public:
  IssuedCalls(const Program& program, const std::vector<ProcessReport>& reports)
      : program_{program}, infos_{index_ops(program)} {
    for (const ProcessReport& report : reports) {
      for (const ThreadReport& thread : report.threads) {
        complete_ = complete_ && thread.nccl_calls_complete;
        for (const Execution call : thread.nccl_calls) add({report.process, call});
      }
    }
  }

  std::vector<std::string> unmatched() const {
    std::vector<std::string> result;
    if (!complete_) return result;  // counts would be wrong
    for (const auto& [pair, calls] : sends_) explain_pair(pair, calls, recvs_, "nccl_recv", result);
    for (const auto& [pair, calls] : recvs_) explain_pair(pair, calls, sends_, "nccl_send", result);
    for (const auto& [communicator, by_rank] : collectives_) {
      explain_collectives(communicator, by_rank, result);
    }
    return result;
  }

 private:
  using Pair = std::tuple<std::uint32_t, int, int>;  ///< communicator, from rank, to rank
  using Calls = std::vector<IssuedCall>;

  void add(const IssuedCall& call) {
    const OpInfo& info = infos_.at(call.execution.op);
    const auto variables = variables_at(info, infos_, call.execution.instance, call.process);
    std::visit(
        [&](const auto& op) {
          using T = std::decay_t<decltype(op)>;
          if constexpr (requires { op.comm; }) {
            const CommId comm = op.comm.resolve(variables);
            const std::uint32_t communicator = program_.comms[comm.value].communicator;
            const int rank = rank_of(program_, comm, call.process);
            if constexpr (std::is_same_v<T, NcclSend>) {
              const int peer = static_cast<int>(op.peer.eval(variables));
              sends_[{communicator, rank, peer}].push_back(call);
            } else if constexpr (std::is_same_v<T, NcclRecv>) {
              const int peer = static_cast<int>(op.peer.eval(variables));
              recvs_[{communicator, peer, rank}].push_back(call);
            } else {
              collectives_[communicator][rank].push_back(call);
            }
          }
        },
        info.op->kind);
  }

  std::string place(const IssuedCall& call) const {
    return place_of(program_, infos_[call.execution.op], call.process);
  }

  void explain_pair(const Pair& pair, const Calls& calls, const std::map<Pair, Calls>& partners,
                    const std::string& partner_kind, std::vector<std::string>& result) const {
    const auto found = partners.find(pair);
    const std::size_t met = found == partners.end() ? 0 : found->second.size();
    if (calls.size() <= met) return;
    const auto& [communicator, from, to] = pair;
    const bool is_recv = partner_kind == "nccl_send";
    result.push_back(fmt::format("{} {} rank {} never completed: rank {} has no matching {}",
                                 place(calls[met]), is_recv ? "from" : "to", is_recv ? from : to,
                                 is_recv ? from : to, partner_kind));
  }

  void explain_collectives(std::uint32_t communicator, const std::map<int, Calls>& by_rank,
                           std::vector<std::string>& result) const {
    const auto& declared = program_.communicators[communicator];
    std::size_t most = 0;
    for (const auto& [rank, calls] : by_rank) most = std::max(most, calls.size());
    // The first round that not everybody joined, or that ranks joined with different operations.
    for (std::size_t round = 0; round < most; ++round) {
      std::vector<int> missing;
      const IssuedCall* first = nullptr;
      const IssuedCall* other = nullptr;
      for (int rank = 0; rank < static_cast<int>(declared.members.size()); ++rank) {
        const auto calls = by_rank.find(rank);
        if (calls == by_rank.end() || calls->second.size() <= round) {
          missing.push_back(rank);
          continue;
        }
        const IssuedCall& call = calls->second[round];
        if (first == nullptr) first = &call;
        if (kind_of(call) != kind_of(*first)) other = &call;
      }
      if (!missing.empty()) {
        result.push_back(fmt::format("{} on {} never completed: rank{} {} never called it",
                                     place(*first), declared.name, missing.size() == 1 ? "" : "s",
                                     fmt::join(missing, ", ")));
        return;
      }
      if (other != nullptr) {
        result.push_back(fmt::format("{} on {} never completed: it met {}", place(*first),
                                     declared.name, place(*other)));
        return;
      }
    }
  }

  std::string kind_of(const IssuedCall& call) const {
    return kind_name(infos_[call.execution.op].op->kind);
  }

  const Program& program_;
  std::vector<OpInfo> infos_;
  bool complete_ = true;
  std::map<Pair, Calls> sends_;
  std::map<Pair, Calls> recvs_;
  std::map<std::uint32_t, std::map<int, Calls>> collectives_;
};

/// Operations that wait for a stream's work, or ask about it; others only put work on a stream.
bool waits_for_stream(const OpKind& kind) {
  const OpFacts facts = op_facts(kind);
  return facts.waits == HostWaits::ForStream ||
         (facts.stream != nullptr && facts.work == StreamWork::None);
}

std::optional<StreamId> stream_at(const Program& program, const std::vector<OpInfo>& infos,
                                  Execution execution, std::uint32_t process) {
  const OpInfo& info = infos.at(execution.op);
  return stream_of(program, info.op->kind, variables_at(info, infos, execution.instance, process));
}

/// The host function that holds the stream on which this thread cannot queue its operation.
std::optional<Execution> function_before(const Program& program, const std::vector<OpInfo>& infos,
                                         const ProcessReport& report, const ThreadReport& thread) {
  if (waits_for_stream(infos.at(thread.current.op).op->kind)) return std::nullopt;
  const auto stream = stream_at(program, infos, thread.current, report.process);
  if (!stream) return std::nullopt;
  for (const Execution function : report.waiting_host_functions) {
    if (stream_at(program, infos, function, report.process) == stream) return function;
  }
  return std::nullopt;
}

std::string explain_function(const Program& program, const std::vector<OpInfo>& infos,
                             Execution execution, std::uint32_t process) {
  const OpInfo& info = infos.at(execution.op);
  const auto& function = std::get<HostFunc>(info.op->kind);
  const auto variables = variables_at(info, infos, execution.instance, process);
  return fmt::format("{} on {} waits for the signal {}, which never came",
                     place_of(program, info, process),
                     program.streams[function.stream.resolve(variables).value].name,
                     program.signals[function.wait->resolve(variables).value].name);
}

std::string explain_thread(const Program& program, const std::vector<OpInfo>& infos,
                           const ProcessReport& report, const ThreadReport& thread) {
  switch (thread.phase) {
    case ThreadState::Phase::NotStarted:
      return fmt::format("process {}, thread {} waits for the pass to begin", report.process,
                         program.threads[thread.thread].name);
    case ThreadState::Phase::Finished:
      return fmt::format("process {}, thread {} has issued all its operations", report.process,
                         program.threads[thread.thread].name);
    case ThreadState::Phase::Running:
      break;
  }
  const OpInfo& current = infos.at(thread.current.op);
  std::string text = place_of(program, current, report.process) + " never returned";
  if (thread.open_group != ThreadState::kNoGroup && thread.open_group != thread.current.op) {
    text += fmt::format("; the nccl_group opened at line {} was never closed",
                        infos.at(thread.open_group).op->line);
  }
  if (const auto function = function_before(program, infos, report, thread)) {
    text += fmt::format("; the queue of its stream is full behind the host_func at line {}",
                        infos.at(function->op).op->line);
  }
  return text;
}

}  // namespace

ThreadReport report_of(std::uint32_t thread, const ThreadState& state) {
  return {thread,
          state.phase.load(),
          state.current(),
          state.nccl_calls.calls(),
          state.nccl_calls.complete(),
          state.open_group.load()};
}

std::vector<std::string> explain_hang(const Program& program,
                                      const std::vector<ProcessReport>& reports) {
  std::vector<std::string> result = IssuedCalls{program, reports}.unmatched();
  const auto infos = index_ops(program);
  for (const ProcessReport& report : reports) {
    for (const ThreadReport& thread : report.threads) {
      result.push_back(explain_thread(program, infos, report, thread));
    }
    for (const Execution function : report.waiting_host_functions) {
      result.push_back(explain_function(program, infos, function, report.process));
    }
    if (!report.busy_streams.empty()) {
      result.push_back(fmt::format("process {}: work that has not ended on {}", report.process,
                                   fmt::join(report.busy_streams, ", ")));
    }
  }
  return result;
}

std::filesystem::path hang_file(const std::filesystem::path& run, std::uint32_t process) {
  return run / fmt::format("hang.{}.json", process);
}

std::string to_text(const ProcessReport& report) {
  Json threads = Json::array();
  for (const ThreadReport& thread : report.threads) {
    Json calls = Json::array();
    for (const Execution call : thread.nccl_calls) calls.push_back({call.op, call.instance});
    threads.push_back({{"thread", thread.thread},
                       {"phase", static_cast<int>(thread.phase)},
                       {"op", thread.current.op},
                       {"instance", thread.current.instance},
                       {"nccl_calls", calls},
                       {"nccl_calls_complete", thread.nccl_calls_complete},
                       {"open_group", thread.open_group}});
  }
  Json functions = Json::array();
  for (const Execution function : report.waiting_host_functions) {
    functions.push_back({function.op, function.instance});
  }
  const Json document = {{"process", report.process},
                         {"threads", threads},
                         {"busy_streams", report.busy_streams},
                         {"waiting_host_functions", functions}};
  return document.dump();
}

void write_hang_report(const std::filesystem::path& file, const ProcessReport& report) {
  write_file(file, to_text(report), Over::Anything);
}

std::optional<ProcessReport> read_hang_report(const std::filesystem::path& file) {
  const auto text = read_plain_file(file, kLargestText);
  return text ? report_from(*text) : std::nullopt;
}

std::optional<ProcessReport> report_from(const std::string& text) {
  const Json document = Json::parse(text, nullptr, false);
  if (document.is_discarded()) return std::nullopt;
  ProcessReport report;
  report.process = document.at("process");
  report.busy_streams = document.at("busy_streams").get<std::vector<std::string>>();
  for (const Json& function : document.at("waiting_host_functions")) {
    report.waiting_host_functions.push_back({function.at(0), function.at(1)});
  }
  for (const Json& thread : document.at("threads")) {
    ThreadReport& read = report.threads.emplace_back();
    read.thread = thread.at("thread");
    read.phase = static_cast<ThreadState::Phase>(thread.at("phase").get<int>());
    read.current = {thread.at("op"), thread.at("instance")};
    read.nccl_calls_complete = thread.at("nccl_calls_complete");
    read.open_group = thread.at("open_group");
    for (const Json& call : thread.at("nccl_calls")) {
      read.nccl_calls.push_back({call.at(0), call.at(1)});
    }
  }
  return report;
}

}  // namespace foretrace::hw
