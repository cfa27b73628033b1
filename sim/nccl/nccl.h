// NCCL as the simulator runs it: a launch is one rank's kernel for a call or a group; a transfer
// is what several launches do together (a collective, or a send with its receive).
//
// A launch occupies its SMs from when its stream reaches it; a transfer starts when the last of
// its ranks has begun (a chain's, when its first has); a kernel ends when all transfers of its
// launch are over.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/machine/reading.h"
#include "models/nccl/time/cost.h"
#include "models/nccl/time/group_cost.h"
#include "scenarios/program/nccl_connections.h"
#include "sim/chunk/network.h"
#include "sim/device/work.h"
#include "sim/engine/engine.h"
#include "sim/engine/queue.h"
#include "sim/nccl/steps.h"
#include "sim/network/network.h"

namespace foretrace::sim {

class StreamQueue;
class Transfer;

/// One NCCL call as a host thread made it, alone or in a group.
struct NcclCall {
  Execution execution;
  std::vector<std::int64_t> variables;
  bool direct = false;  ///< its buffers are registered: see models/nccl/rules/registration.h
};

class NcclLaunch {
 public:
  /// The launch before on the same communicator and device: NCCL runs them in this order,
  /// whatever streams they are on.
  struct Order {
    StreamQueue* stream = nullptr;
    std::uint64_t count = 0;
  };

  NcclLaunch(StreamQueue& stream, Order after) : stream_{stream}, after_{after} {}

  /// Takes part in `transfer` as `rank`.
  void add(std::shared_ptr<Transfer> transfer, std::uint32_t rank, const Execution& execution,
           const nccl::Choice& choice);

  /// The kernel runs: it arrives at all its collectives, and after them at its sends and receives,
  /// as each of its channels does.
  void began();
  void transfer_over();

  std::uint32_t channels() const { return channels_; }
  /// When the last of the ranks began that it has waited for; never later than it ended.
  TimePoint joined() const;
  /// A call that the kernel runs, and the detail of its span.
  struct Operation {
    Execution execution;
    std::uint32_t detail = 0;
  };
  const std::vector<Operation>& operations() const { return operations_; }
  void set_detail(std::size_t operation, std::uint32_t detail) {
    operations_[operation].detail = detail;
  }
  /// A transfer, and which of its parties this launch is.
  struct Part {
    std::shared_ptr<Transfer> transfer;
    std::size_t party;
    const Op* op;
  };
  const std::vector<Part>& parts() const { return parts_; }
  const Order& after() const { return after_; }
  const StreamQueue& stream() const { return stream_; }
  /// From the kernel's begin until it arrives at its transfers.
  void set_cold(Duration cold) { cold_ = cold; }
  Duration cold() const { return cold_; }

 private:
  void begin(std::size_t first, std::size_t end);

  StreamQueue& stream_;
  Order after_;
  std::vector<Part> parts_;      ///< collectives first
  std::size_t collectives_ = 0;  ///< of them
  std::vector<Operation> operations_;
  std::size_t open_ = 0;
  std::uint32_t channels_ = 0;
  Duration cold_{};
};

/// 0 where the operation has none.
inline std::uint32_t root_of(const NcclCollective& op, Variables v) {
  return static_cast<std::uint32_t>(std::max<std::int64_t>(0, op.root.eval(v)));
}

/// What every rank must agree on; also what a deadlock explanation shows.
struct TransferKey {
  std::string what;  ///< "nccl_all_reduce", "send from rank 0 to rank 1"
  std::uint64_t size_bytes = 0;
  std::int64_t root = -1;
  friend bool operator==(const TransferKey&, const TransferKey&) = default;
};

/// The links that a transfer uses.
struct TransferPath {
  PathId wire;
  /// What it does beside moving bytes over the wire goes through its GPUs' memories, at this rate
  /// while no other kernel uses them.
  struct Memory {
    PathId path;
    Bandwidth idle;
    Duration least;  ///< less than this beside the wire is too short for others to disturb
  };
  std::optional<Memory> memory;
  const NetworkRoute* network = nullptr;  ///< between nodes, where the fabric is known
  double wire_rate = 0;                   ///< bytes/s of the wire; with a network
};

/// Lives as long as a launch that takes part; and while an event or a flow of its own is under way,
/// which its last launch may not live to see.
class Transfer final : Handler, ChunkNetwork::Owner, public std::enable_shared_from_this<Transfer> {
 public:
  /// Those that have something under way.
  using UnderWay = std::list<std::shared_ptr<Transfer>>;

  /// Between these ranks: all of a communicator in their order, or a sender and its receiver.
  Transfer(Engine& engine, UnderWay& under_way, TransferKey key,
           const std::vector<std::uint32_t>& ranks, nccl::Cost cost, TransferPath path);

  /// `launch` takes part as `rank`: as the party of the number returned.
  std::size_t enlist(std::uint32_t rank, NcclLaunch& launch);
  /// That party's kernel runs; with the last one's the transfer starts.
  void began(std::size_t party);

