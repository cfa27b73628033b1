#include "sim/nccl/nccl.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/base/text/errors.h"
#include "sim/device/stream.h"

namespace foretrace::sim {

NcclComm::NcclComm(Engine& engine, const Machine& machine, const Communicator& declared,
                   const nccl::Tuning& tuning, bool warm, std::vector<std::uint32_t> running)
    : engine_{engine},
      machine_{machine},
      declared_{declared},
      tuning_{tuning},
      warm_{warm},
      running_{std::move(running)},
      pairs_{static_cast<std::uint32_t>(declared.members.size()), true} {
  next_collective_.resize(declared.members.size());
  last_.resize(declared.members.size());
  collectives_connection_.what = "the communicator's first collective";
  initialization_.what = "ncclCommInitRank";
  for (Connection* all : {&collectives_connection_, &initialization_}) all->missing = running_;
  for (std::uint32_t rank = 0; rank < ranks(); ++rank) rank_of_[declared.members[rank]] = rank;
}

void NcclComm::set_places(const std::vector<Nic>& places) {
  std::map<std::uint32_t, std::uint32_t> first;  // rank of each node
  for (std::uint32_t rank = 0; rank < places.size(); ++rank) {
    nodes_.push_back(places[rank].node);
    first.try_emplace(places[rank].node, rank);
  }
  for (std::uint32_t rank = 0; rank < places.size(); ++rank) order_.push_back(rank);
  std::ranges::stable_sort(order_, {}, [&](std::uint32_t rank) { return first.at(nodes_[rank]); });
  if (std::ranges::is_sorted(order_)) order_.clear();
}

TransferPath NcclComm::through_fabric(TransferPath path, const NetworkRoute* route) const {
  if (route == nullptr || route->flows.empty()) return path;
  path.network = route;
  path.wire_rate = machine_.rate(Param::NvlinkBandwidth);
  return path;
}

std::uint32_t NcclComm::rank_of(RankPlace place) const { return rank_of_.at(place); }

std::shared_ptr<Transfer> NcclComm::join_collective(std::uint32_t rank, const NcclCollective& op,
                                                    Bytes size, std::int64_t root, bool direct,
                                                    const std::vector<nccl::Call>& together,
                                                    std::size_t place) {
  const std::uint64_t number = next_collective_[rank]++;
  const TransferKey key{kind_name(op), size.count, root};
  const bool alone = together.size() < 2 || nccl::is_send_recv(op.kind);
  const std::size_t of_kernel = alone ? 1 : together.size();
  if (number - first_ == collectives_.size()) {
    const auto from = static_cast<std::uint32_t>(std::max<std::int64_t>(0, root));
    const nccl::Call call{op.kind, size, op.type, op.op, direct, from};
    nccl::Cost cost =
        alone ? nccl::collective_cost(machine_, tuning_, call) : cost_of(together, place);
    if (cost.hop && running_.size() != ranks()) {  // who knows when the others end?
      cost.latency += cost.hops(ranks());
      cost.hop.reset();
    }
    const double rounds = op.kind == CollectiveKind::AllReduce ? 2 : 1;
    const NetworkRoute* const route =
        fabric_ == nullptr ? nullptr
                           : &fabric_->of(traffic_of(op.kind, cost.choice.algorithm), from, rounds);
    const TransferPath path = through_fabric(all_, route);
    collectives_.push_back(
        {std::make_shared<Transfer>(engine_, under_way_, key, running_, cost, path), of_kernel, 0});
    const bool has_slices = network_ != nullptr && size.count > 0;
    if (has_slices && alone) {
      run_by_chunks(*collectives_.back().transfer, op, call, root);
    } else if (cost.hop) {
      run_as_chain(*collectives_.back().transfer, op, size, root);
    } else if (alone && running_.size() == ranks() &&
               (op.kind == CollectiveKind::Scatter || op.kind == CollectiveKind::Gather)) {
      run_as_star(*collectives_.back().transfer, op, size, root);
    }
    last_chain_ = cost.hop ? fmt::format("{} {}", key.what, root) : "";
  }
  Collective& collective = collectives_[number - first_];
  const std::shared_ptr<Transfer> transfer = collective.transfer;
  if (transfer->key() != key) {
    const bool by_root =
        key.what == transfer->key().what && key.size_bytes == transfer->key().size_bytes;
    const auto call = [&](const TransferKey& one) {
      return by_root ? fmt::format("{} with root {}", one.what, one.root)
                     : fmt::format("{} of {} bytes", one.what, one.size_bytes);
    };
    transfer->mismatch(fmt::format("rank {} calls {} where another rank calls {}", rank, call(key),
                                   call(transfer->key())));
  }
  if (of_kernel != collective.of_kernel) {
    const auto group = [](std::size_t count) {
      return count < 2 ? "alone" : fmt::format("in a group of {} collectives", count);
    };
    transfer->mismatch(fmt::format("rank {} calls {} {} where another rank calls it {}", rank,
                                   key.what, group(of_kernel), group(collective.of_kernel)));
  }
  // The ranks join in order: the first collective is complete before any other.
  if (++collective.joined == running_.size()) {
    collectives_.pop_front();
    ++first_;
  }
  return transfer;
}

/// A group's calls are joined one by one, the first one first, and loops repeat their groups.
const nccl::Cost& NcclComm::cost_of(const std::vector<nccl::Call>& together, std::size_t place) {
  const bool begins = place == 0 || together.size() != last_together_.size();
  if (begins && together != last_together_) {
    last_together_ = together;
    last_costs_ = nccl::group_cost(machine_, tuning_, together);
  }
  return last_costs_[place];
}

nccl::CollectiveTime NcclComm::time_alone(Reading& read, const NcclCall& call, std::uint32_t rank,
                                          bool both_ways) const {
  const Variables v = call.variables;
  const OpKind& kind = call.execution.op->kind;
  if (const auto* const op = std::get_if<NcclCollective>(&kind)) {
    return nccl::collective_time(
        read, tuning_,
        {op->kind, op->size.eval(v), op->type, op->op, call.direct, root_of(*op, v)});
  }
  const auto pair = [&](const auto& op) {
    const auto peer = static_cast<std::uint32_t>(op.peer.eval(v));
    return nccl::send_recv_time(read, tuning_, op.size.eval(v), both_ways, peer_of(rank, peer),
                                call.direct);
  };
  const auto* const send = std::get_if<NcclSend>(&kind);
  return send != nullptr ? pair(*send) : pair(std::get<NcclRecv>(kind));
}

bool NcclComm::writes_directly(const NcclCall& call, std::uint32_t rank) const {
  Reading read{machine_};
  return time_alone(read, call, rank, true).choice.direct;
}

std::vector<Share> NcclComm::shares(const NcclCall& call, const NcclTimed& timed) const {
  const auto alone = [&](Reading& read) {
    return time_alone(read, call, timed.rank, timed.both_ways);
  };
  Reading read{machine_};
  if (alone(read).model == nccl::Model::Price) return {};  // no parameter's doing
  return shares_of(machine_, [&](Reading& nudged) { return alone(nudged).terms.seconds; });
}

std::vector<std::vector<Share>> NcclComm::group_shares(
    const std::vector<nccl::Call>& together) const {
  std::vector<std::vector<Share>> shares = shares_of_each(machine_, [&](Reading& nudged) {
    std::vector<double> seconds;
    for (const nccl::GroupedTime& time : nccl::group_time(nudged, tuning_, together)) {
      seconds.push_back(time.seconds);
    }
    return seconds;
  });
  Reading read{machine_};
  for (std::size_t i = 0; i < together.size(); ++i) {
    const bool is_price =
        nccl::collective_time(read, tuning_, together[i]).model == nccl::Model::Price;
    if (is_price) shares[i].clear();  // no parameter's doing
  }
  return shares;
}

Duration NcclComm::host_time(std::uint32_t rank, const OpKind& op, Variables variables,
                             const nccl::Choice& choice) const {
  const auto* const collective = std::get_if<NcclCollective>(&op);
  if (collective == nullptr) return Duration{0};
  if (!nccl::is_send_recv(collective->kind)) {
    const bool counts = machine_.has(Param::NcclHostPerChannel);
    return counts ? machine_.time(Param::NcclHostPerChannel) * std::int64_t{choice.channels}
                  : Duration{0};
  }
  // A send and a receive for each rank, a root's for each rank and its own. Before 2.28 they are
  // the program's calls; since then NCCL makes them of one call, the first at no cost.
  std::int64_t operations = 2 * std::int64_t{ranks()};
  const bool is_rooted = collective->kind != CollectiveKind::AllToAll;
  if (is_rooted) operations = collective->root.eval(variables) == rank ? ranks() + 1 : 1;
  if (tuning_.version >= nccl::Version{2, 28, 0}) --operations;
  return machine_.time(Param::NcclHostPerOp) * operations;
}

Duration NcclComm::mixing_time() const {
  const bool mixes = captured_ && machine_.has(Param::NcclHostMixing) &&
                     tuning_.settings.get(nccl::Number::GraphMixing, 1) != 0;
  return mixes ? machine_.time(Param::NcclHostMixing) : Duration{0};
}

nccl::Peer NcclComm::peer_of(std::uint32_t from, std::uint32_t to) const {
  return nodes_[from] == nodes_[to] ? nccl::Peer::SameNode : nccl::Peer::OtherNode;
}

std::shared_ptr<Transfer> NcclComm::join_send_recv(std::uint32_t from, std::uint32_t to,
                                                   bool sender, Bytes size, bool both_ways,
                                                   bool direct, Duration& ahead) {
  const auto wait_behind = [&](const Transfer& transfer) {
    ahead += nccl::behind(machine_, transfer.cost(), ahead, both_ways);
  };
  PairQueue& queue = send_recv_[{from, to}];
  auto& mine = sender ? queue.unmatched_sends : queue.unmatched_recvs;
  auto& other = sender ? queue.unmatched_recvs : queue.unmatched_sends;
  if (!other.empty()) {
    const std::shared_ptr<Transfer> transfer = other.front();
    other.pop_front();
    if (transfer->key().size_bytes != size.count) {
      transfer->mismatch(fmt::format("{}: one side has {} bytes, the other {}",
                                     transfer->key().what, transfer->key().size_bytes, size.count));
    }
    wait_behind(*transfer);
    return transfer;
  }
  const TransferKey key{fmt::format("send from rank {} to rank {}", from, to), size.count, -1};
  nccl::Cost cost = from == to ? nccl::own_copy_cost(machine_, tuning_, size, both_ways, direct)
                               : nccl::send_recv_cost(machine_, tuning_, size, both_ways,
                                                      peer_of(from, to), direct);
  cost.latency += ahead;
  const TransferPath path =
      from == to ? all_
                 : through_fabric(pair_path_(from, to),
                                  fabric_ == nullptr ? nullptr : &fabric_->between(from, to));
  auto transfer =
      std::make_shared<Transfer>(engine_, under_way_, key, std::vector{from, to}, cost, path);
  wait_behind(*transfer);
  const nccl::Choice& choice = transfer->cost().choice;
  if (cost.hop && from != to) transfer->set_chain({0, 1}, false);
  // A sender to a registered buffer waits until its receiver says where that is; and a rank copies
  // to itself only within one group.
  if (size.count <= room(choice) && !choice.direct && from != to) {
    transfer->set_buffered(from);
    add_hop(*transfer, size, 0, 1, false);
  }
  if (network_ != nullptr) run_by_chunks(*transfer, from, to, size, both_ways, direct);
  mine.push_back(transfer);
  return transfer;
}

/// What a sender writes before it waits: all steps of its channels' buffers (nccl
/// src/device/prims_ll.h, prims_simple.h). Half of LL's bytes are flags.
std::uint64_t NcclComm::room(const nccl::Choice& choice) const {
  const std::uint64_t buffer = tuning_.buffer_bytes[nccl::index_of(choice.protocol)];
  return choice.channels * (choice.protocol == nccl::Protocol::LL ? buffer / 2 : buffer);
}

/// Between two parties of the transfer. A call begins a step of its own.
void NcclComm::add_hop(Transfer& transfer, Bytes size, std::size_t from, std::size_t to,
                       bool in_ring) {
  constexpr std::uint32_t kSteps = StepWindow<Transfer>::kSteps;
  const double step = static_cast<double>(room(transfer.cost().choice)) / kSteps;
  const double steps = std::ceil(static_cast<double>(size.count) / step);
  const std::pair ranks{transfer.rank_of(from), transfer.rank_of(to)};
  transfer.add_hop(in_ring ? ring_steps_[ranks] : pair_steps_[ranks],
                   static_cast<std::uint32_t>(std::clamp(steps, 1.0, double{kSteps})), from, to);
}

/// A root sends to all others or reads from them, by pairs of calls: who sends does not wait.
void NcclComm::run_as_star(Transfer& transfer, const NcclCollective& op, Bytes size,
                           std::int64_t root) {
  const nccl::Choice& choice = transfer.cost().choice;
  if (size.count > room(choice) || choice.direct) return;
  const auto middle = static_cast<std::uint32_t>(root);
  const bool scatters = op.kind == CollectiveKind::Scatter;
  if (scatters) {
    transfer.set_buffered(middle);
  } else {
    transfer.set_buffered_for(middle);
  }
  for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
    if (rank == middle) continue;
    add_hop(transfer, size, scatters ? middle : rank, scatters ? rank : middle, false);
  }
}

