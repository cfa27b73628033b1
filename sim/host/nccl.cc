// NCCL calls of a host thread: alone or grouped, once they are connected one kernel per
// communicator and device.
#include <fmt/format.h>

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <limits>
#include <type_traits>
#include <utility>

#include "models/cost/kernel.h"
#include "scenarios/program/op_facts.h"
#include "scenarios/text/errors.h"
#include "sim/host/thread.h"

namespace foretrace::sim {

/// A communicator of one rank has nobody to talk to: NCCL copies what is not in place, and launches
/// no kernel of its own (ncclLaunchOneRank).
void HostThread::run(const NcclCollective& op) {
  const CommHandle& handle = program_.comms[op.comm.resolve(variables_).value];
  if (world_.communicator(handle.communicator).ranks() > 1) {
    nccl_call();
  } else if (op.send.resolve(variables_) == op.recv.resolve(variables_)) {
    const bool known = machine_.has(Param::NcclHostGrouped);
    take(price(begin_call(known ? Param::NcclHostGrouped : Param::NcclHostPerOp, handle.device)));
  } else {
    copy(stream(op.stream), op.send, op.recv, op.size.eval(variables_), false);
  }
}
void HostThread::run(const NcclSend&) { nccl_call(); }
void HostThread::run(const NcclRecv&) { nccl_call(); }

/// Inside a group the call is only noted; alone it is a group of one.
void HostThread::nccl_call() {
  std::vector<BufferId> mapped;
  const bool direct = goes_directly(mapped);
  nccl_calls_.push_back({current_, variables_, direct});
  if (direct) mapping_ += map_time(mapped, nccl_calls_.back());
  if (group_depth_ > 0) {
    passed_ = true;
    return;
  }
  nccl_issue();
}

/// The collectives among `calls` that one kernel runs together, those made of sends and receives
/// apart.
std::vector<nccl::Call> HostThread::together_on(const CommHandle& handle,
                                                const std::vector<NcclCall>& calls) const {
  std::vector<nccl::Call> together;
  if (calls.size() < 2) return together;
  for (const NcclCall& call : calls) {
    const auto* op = std::get_if<NcclCollective>(&call.execution.op->kind);
    if (op == nullptr || nccl::is_send_recv(op->kind)) continue;
    const CommHandle& other = program_.comms[op->comm.resolve(call.variables).value];
    if (other.communicator != handle.communicator || other.device != handle.device) continue;
    together.push_back({op->kind, op->size.eval(call.variables), op->type, op->op, call.direct});
  }
  return together;
}

/// One kernel per communicator handle, in the order of the first call on each.
std::vector<HostThread::NcclKernel> HostThread::nccl_prepare(const std::vector<NcclCall>& calls,
                                                             const QueueOf& queue_of,
                                                             Duration& call) {
  std::vector<NcclKernel> kernels;
  const auto join = [&](const NcclCall& entry, const CommRef& ref, const StreamRef& on,
                        auto&& transfer_of) {
    const CommHandle& handle = program_.comms[ref.resolve(entry.variables).value];
    NcclComm& comm = world_.communicator(handle.communicator);
    const std::uint32_t rank = comm.rank_of({process_.index, handle.device});
    auto at = std::ranges::find_if(kernels, [&](const NcclKernel& kernel) {
      return kernel.handle.communicator == handle.communicator &&
             kernel.handle.device == handle.device;
    });
    if (at == kernels.end()) {
      StreamQueue& queue = queue_of(stream_at(on, entry.variables));
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
      call += nccl_call_cost(is_first ? Param::NcclHostCollective : Param::NcclHostPerDevice,
                             handle.device) +
              comm.mixing_time();
    } else {
      const bool known = machine_.has(Param::NcclHostGrouped);
      call += machine_.call_time(known ? Param::NcclHostGrouped : Param::NcclHostPerOp);
    }
    const std::shared_ptr<Transfer> transfer = [&] {
      try {
        return transfer_of(*at, comm, rank);
      } catch (const UsageError& refused) {
        throw UsageError{
            fmt::format("{}:{}: {}", program_.file, entry.execution.op->line, refused.what())};
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
DecidedBy HostThread::decided_by(const NcclKernel& kernel, const NcclCall& entry) {
  const auto* op = std::get_if<NcclCollective>(&entry.execution.op->kind);
  if (op == nullptr || kernel.together.size() > 1) return {};
  const Variables v = entry.variables;
  const nccl::Call call{op->kind, op->size.eval(v), op->type,
                        op->op,   entry.direct,     root_of(*op, v)};
  return OneCollective{kernel.handle.communicator, call};
}

/// What the kernel's spans have: NCCL's choice, and the band of each operation's own time.
void HostThread::set_details(NcclKernel& kernel, bool both_ways) {
  SpanDetail choice;
  choice.algorithm = name_of(kernel.choice.algorithm);
  choice.protocol = name_of(kernel.choice.protocol);
  choice.channels = kernel.launch->channels();
  const std::uint32_t detail = recorder_.detail(choice);
  const NcclComm& comm = world_.communicator(kernel.handle.communicator);
  const std::uint32_t rank = comm.rank_of({process_.index, kernel.handle.device});
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
    kernel.launch->set_detail(i, recorder_.banded_by(*entry.execution.op, detail,
                                                     decided_by(kernel, entry), shares));
    if (has_place) ++place;
  }
}

Duration HostThread::nccl_call_cost(Param param, std::uint32_t device) {
  const cost::Call& call = nccl_host_calls_.emplace_back(begin_call(param, device));
  return world_.costs().of(call);
}

/// What a NCCL kernel takes longer since other kernels' memory drove its code and its flags out of
/// the level-2 cache, where the last one on its GPU had left them. They are little: they drive out
/// nothing themselves.
Duration HostThread::cold_time(std::uint32_t device) {
  constexpr UsedMemory kOfNccl{.buffer = std::numeric_limits<std::uint32_t>::max(), .bytes = 1};
  const Passes passes = go_through(device, {&kOfNccl, 1});
  if (!machine_.has(Param::NcclColdKernel) || !machine_.has(Param::L2Size)) return Duration{0};
  if (!machine_.takes(Term::ColdNccl)) return Duration{0};
  Reading read{machine_};
  const double share = cost::missing_bytes(read, passes.front());
  return seconds_to_duration(share * read.seconds(Param::NcclColdKernel));
}

void HostThread::nccl_capture() {
  const std::vector<NcclCall> calls = std::exchange(nccl_calls_, {});
  Priced priced = price([&](Reading& read) { return cost::nccl_capture_time(read, calls.size()); });
  priced.time += std::exchange(mapping_, Duration{0});
  take(priced);
  for (const NcclCall& entry : calls) {
    const CommId handle = nccl_comm(entry.execution.op->kind)->resolve(entry.variables);
    world_.communicator(program_.comms[handle.value].communicator).set_captured();
  }
  capture_->capture(calls);
}

/// Queues the kernel, which the device sees so much later.
void HostThread::nccl_launch(const NcclKernel& kernel, Duration later) {
  NcclComm& comm = world_.communicator(kernel.handle.communicator);
  const std::uint32_t rank = comm.rank_of({process_.index, kernel.handle.device});
  Reading read{machine_};
  const Duration visible = later + cost::launch_latency(read, cost::Entry::Nccl);
  kernel.launch->set_cold(cold_time(kernel.handle.device));
  kernel.stream->push({kernel.execution, engine_.now() + visible, 0, 1, NcclWork{kernel.launch}});
  comm.last(rank) = {kernel.stream, kernel.stream->issued()};
}

void HostThread::nccl_launch_all() {
  if (capture_ != nullptr) {
    nccl_capture();
    return;
  }
  nccl_launching_ = std::exchange(nccl_calls_, {});
  const Duration mapping = std::exchange(mapping_, Duration{0});
  const bool cold = !has_connected_ && program_.warmup == 0 && machine_.has(Param::NcclColdCall);
  const auto cold_call = [&](Reading& read) {
    return cold ? read.time(Param::NcclColdCall) : Duration{0};
  };
  Reading plain{machine_};
  Duration call = cold_call(plain) + mapping;
  nccl_host_calls_.clear();
  const auto itself = [](StreamQueue& stream) -> StreamQueue& { return stream; };
  nccl_kernels_ = nccl_prepare(nccl_launching_, itself, call);
  nccl_next_ = 0;
  // What NCCL's host side does for single channels and operations is a fixed part here.
  const bool connected = std::exchange(has_connected_, false);
  const auto calls_time = [&](Reading& read) {
    Duration time{0};
    for (const cost::Call& made : nccl_host_calls_) time += cost::call_time(read, made);
    return time;
  };
  const Duration rest = call - calls_time(plain) - cold_call(plain);
  const bool is_first = std::ranges::any_of(nccl_host_calls_, &cost::Call::is_first);
  nccl_call_ = {call, price(
                          [&](Reading& read) {
                            const Duration time = rest + calls_time(read) + cold_call(read);
                            return connected ? time + read.time(Param::NcclConnect) : time;
                          },
                          is_first)
                          .detail};
  if (launches_block_ && !nccl_kernels_.empty()) {
    nccl_stage_ = NcclStage::Launch;
    nccl_launch_next();
    return;
  }
  for (const NcclKernel& kernel : nccl_kernels_) nccl_launch(kernel, kernel.issued);
  nccl_kernels_.clear();
  take(nccl_call_);
}

/// With CUDA_LAUNCH_BLOCKING a thread launches the kernels of its devices one after the other, and
/// waits for each: one that needs the next never ends (nccl src/group.cc, doLaunches).
void HostThread::nccl_launch_next() {
  const NcclKernel& kernel = nccl_kernels_[nccl_next_];
  const Duration before = nccl_next_ == 0 ? Duration{0} : nccl_kernels_[nccl_next_ - 1].issued;
  const bool is_last = ++nccl_next_ == nccl_kernels_.size();
  nccl_launch(kernel, kernel.issued - before);
  wait_for_stream(*kernel.stream);
  if (is_last) nccl_stage_ = NcclStage::None;
  const Duration rest = is_last ? nccl_call_.time - before : Duration{0};
  block({rest, nccl_call_.detail}, cost::Wait::Device,
        is_last && nccl_next_ == 1
            ? std::string{"NCCL's kernel (CUDA_LAUNCH_BLOCKING)"}
            : fmt::format("NCCL's kernel {} of {} of the group (CUDA_LAUNCH_BLOCKING), before it "
                          "launches the next",
                          nccl_next_, nccl_kernels_.size()));
  if (is_last) nccl_kernels_.clear();
}

}  // namespace foretrace::sim