  /// What fits into the receivers' buffers leaves when `sender` has begun, which need not wait for
  /// them; or, when all go to one `reader`, when the others have.
  void set_buffered(std::uint32_t sender) { buffered_sender_ = sender; }
  void set_buffered_for(std::uint32_t reader) { buffered_reader_ = reader; }

  /// Ranks pass the data on one after the other, each party `cost.hop` behind the one before it in
  /// `order`. `eager`: it leaves when the first one has begun, and nobody waits for those that come
  /// later but whom they pass data on to.
  void set_chain(std::vector<std::size_t> order, bool eager);

  /// `writer` fills so many steps of the buffers that `reader` empties (parties), and does not
  /// leave before there is room.
  void add_hop(StepWindow<Transfer>& window, std::uint32_t steps, std::size_t writer,
               std::size_t reader) {
    hops_.push_back({&window, steps, writer, reader});
  }
  /// There may be room for what waits for it.
  void room_made();

  /// Runs slice by slice instead: the program's rank i is the party i, on `gpus[i]`.
  /// `order`, when there is one: it is the party order[i].
  void set_chunks(ChunkNetwork& network, const ChunkProgram& program,
                  const std::vector<std::uint32_t>& gpus,
                  const std::vector<std::uint32_t>& order = {});

  /// A rank called something else in this place: the transfer never starts.
  void mismatch(std::string explanation) { mismatch_ = std::move(explanation); }

  const TransferKey& key() const { return key_; }
  const nccl::Cost& cost() const { return cost_; }
  const std::string& mismatch() const { return mismatch_; }
  std::uint32_t rank_of(std::size_t party) const { return parties_[party].rank; }
  /// Ranks whose kernels have not begun; those that have called it with their launches.
  struct Missing {
    std::uint32_t rank;
    const NcclLaunch* launch;
  };
  std::vector<Missing> missing() const;
  /// When the last one of them began; the epoch before it has.
  TimePoint joined() const { return joined_; }

 private:
  /// From kReadLate on: that the party of this number has read what had arrived before it came.
  enum Event : std::uint64_t { kLatencyOver, kArrived, kPassedOn, kRoom, kReadLate };
  void fire(std::uint64_t what) override;
  void at(TimePoint when, std::uint64_t what);
  void flow(PathId path, Bytes size, Event what);
  void keep_alive();
  bool may_leave(std::size_t party) const;
  void leave();
  void start_flows();
  void pass_on();
  void end_done();
  bool finds_room(std::size_t writer);
  void reads(std::size_t party);
  void rank_over(std::uint32_t rank) override;

  struct Party {
    std::uint32_t rank;
    NcclLaunch* launch = nullptr;
    bool begun = false;
    bool done = false;     ///< its part of the data has been moved
    bool is_lost = false;  ///< it came when another had called something else: never done
  };

  /// What one rank writes into the buffers of another.
  struct Hop {
    StepWindow<Transfer>* window;
    std::uint32_t steps;
    std::size_t writer, reader;
    bool written = false;  ///< before its reader came
  };

  Engine& engine_;
  UnderWay& under_way_;
  TransferKey key_;
  std::vector<Party> parties_;
  std::size_t missing_;  ///< parties that have not begun
  TimePoint joined_{};   ///< when the last one began
  nccl::Cost cost_;
  TransferPath path_;
  std::string mismatch_;
  std::optional<std::uint32_t> buffered_sender_, buffered_reader_;
  std::size_t flows_ = 0;           ///< on their way
  std::vector<std::size_t> chain_;  ///< parties in the order of a chain; empty: none
  std::size_t passed_ = 0;          ///< of them, that are over
  TimePoint passes_{};              ///< when the next one may be over
  std::vector<Hop> hops_;
  std::size_t scheduled_ = 0;      ///< events and flows that will fire
  UnderWay::iterator kept_alive_;  ///< while there are any
  bool waits_for_room_ = false;
  bool is_eager_ = false;
  bool has_left_ = false;
  bool has_arrived_ = false;
  ChunkNetwork* network_ = nullptr;  ///< chunk fidelity
  ChunkNetwork::OperationId chunks_{};
  std::vector<std::uint32_t> order_;     ///< party of each of the program's ranks; empty: itself
  std::vector<std::uint32_t> position_;  ///< the other way around
};

/// Host threads that connect to each other before the first use of a peer or an algorithm.
struct Connection {
  std::string what{};                    ///< for explaining a deadlock
  std::vector<std::uint32_t> missing{};  ///< ranks that have not come yet
  TimePoint ready{};                     ///< once nobody is missing
  std::vector<Waiter*> waiters{};
  /// Of pairs of ranks that one rank connects with at once, where they wait for each other.
  const NcclConnections* pairs = nullptr;
  std::uint32_t setup = 0;  ///< in `pairs`
  bool made() const { return pairs != nullptr ? pairs->is_done(setup) : missing.empty(); }
  /// Who has not come, and for what.
  std::string needs() const;
};

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
