// A communicator as the simulator runs it: its ranks' launches (launch.h) meet in transfers
// (transfer.h).
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/machine/reading.h"
#include "models/nccl/time/cost.h"
#include "models/nccl/time/group_cost.h"
#include "scenarios/program/nccl_connections.h"
#include "sim/chunk/network.h"
#include "sim/device/work.h"
#include "sim/engine/engine.h"
#include "sim/engine/queue.h"
#include "sim/nccl/connection.h"
#include "sim/nccl/launch.h"
#include "sim/nccl/steps.h"
#include "sim/nccl/transfer.h"
#include "sim/network/network.h"

namespace foretrace::sim {

/// 0 where the operation has none.
inline std::uint32_t root_of(const NcclCollective& op, Variables v) {
  return static_cast<std::uint32_t>(std::max<std::int64_t>(0, op.root.eval(v)));
}

/// What a call's time depends on beside itself.
struct NcclTimed {
  std::uint32_t rank;
  bool both_ways;
};

/// A communicator at run time.
class NcclComm {
 public:
  /// `running`: the ranks that are simulated; all, or those that the others are alike to.
  NcclComm(Engine& engine, const Machine& machine, const Communicator& declared,
           const nccl::Tuning& tuning, bool warm, std::vector<std::uint32_t> running);

  const Communicator& declared() const { return declared_; }
  const nccl::Settings& settings() const { return tuning_.settings; }
  std::uint32_t ranks() const { return static_cast<std::uint32_t>(declared_.members.size()); }
  std::uint32_t rank_of(RankPlace place) const;

  /// The ports and links that a transfer over all ranks, or from one rank to another, uses.
  using PairPath = std::function<TransferPath(std::uint32_t from, std::uint32_t to)>;
  void set_paths(TransferPath all, PairPath pair) {
    all_ = all;
    pair_path_ = std::move(pair);
  }

  /// Chunk fidelity: transfers run slice by slice between these GPUs, the members' in order.
  void set_network(ChunkNetwork& network, std::vector<std::uint32_t> gpus) {
    network_ = &network;
    gpus_ = std::move(gpus);
  }

  /// Where each rank is; NCCL's rings visit the nodes one after the other, whatever the ranks are.
  void set_places(const std::vector<Nic>& places);
  /// What lies between the nodes, where it is known.
  void set_fabric(std::unique_ptr<CommNetwork> fabric) { fabric_ = std::move(fabric); }

  /// What the first rank's buffers allow counts for all: NCCL asks that they be alike. The
  /// collective is number `place` of the calls that one kernel runs together.
  std::shared_ptr<Transfer> join_collective(std::uint32_t rank, const NcclCollective& op,
                                            Bytes size, std::int64_t root, bool direct,
                                            const std::vector<nccl::Call>& together,
                                            std::size_t place);
  /// `ahead`: what those of the same group and pair take beside the wire; this one is added to it.
  std::shared_ptr<Transfer> join_send_recv(std::uint32_t from, std::uint32_t to, bool sender,
                                           Bytes size, bool both_ways, bool direct,
                                           Duration& ahead);

  /// `rank` is here for the connection that its operation needs. Null when that was made before;
  /// else the host thread returns at its `ready`, once it is made.
  Connection* connect_collectives(std::uint32_t rank);
  Connection* connect_pairs(std::uint32_t rank, const std::vector<NcclConnections::Pair>& pairs);
  Connection* initialize(std::uint32_t rank);
  bool is_initialized() const { return initialization_.made(); }

  /// Whether NCCL's choice for the call, alone, goes straight into the peers' registered buffers.
  bool writes_directly(const NcclCall& call, std::uint32_t rank) const;

  /// At chunk fidelity, of an operation that is alone in its group: what all its ranks pass on.
  ChunkSize chunk_size_of(const OpKind& op, Variables variables) const;

  /// How much each parameter is of the call's time on the GPUs, where its kernel runs no other one.
  std::vector<Share> shares(const NcclCall& call, const NcclTimed& timed) const;
  /// The same of each of the calls that one kernel runs together.
  std::vector<std::vector<Share>> group_shares(const std::vector<nccl::Call>& together) const;

