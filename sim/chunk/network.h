// Slices on their way: stages that ask for ports, ports that serve them in the order they came, and
// buffers whose places go back to their senders. nccl-timing's rule: a slice leaves a rank when
// what it is made of has arrived there, the receiver has a place for it, and the rank's own
// channels are done with the slice before.
//
// One event of the engine stands for the earliest of all entries in the queue of ours. While no
// flow is active and nothing else is due, we run ahead without asking the engine.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/chunk/block_pool.h"
#include "sim/chunk/program.h"
#include "sim/chunk/queue.h"
#include "sim/engine/engine.h"

namespace foretrace::sim {

/// What lies between two nodes: how much longer the way is than through one switch, and the links,
/// with how many times a NIC's time a slice takes each.
struct ChunkWay {
  struct Part {
    std::uint32_t link;
    double times;
  };
  ChunkTime latency = 0;
  std::vector<Part> links;
};

class ChunkNetwork final : Handler {
 public:
  /// Told when all stages of a rank are through.
  class Owner {
   public:
    virtual void rank_over(std::uint32_t rank) = 0;

   protected:
    ~Owner() = default;
  };

  ChunkNetwork(Engine& engine, std::uint32_t gpus) : engine_{engine}, ports_(gpus) {}

  struct OperationId {
    std::uint32_t value{};
  };

  /// An operation whose rank i is on `gpus[i]`. Nothing happens before begin().
  OperationId add(const ChunkProgram& program, const std::vector<std::uint32_t>& gpus,
                  Owner& owner);
  /// From now on `rank`, which has stages, does its part. Once for each.
  void begin(OperationId operation, std::uint32_t rank);

  /// A way that links of programs may take; its number.
  std::uint32_t add_way(ChunkWay way);
  /// A GPU has lost NVLinks: it moves `share` of what others do.
  void narrow(std::uint32_t gpu, double share) { ports_[gpu].share = share; }

  /// From now on NCCL's slices out of and into this GPU take so many times as long. The ports are
  /// free as early as before: it is the GPU's memory that keeps them waiting.
  void slow(std::uint32_t gpu, double times) { ports_[gpu].slowness = times; }

  /// Slices that have gone through ports so far.
  std::uint64_t messages() const { return messages_; }

 private:
  enum What : std::uint32_t { kAsk, kPortFree, kThrough };
  enum class State : std::uint8_t { Idle, WaitsForInput, WaitsForCredit, Busy };

  struct Port {
    ChunkTime out_free = 0, in_free = 0;
    double slowness = 1;
    double share = 1;                                 ///< of its bandwidth that is left
    std::uint32_t first = kNowhere, last = kNowhere;  ///< stages that wait to send
  };
  struct Slot {
    ChunkTime begin;  ///< of the slice; once it is consumed: when its place was free again
    ChunkTime end;
  };
  struct Link {
    std::uint32_t from, to, to_port;
    std::uint32_t first_slot, window;
    std::uint32_t sent, taken;           ///< slices
    std::uint32_t send_slot, take_slot;  ///< the next ones
    bool local;                          ///< within a rank: no port
    std::uint32_t way;                   ///< between nodes, in ways_
  };
  struct Stage {
    ChunkTime free = 0;       ///< when its channels are done with what came before
    ChunkTime asked = 0;      ///< when the running slice first asked for a port
    ChunkTime input_end = 0;  ///< when the running slice has arrived completely
    std::uint32_t operation = 0;
    std::uint32_t rank = 0;
    std::uint32_t port = 0;
    std::uint32_t first_input = 0, first_output = 0;  ///< in edges_
    std::uint32_t from = kNowhere, to = kNowhere;     ///< the first of each: most have one
    std::uint16_t inputs = 0, outputs = 0;
    std::uint32_t turns = 0;        ///< that the running message still needs
    std::uint32_t slice = 0;        ///< of the step
    std::uint32_t step = 0;         ///< of the pass
    std::uint32_t next = kNowhere;  ///< behind it at its port
    std::uint64_t pass = 0;
    std::uint16_t output = 0;  ///< being served
    State state = State::Idle;
  };
  struct Operation {
    Owner* owner = nullptr;
    ChunkPass full, last;
    ChunkTime full_turn = 0, last_turn = 0;  ///< of a port: a division takes longer than the rest
    std::uint64_t passes = 0;
    ChunkTime fixed = 0, hop = 0;
    std::uint32_t sends = 1;
    bool ring = false;
    bool together = false;
    bool by_kernel = true;
    std::uint32_t first_stage = 0, stages = 0, first_link = 0, links = 0;
    std::uint32_t first_edge = 0, edges = 0, first_slot = 0;
    std::size_t slots = 0;
    std::vector<std::uint32_t> rank_stages;  ///< first stage of each rank, then the end
    std::vector<std::uint32_t> open;         ///< stages of each rank that are not through
    std::uint32_t open_ranks = 0;
  };

  void fire(std::uint64_t version) override;
  void run_ahead();
  void reschedule();
  void push(ChunkTime when, What what, std::uint32_t where) {
    queue_.push({when < now_ ? now_ : when, what, where});
  }

  /// A stage that something is done with, looked up once.
  struct At {
    std::uint32_t index;
    Stage& stage;
    const Operation& operation;
  };
  At at(std::uint32_t index) {
    Stage& stage = stages_[index];
    return {index, stage, operations_[stage.operation]};
  }

  void advance(const At& at);
  bool inputs_are_there(Stage& stage, ChunkTime hop, ChunkTime& ready) const;
  bool outputs_have_room(const Stage& stage, ChunkTime& ready) const;
  bool slice_over(const At& at, bool received, ChunkTime end);
  void ask(std::uint32_t index);
  void port_free(std::uint32_t index);
  void serve(const At& at);
  ChunkTime through_way(const ChunkWay& way, const ChunkPass& pass);
  void send(const At& at, ChunkTime begin, ChunkTime finish);
  void through(std::uint32_t index);
  void remove(std::uint32_t operation);
  std::uint32_t input_of(const Stage& stage, std::uint32_t i) const {
    return i == 0 ? stage.from : edges_[stage.first_input + i];
  }
  std::uint32_t output_of(const Stage& stage, std::uint32_t i) const {
    return i == 0 ? stage.to : edges_[stage.first_output + i];
  }
  static const ChunkPass& pass_of(const Operation& operation, const Stage& stage) {
    return stage.pass < operation.full.count ? operation.full : operation.last;
  }

  Engine& engine_;
  ChunkQueue queue_;
  ChunkTime now_ = 0;
  std::vector<Port> ports_;  ///< by GPU
  BlockPool<Stage> stages_;
  BlockPool<Link> links_;
  BlockPool<std::uint32_t> edges_;
  BlockPool<Slot> slots_;
  std::vector<ChunkWay> ways_;
  std::vector<ChunkTime> way_free_;  ///< by link of the ways
  std::vector<Operation> operations_;
  std::vector<std::uint32_t> free_operations_;
  std::uint64_t version_ = 0;
  ChunkTime scheduled_ = ChunkQueue::kNever;
  bool running_ = false;
  std::uint64_t messages_ = 0;
  std::uint64_t added_ = 0;  ///< of all operations so far, sent or not
};

}  // namespace foretrace::sim