/// Data go from rank to rank, so loops overlap: who is through with one operation begins the next.
/// More than the buffers hold waits for all ranks, unless they are only held up by the same chain
/// before.
void NcclComm::run_as_chain(Transfer& transfer, const NcclCollective& op, Bytes size,
                            std::int64_t root) {
  const auto first = static_cast<std::size_t>(root) + (op.kind == CollectiveKind::Reduce ? 1 : 0);
  std::vector<std::size_t> order;
  for (std::size_t hop = 0; hop < ranks(); ++hop) order.push_back((first + hop) % ranks());
  const nccl::Choice& choice = transfer.cost().choice;
  const bool follows = last_chain_ == fmt::format("{} {}", kind_name(op), root);
  const bool ahead = (size.count <= room(choice) || follows) && !choice.direct;
  for (std::size_t hop = 0; ahead && hop + 1 < order.size(); ++hop) {
    add_hop(transfer, size, order[hop], order[hop + 1], true);
  }
  transfer.set_chain(std::move(order), ahead);
}

/// What has no slices (NVLS and the like; collectives of one group), or nobody to send to, stays a
/// flow.
void NcclComm::run_by_chunks(Transfer& transfer, const NcclCollective& op, const nccl::Call& call,
                             std::int64_t root) {
  if (ranks() < 2) return;
  const nccl::Slices slices = nccl::collective_slices(machine_, tuning_, call);
  const std::vector<std::uint32_t>& order = order_;
  const std::uint32_t root_rank = static_cast<std::uint32_t>(std::max<std::int64_t>(0, root));
  const auto position = std::ranges::find(order, root_rank);
  ChunkProgram program = collective_program(
      slices, op.kind, ranks(), tuning_.topology.nodes,
      order.empty() ? root_rank : static_cast<std::uint32_t>(position - order.begin()));
  if (program.stages.empty()) return;
  take_ways(program, slices.shape == nccl::Shape::Pairs, order);
  std::vector<std::uint32_t> gpus = gpus_;
  for (std::uint32_t i = 0; i < order.size(); ++i) gpus[i] = gpus_[order[i]];
  transfer.set_chunks(*network_, program, gpus, order);
}