  NcclLaunch::Order& last(std::uint32_t rank) { return last_[rank]; }

  /// A graph has captured an operation of this communicator, which NCCL never forgets.
  void set_captured() { captured_ = true; }

  /// What the host takes for one of `rank`'s operations, beyond its call.
  Duration host_time(std::uint32_t rank, const OpKind& op, Variables variables,
                     const nccl::Choice& choice) const;
  /// What it takes for each kernel, beyond its call, once a graph has captured the communicator:
  /// with NCCL_GRAPH_MIXING_SUPPORT, the default, NCCL keeps the order with the graph's kernels
  /// by an event (src/misc/strongstream.cc).
  Duration mixing_time() const;

 private:
  nccl::CollectiveTime time_alone(Reading& read, const NcclCall& call, std::uint32_t rank,
                                  bool both_ways) const;
  const nccl::Cost& cost_of(const std::vector<nccl::Call>& together, std::size_t place);
  std::uint64_t room(const nccl::Choice& choice) const;
  void add_hop(Transfer& transfer, Bytes size, std::size_t from, std::size_t to, bool in_ring);
  void run_as_star(Transfer& transfer, const NcclCollective& op, Bytes size, std::int64_t root);
  void run_as_chain(Transfer& transfer, const NcclCollective& op, Bytes size, std::int64_t root);
  void run_by_chunks(Transfer& transfer, const NcclCollective& op, const nccl::Call& call,
                     std::int64_t root);
  void run_by_chunks(Transfer& transfer, std::uint32_t from, std::uint32_t to, Bytes size,
                     bool both_ways, bool direct);
  Connection* arrive(Connection& connection, std::uint32_t rank, Duration cost);
  nccl::Peer peer_of(std::uint32_t from, std::uint32_t to) const;
  TransferPath through_fabric(TransferPath path, const NetworkRoute* route) const;
  void take_ways(ChunkProgram& program, bool own_nics, const std::vector<std::uint32_t>& ranks);

  Engine& engine_;
  const Machine& machine_;
  const Communicator& declared_;
  const nccl::Tuning& tuning_;
  bool warm_;
  std::vector<std::uint32_t> running_;
  bool captured_ = false;  ///< for all ranks with the first one's: they capture side by side
  TransferPath all_{};
  PairPath pair_path_;
  ChunkNetwork* network_ = nullptr;
  std::vector<std::uint32_t> gpus_;
  std::vector<std::uint32_t> nodes_;  ///< by rank
  std::vector<std::uint32_t> order_;  ///< ranks node by node; empty: they are already
  std::unique_ptr<CommNetwork> fabric_;

  std::map<RankPlace, std::uint32_t> rank_of_;
  Transfer::UnderWay under_way_;
  struct Collective {
    std::shared_ptr<Transfer> transfer;
    std::size_t of_kernel = 1;  ///< collectives that the first rank's kernel runs together
    std::uint32_t joined = 0;
  };
  Queue<Collective> collectives_;  ///< from number first_ on
  using Windows = std::map<std::pair<std::uint32_t, std::uint32_t>, StepWindow<Transfer>>;
  Windows ring_steps_, pair_steps_;  ///< by who writes and who reads
  std::string last_chain_;  ///< of the newest one, kind and root; empty when it is no chain
  std::vector<nccl::Call> last_together_;
  std::vector<nccl::Cost> last_costs_;
  std::uint64_t first_ = 0;
  std::vector<std::uint64_t> next_collective_;  ///< by rank
  struct PairQueue {
    Queue<std::shared_ptr<Transfer>> unmatched_sends, unmatched_recvs;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, PairQueue> send_recv_;
  Connection collectives_connection_;
  NcclConnections pairs_;
  std::deque<Connection> pair_connections_;  ///< by the set-up
  Connection initialization_;
  std::vector<NcclLaunch::Order> last_;
};

}  // namespace foretrace::sim
