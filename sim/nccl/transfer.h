// What several launches do together: a collective, or a send with its receive. It starts when the
// last of its ranks has begun; a chain's, when its first has.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/nccl/time/cost.h"
#include "sim/chunk/network.h"
#include "sim/engine/engine.h"
#include "sim/nccl/launch.h"
#include "sim/nccl/steps.h"
#include "sim/network/network.h"

namespace foretrace::sim {

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

}  // namespace foretrace::sim
