// The entries of all streams and the calls of all host threads, and how they come to their ends:
// an entry begins when everything before it has ended, has what it takes, and meets its partners.
// Filled by order_walk; the result is a HappensBefore.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scenarios/check/happens_before.h"
#include "scenarios/check/order_entry.h"

namespace foretrace {

class OrderGraph {
 public:
  OrderGraph(const Program& program, OrderMode mode, const OrderFacts& known);

  /// The host lane of a thread of a process.
  std::uint32_t add_host_lane(std::uint32_t process, std::uint32_t thread);
  /// A host's call begins: `clock` is what has ended for that thread, `after` made it so.
  std::uint32_t add_call(std::uint32_t lane, const ExecutedOp& call, const OrderClock& clock,
                         const std::vector<std::uint32_t>& after);
  /// The call returns.
  void end_call(std::uint32_t node);
  /// Queues `entry` on a stream of the process that `call` belongs to.
  std::uint32_t add_entry(std::uint32_t call, std::uint32_t stream, const OrderClock& clock,
                          OrderEntry entry);

  /// The last entries of `stream` that are queued before `call`, as far as that is known. The
  /// per-thread default stream is the caller's own, or that `of_all_threads`.
  std::vector<std::uint32_t> queued_before(std::uint32_t call, std::uint32_t stream,
                                           const OrderClock& clock,
                                           bool of_all_threads = false) const;
  /// Of `nodes`, ascending in one lane, the last that is issued before `call`; none is kNone.
  std::uint32_t last_known(const std::vector<std::uint32_t>& nodes, std::uint32_t call,
                           const OrderClock& clock) const;
  bool has_ended(std::uint32_t node) const { return result_.nodes[node].ended; }
  /// What has ended once `node` has.
  void join_end_of(std::uint32_t node, OrderClock& into) const;

  /// From now on entries that take signals begin only when begin_late is called, one at a time:
  /// whether there was one.
  void be_late() { is_late_ = true; }
  bool begin_late();

  void give(std::uint32_t semaphore, std::uint32_t giver_lane, const OrderClock& clock);
  bool can_take(std::uint32_t semaphore) const;
  void take(std::uint32_t semaphore, std::uint32_t taker_lane, OrderClock& into);

  OrderMode mode() const { return mode_; }
  const OrderNode& node(std::uint32_t node) const { return result_.nodes[node]; }
  std::uint32_t node_count() const { return static_cast<std::uint32_t>(result_.nodes.size()); }
  const OrderLane& lane_of(std::uint32_t node) const {
    return result_.lanes[result_.nodes[node].lane];
  }
  /// Grows with the memory that all this takes.
  std::uint64_t clock_entries() const {
    return clock_entries_ + made_entries_ + result_.edges.size();
  }
  /// Grows with the time that it takes.
  std::uint64_t joined_entries() const { return joined_entries_; }
  const OrderFacts& facts() const { return facts_; }
  void note_recorder(std::uint32_t event, std::uint32_t record);
  bool all_ended() const { return open_entries_ == 0; }
  /// Of NCCL's kernels that have begun and not ended: who else is missing, and where that is.
  std::map<std::uint32_t, std::string> missing_partners() const;
  HappensBefore take_result() && {
    result_.clock_entries = clock_entries_ + made_entries_;
    return std::move(result_);
  }

  static constexpr std::uint32_t kNone = 0xffffffff;

 private:
  /// What an entry needs until it ends.
  struct Open {
    std::uint32_t pending = 0;  ///< entries before it that have not ended
    std::vector<std::uint32_t> followers;
    OrderEntry entry;
    std::size_t taken = 0;  ///< of entry.takes
    bool has_begun = false;
    struct Kernel {
      std::size_t to_end = 0;   ///< kernels before it
      std::size_t to_meet = 0;  ///< of its parts
    };
    std::vector<Kernel> kernels{};
    std::size_t kernels_left = 0;
    std::vector<std::shared_ptr<OrderTransfer>> meets{};  ///< since it has begun
  };
  struct Semaphore {
    std::uint64_t taken = 0;
    std::vector<OrderClock> given;  ///< of every signal, what had ended before
    std::map<std::uint32_t, std::uint64_t> taken_by;
    std::vector<std::uint32_t> waiting;  ///< entries
  };

  std::uint32_t add_node(std::uint32_t lane, const ExecutedOp& call, const OrderClock& clock);
  std::uint32_t stream_lane(std::uint32_t process, std::uint32_t thread, std::uint32_t stream);
  std::vector<std::uint32_t> legacy_before(std::uint32_t call, std::uint32_t stream,
                                           const OrderClock& clock, OrderRole role) const;
  std::vector<std::uint32_t> lasts_before(std::uint32_t call, std::uint32_t stream,
                                          const OrderClock& clock, bool own_only,
                                          bool work_only) const;
  void follow(std::uint32_t node, std::uint32_t before);
  void settle();
  void begin(std::uint32_t node);
  void end(std::uint32_t node);
  bool takes_all(std::uint32_t node, Open& open);
  bool waits_inside(std::uint32_t node, Open& open);
  void begin_kernels(std::uint32_t node, const Open& open);
  void meet(std::uint32_t node, std::uint32_t kernel);
  static std::size_t begin_party(OrderTransfer& transfer, std::uint32_t node, std::uint32_t kernel);
  void meet_others(OrderTransfer& transfer, std::size_t index);
  void end_kernel(std::uint32_t node, std::uint32_t kernel);
  static bool has_met(const OrderTransfer& transfer, const OrderTransfer::Party& party);
  void hear(const OrderTransfer& transfer, const OrderTransfer::Party& party);
  std::string missing_in(const OrderTransfer& transfer) const;
  std::string place_of(const OrderTransfer::Party& party) const;
  void join(OrderClock& into, const OrderClock& from) const;
  void hand_over(std::uint32_t semaphore, std::uint32_t giver_lane, const OrderClock& clock);

  const Program& program_;
  OrderMode mode_;
  const OrderFacts& known_;  ///< of an earlier run
  OrderFacts facts_;         ///< of this one
  HappensBefore result_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>>
      stream_lanes_;  ///< of (process, stream): one per host thread that uses it
  std::vector<std::vector<std::uint32_t>> blocking_streams_;  ///< by device, per-thread ones too
  std::vector<std::uint32_t> host_lanes_;                     ///< by process * threads + thread
  std::map<std::uint32_t, std::vector<std::uint32_t>>
      separators_;  ///< by lane: the entries that the legacy stream and blocking ones keep apart
  std::unordered_map<std::uint32_t, Open> open_;
  std::unordered_map<std::uint32_t, OrderClock>
      met_;  ///< of NCCL's entries: what else their end implies
  std::map<std::uint32_t, Semaphore> semaphores_;
  std::vector<std::uint32_t> ready_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> beginning_;  ///< entries and their kernels
  std::deque<std::uint32_t> late_;
  bool is_late_ = false;
  std::uint64_t open_entries_ = 0;
  std::uint64_t clock_entries_ = 0;
  mutable std::uint64_t joined_entries_ = 0, made_entries_ = 0;
};

}  // namespace foretrace
