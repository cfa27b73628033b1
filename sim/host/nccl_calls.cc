// NCCL calls of a host thread: alone or grouped, once they are connected one kernel per
// communicator and device.
#include "sim/host/nccl_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <limits>
#include <type_traits>
#include <utility>

#include "models/cost/kernel.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/program/op_facts.h"

namespace foretrace::sim {

void NcclCalls::add() {
  std::vector<BufferId> mapped;
  const bool direct = goes_directly(mapped);
  calls_.push_back(
      {caller_.execution(), {caller_.variables().begin(), caller_.variables().end()}, direct});
  if (direct) mapping_ += map_time(mapped, calls_.back());
}

/// The collectives among `calls` that one kernel runs together, those made of sends and receives
/// apart.
std::vector<nccl::Call> NcclCalls::together_on(const CommHandle& handle,
                                               const std::vector<NcclCall>& calls) const {
  std::vector<nccl::Call> together;
  if (calls.size() < 2) return together;
  for (const NcclCall& call : calls) {
    const auto* op = std::get_if<NcclCollective>(&call.execution.op->kind);
    if (op == nullptr || nccl::is_send_recv(op->kind)) continue;
    const CommHandle& other = caller_.program().comms[op->comm.resolve(call.variables).value];
    if (other.communicator != handle.communicator || other.device != handle.device) continue;
    together.push_back({op->kind, op->size.eval(call.variables), op->type, op->op, call.direct});
  }
  return together;
}

/// One kernel per communicator handle, in the order of the first call on each.
std::vector<NcclKernel> NcclCalls::prepare(const std::vector<NcclCall>& calls,
                                           const QueueOf& queue_of, Duration& call) {
  std::vector<NcclKernel> kernels;
  const auto join = [&](const NcclCall& entry, const CommRef& ref, const StreamRef& on,
                        auto&& transfer_of) {
    const CommHandle& handle = caller_.program().comms[ref.resolve(entry.variables).value];
    NcclComm& comm = caller_.world().communicator(handle.communicator);
    const std::uint32_t rank = comm.rank_of({caller_.process().index, handle.device});
    auto at = std::ranges::find_if(kernels, [&](const NcclKernel& kernel) {
      return kernel.handle.communicator == handle.communicator &&
             kernel.handle.device == handle.device;
    });
    if (at == kernels.end()) {
      StreamQueue& queue = queue_of(caller_.stream_at(on, entry.variables));
      kernels.push_back({handle,
                         &queue,
                         std::make_shared<NcclLaunch>(queue, comm.last(rank)),
                         {},
                         entry.execution,
                         {},
                         together_on(handle, calls),
                         0,
                         {},
                         {}});
      at = kernels.end() - 1;
      const bool is_first = kernels.size() == 1;
      call += call_cost(is_first ? Param::NcclHostCollective : Param::NcclHostPerDevice,
                        handle.device) +
              comm.mixing_time();
    } else {
      const bool known = caller_.machine().has(Param::NcclHostGrouped);
      call += caller_.machine().call_time(known ? Param::NcclHostGrouped : Param::NcclHostPerOp);
    }
    const std::shared_ptr<Transfer> transfer = [&] {
      try {
        return transfer_of(*at, comm, rank);
      } catch (const UsageError& refused) {
        throw UsageError{fmt::format("{}:{}: {}", caller_.program().file, entry.execution.op->line,
                                     refused.what())};
      }
    }();
    const nccl::Choice& choice = transfer->cost().choice;
    if (choice.channels > at->choice.channels || at->launch->operations().empty())
      at->choice = choice;
    at->launch->add(transfer, rank, entry.execution, choice);
    at->entries.push_back(&entry);
    call += comm.host_time(rank, entry.execution.op->kind, entry.variables, choice);
    // Available once its own device's part of the group has been issued.
    at->issued = call;
  };
  const auto has = [&]<class Kind>(std::type_identity<Kind>) {
    return std::ranges::any_of(calls, [](const NcclCall& other) {
      return std::holds_alternative<Kind>(other.execution.op->kind);
    });
  };
  const bool both_ways = has(std::type_identity<NcclSend>{}) && has(std::type_identity<NcclRecv>{});
  for (const NcclCall& entry : calls) {
    const OpKind& kind = entry.execution.op->kind;
    const Variables v = entry.variables;
    if (const auto* op = std::get_if<NcclCollective>(&kind)) {
      join(entry, op->comm, op->stream,
           [&](NcclKernel& kernel, NcclComm& comm, std::uint32_t rank) {
             const std::size_t place = kernel.joined;
             if (!nccl::is_send_recv(op->kind)) ++kernel.joined;
             return comm.join_collective(rank, *op, op->size.eval(v), op->root.eval(v),
                                         entry.direct, kernel.together, place);
           });
    } else if (const auto* send = std::get_if<NcclSend>(&kind)) {
      join(entry, send->comm, send->stream,
           [&](NcclKernel& kernel, NcclComm& comm, std::uint32_t rank) {
             const auto peer = static_cast<std::uint32_t>(send->peer.eval(v));
             return comm.join_send_recv(rank, peer, true, send->size.eval(v), both_ways,
                                        entry.direct, kernel.ahead[{rank, peer}]);
           });
    } else if (const auto* recv = std::get_if<NcclRecv>(&kind)) {
      join(entry, recv->comm, recv->stream,
           [&](NcclKernel& kernel, NcclComm& comm, std::uint32_t rank) {
             const auto peer = static_cast<std::uint32_t>(recv->peer.eval(v));
             return comm.join_send_recv(peer, rank, false, recv->size.eval(v), both_ways,
                                        entry.direct, kernel.ahead[{peer, rank}]);
           });
    }
  }
  for (NcclKernel& kernel : kernels) set_details(kernel, both_ways);
  return kernels;
}

/// Of a collective that no other one shares its launch with; the rank does not matter.
DecidedBy NcclCalls::decided_by(const NcclKernel& kernel, const NcclCall& entry) {
  const auto* op = std::get_if<NcclCollective>(&entry.execution.op->kind);
  if (op == nullptr || kernel.together.size() > 1) return {};
  const Variables v = entry.variables;
  const nccl::Call call{op->kind, op->size.eval(v), op->type,
                        op->op,   entry.direct,     root_of(*op, v)};
  return OneCollective{kernel.handle.communicator, call};
}

/// What the kernel's spans have: NCCL's choice, and the band of each operation's own time.
void NcclCalls::set_details(NcclKernel& kernel, bool both_ways) {
  SpanDetail choice;
  choice.algorithm = name_of(kernel.choice.algorithm);
  choice.protocol = name_of(kernel.choice.protocol);
  choice.channels = kernel.launch->channels();
  const std::uint32_t detail = caller_.recorder().detail(choice);
  const NcclComm& comm = caller_.world().communicator(kernel.handle.communicator);
  const std::uint32_t rank = comm.rank_of({caller_.process().index, kernel.handle.device});
  std::vector<std::vector<Share>> of_group;  // once for all of its calls
  std::size_t place = 0;
  for (std::size_t i = 0; i < kernel.entries.size(); ++i) {
    const NcclCall& entry = *kernel.entries[i];
    const auto* collective = std::get_if<NcclCollective>(&entry.execution.op->kind);
    const bool has_place = collective != nullptr && !nccl::is_send_recv(collective->kind);
    const auto shares = [&] {
      if (!has_place || kernel.together.size() < 2) return comm.shares(entry, {rank, both_ways});
      if (of_group.empty()) of_group = comm.group_shares(kernel.together);
      return of_group[place];
    };
    kernel.launch->set_detail(i, caller_.recorder().banded_by(*entry.execution.op, detail,
                                                              decided_by(kernel, entry), shares));
    if (has_place) ++place;
  }
}

}  // namespace foretrace::sim
