// A CUDA stream: a queue of work that the device runs in order, one entry at a time.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "models/cost/stream.h"
#include "models/machine/machine.h"
#include "sim/chunk/network.h"
#include "sim/device/device.h"
#include "sim/device/gaps.h"
#include "sim/device/hardware_queue.h"
#include "sim/device/work.h"
#include "sim/engine/queue.h"
#include "sim/host/functions.h"
#include "sim/record/recorder.h"

namespace foretrace::sim {

/// What a stream's process gives it.
class Context {
 public:
  Context(Engine& engine, const Machine& machine, Gaps& gaps_of_all)
      : host_functions{engine, machine}, gaps{gaps_of_all} {}
  virtual ~Context() = default;
  /// A kernel of `execution` broke the context.
  virtual void lost(const Execution& execution) = 0;
  HostFunctions host_functions;
  Gaps& gaps;  ///< of all processes: their machine is the same
};

class StreamQueue final : Handler,
                          KernelOwner,
                          Device::CopyOwner,
                          HostFunctions::Owner,
                          GraphOwner,
                          ChunkNetwork::Owner,
                          Waiter {
 public:
  StreamQueue(Engine& engine, Device& device, Context& context, Recorder& recorder,
              const Machine& machine, const Stream& declared, std::uint32_t lane)
      : engine_{engine},
        device_{device},
        context_{context},
        recorder_{recorder},
        machine_{machine},
        declared_{declared},
        lane_{lane} {}
  StreamQueue(const StreamQueue&) = delete;
  StreamQueue& operator=(const StreamQueue&) = delete;

  /// Legacy default stream of the same device, for a blocking stream; null otherwise.
  void set_legacy(StreamQueue* legacy) { legacy_ = legacy; }
  bool is_legacy() const { return declared_.kind == StreamKind::LegacyDefault; }
  /// The blocking streams beside a legacy default stream.
  void add_blocking_peer(StreamQueue& peer) { blocking_peers_.push_back(&peer); }
  /// Shared with other streams, when there are more streams than hardware queues.
  void set_hardware_queue(HardwareQueue& queue) { hardware_queue_ = &queue; }
  /// A stream of the same device that runs what `graph` captured from this one.
  std::unique_ptr<StreamQueue> make_chain(GraphExec& graph) const;

  /// Queues `work`; the host's part is over.
  void push(Work&& work);

  /// When the calls of host threads that are under way, and that wait for them, have ended.
  TimePoint calls_until() const { return calls_until_; }
  void called_until(TimePoint end) { calls_until_ = std::max(calls_until_, end); }

  std::uint64_t issued() const { return issued_; }
  std::uint64_t completed() const { return completed_; }
  std::uint64_t pending() const { return issued_ - completed_; }

  /// The host learns that the first `count` entries have ended.
  void seen_to(std::uint64_t count) { seen_ = std::max(seen_, count); }
  /// Whether it was given work that the host does not know to have ended.
  bool has_unseen_work() const { return last_work_ > seen_; }

  /// The last entry so far is an upload that goes on while the host stages it.
  void flows() { flowing_ = issued_; }
  /// And nothing else is to be done.
  bool only_flows() const { return flowing_ == issued_ && pending() <= 1 && !waits_for_peers(); }
  /// The last entry so far is an upload that the host has staged.
  void staged() { staged_ = issued_; }
  /// The entry that such uploads have got to.
  std::uint64_t last_staged() const { return staged_; }
  /// Wakes `waiter` once `count` entries have completed. Only when they have not yet.
  void wait_for_count(std::uint64_t count, Waiter& waiter);

  /// It has work, or its next entry waits for other streams'.
  bool is_busy() const { return pending() > 0 || waits_for_peers(); }
  /// A legacy default stream whose next entry would wait for blocking streams.
  bool waits_for_peers() const;

  const Stream& declared() const { return declared_; }
  Device& device() { return device_; }
  std::uint32_t lane() const { return lane_; }

  /// The entry that the stream is at, for explaining a deadlock; null when it is empty.
  const Work* front() const { return queue_.empty() ? nullptr : &queue_.front(); }

  // NCCL decides when its kernels end.
  void nccl_kernel_finished() { device_.release(*this); }

 private:
  struct PreviousCopy {
    CopyEngineKind engine{};
    Bytes size{};
    bool in_stream = false;
  };
  enum class State : std::uint8_t { Idle, Sleeping, Blocked, Running };
  enum Event : std::uint64_t { kAwake, kCopyLatencyOver, kCopyArrived, kNcclBegins, kReadvance };

  void fire(std::uint64_t what) override;
  void wake() override;
  void kernel_began() override;
  void kernel_ended() override;
  void copy_engine_free() override;
  void host_function_began() override;
  void host_function_ended() override { finish(cost::Before::HostFunction); }
  void graph_ended() override;
  /// A copy's last slice has arrived.
  void rank_over(std::uint32_t) override { finish(cost::Before::Copy); }

  void advance();
  bool waits_for_other_streams();
  bool waits_for_hardware_queue();
  void leave_hardware_queue();
  void record_spans(const Work& work);
  Duration gap_before(const Work& work) const;
  TimePoint peer_event_seen_by(const Work& work) const;
  void follow(const StreamQueue& other);
  std::uint32_t detail_of(const Work& work) const;
  void begin(const Work& work);
  void finish(cost::Before what);
  void pop();
  void complete_ticket(Ticket& ticket);

  Engine& engine_;
  Device& device_;
  Context& context_;
  Recorder& recorder_;
  const Machine& machine_;
  const Stream& declared_;
  std::uint32_t lane_;
  StreamQueue* legacy_ = nullptr;
  std::vector<StreamQueue*> blocking_peers_;
  HardwareQueue* hardware_queue_ = nullptr;
  GraphExec* graph_ = nullptr;  ///< whose chain this is

  Queue<Work> queue_;
  /// For each queued entry of a legacy default stream: how far its peers must be.
  Queue<std::vector<std::pair<StreamQueue*, std::uint64_t>>> peer_counts_;
  State state_ = State::Idle;
  std::uint32_t part_ = 1;  ///< of the running entry, in a graph
  bool advancing_ = false;
  cost::Before previous_ = cost::Before::Nothing;
  cost::Before waited_for_ = cost::Before::Nothing;  ///< by the event that held it up last
  /// The last event of another GPU that it waited for, since what it did last.
  struct PeerEvent {
    cost::Before event = cost::Before::Nothing, after = cost::Before::Nothing;
    TimePoint when{};
  } peer_event_;
  PreviousCopy previous_copy_;
  const StreamQueue* follows_ = nullptr;  ///< held up by it, by the legacy default stream's order
  bool event_between_ = false;  ///< a record or satisfied wait since the previous kernel or copy
  TimePoint ready_{};           ///< when the previous entry left the stream free
  TimePoint began_{};
  std::uint64_t issued_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t last_work_ = 0;  ///< the last entry but time stamps and places in order
  std::uint64_t seen_ = 0;
  std::uint64_t staged_ = 0, flowing_ = 0;
  TimePoint calls_until_{};
  std::vector<std::pair<std::uint64_t, Waiter*>> waiters_;
};

}  // namespace foretrace::sim