void NcclComm::run_by_chunks(Transfer& transfer, std::uint32_t from, std::uint32_t to, Bytes size,
                             bool both_ways, bool direct) {
  if (from == to) return;  // a copy inside the kernel
  ChunkProgram program = pair_program(
      nccl::send_recv_slices(machine_, tuning_, size, both_ways, peer_of(from, to), direct));
  take_ways(program, true, {from, to});
  transfer.set_chunks(*network_, program, {gpus_[from], gpus_[to]});
}

ChunkSize NcclComm::chunk_size_of(const OpKind& kind, Variables v) const {
  if (const auto* const op = std::get_if<NcclCollective>(&kind)) {
    if (ranks() < 2) return {};
    return chunk_size(
        nccl::collective_slices(machine_, tuning_, {op->kind, op->size.eval(v), op->type, op->op}),
        op->kind, ranks(), tuning_.topology.nodes);
  }
  const auto* const send = std::get_if<NcclSend>(&kind);
  if (send == nullptr) return {};  // its receive is counted with it
  const nccl::Slices slices =
      nccl::send_recv_slices(machine_, tuning_, send->size.eval(v), false, nccl::Peer::SameNode);
  ChunkSize size = chunk_size(slices, CollectiveKind::Scatter, 2, 1);
  size.messages *= ranks();  // each rank's call has its own
  return size;
}

/// `ranks`: of the communicator, that the program's are; empty: the same.
void NcclComm::take_ways(ChunkProgram& program, bool own_nics,
                         const std::vector<std::uint32_t>& ranks) {
  if (fabric_ == nullptr) return;
  const auto rank_of = [&](std::uint32_t of) { return ranks.empty() ? of : ranks[of]; };
  for (ChunkLink& link : program.links) {
    link.way =
        fabric_->way(rank_of(program.stages[link.from].rank), rank_of(link.to_rank), own_nics);
  }
}

}  // namespace foretrace::sim
