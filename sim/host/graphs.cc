// CUDA graphs: calls inside a graph_capture are noted instead of queued; a launch queues one entry,
// with the kernels, copies and host functions that its chains are to run.
#include "sim/host/thread.h"

namespace foretrace::sim {

void HostThread::run(const GraphCapture& op) {
  capture_ = process_.graphs[op.graph.resolve(variables_).value].get();
  capture_->begin_capture();
  process_.captured_uses[capture_].clear();
  small_memsets_.clear();
  frames_.push_back({&op.ops, 0, current_.op, 1, current_.instance, {}});
}

void HostThread::end_capture() {
  const std::uint32_t nodes = std::exchange(capture_, nullptr)->nodes();
  take(price([&](Reading& read) { return cost::graph_instantiate_time(read, nodes); }));
}

/// A record or a wait of this launch, instead of the captured one.
Work::What HostThread::captured_work(const Work::What& what,
                                     std::map<const Ticket*, TicketRef>& tickets) {
  if (const auto* record = std::get_if<RecordWork>(&what)) {
    TicketRef& ticket = tickets[record->ticket.get()];
    ticket = TicketRef{new Ticket};
    ticket->record = record->ticket->record;
    ticket->timed = record->ticket->timed;
    return RecordWork{ticket};
  }
  if (const auto* wait = std::get_if<WaitWork>(&what)) {
    const auto known = tickets.find(wait->ticket.get());
    if (known != tickets.end()) return WaitWork{known->second};
  }
  return what;
}

/// A kernel of this launch takes what it takes by what the level-2 cache has now.
void HostThread::go_through_again(const CapturedUse& use, Work::What& what) {
  const Passes passes = go_through(use.device, use.memory);
  auto* kernel = std::get_if<KernelWork>(&what);
  if (kernel == nullptr || !use.cost) return;
  Reading read{machine_};
  kernel->cost = use.cost(read, {passes.data(), passes.size()});
}

void HostThread::run(const GraphLaunch& op) {
  GraphExec& graph = *process_.graphs[op.graph.resolve(variables_).value];
  StreamQueue& queue = stream(op.stream);
  if (held_up(queue)) return;
  const cost::Call made = begin_call(Param::HostGraphLaunch, queue);
  const Priced call =
      price([&](Reading& read) { return cost::graph_launch_time(read, made, graph.nodes()); },
            made.is_first);
  auto work = std::make_shared<GraphWork>(GraphWork{&graph, {}});
  std::map<const Ticket*, TicketRef> tickets;
  std::vector<CommHandle> communicators;
  const auto chain_of = [&](StreamQueue& stream) -> StreamQueue& { return graph.chain_of(stream); };
  std::span<const CapturedUse> uses = process_.captured_uses[&graph];
  for (std::size_t i = 0; i < graph.entries().size(); ++i) {
    const GraphExec::Entry& entry = graph.entries()[i];
    if (const auto* calls = std::get_if<std::vector<NcclCall>>(&entry.what)) {
      Duration unused{0};
      for (NcclKernel& kernel : nccl_.prepare(*calls, chain_of, unused)) {
        kernel.launch->set_cold(nccl_.cold_time(kernel.handle.device));
        work->entries.emplace_back(kernel.stream, NcclWork{kernel.launch});
        communicators.push_back(kernel.handle);
      }
    } else {
      Work::What what = captured_work(std::get<Work::What>(entry.what), tickets);
      if (!uses.empty() && uses.front().entry == i) {
        go_through_again(uses.front(), what);
        uses = uses.subspan(1);
      }
      work->entries.emplace_back(&graph.chain_of(*entry.stream), std::move(what));
    }
  }
  graph.launched(*work, queue, queue.issued() + 1);
  push(queue, call.time, cost::Entry::Graph, std::move(work));
  for (const CommHandle& handle : communicators) {
    NcclComm& comm = world_.communicator(handle.communicator);
    comm.last(comm.rank_of({process_.index, handle.device})) = {&queue, queue.issued()};
  }
  take(call);
}

}  // namespace foretrace::sim
