// The clock: events fire one after the other, and flows share the bandwidth of links. Without flows
// the event queue is all there is. From the first flow on SimGrid drives the clock, its max-min
// solver shares bandwidth, and the queue is plugged into it as one more resource model. One engine
// with flows per process: SimGrid's clock and callbacks are process-wide.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/engine/event_queue.h"
#include "sim/engine/flows.h"

namespace foretrace::sim {

class Engine {
 public:
  Engine();
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  EventQueue& queue() { return queue_; }
  TimePoint now() const { return queue_.now(); }

  /// Before run() only. Links have no latency: with one, SimGrid would share bandwidth in
  /// proportion to 1/latency. Latencies are events of the queue.
  LinkId add_link(const std::string& name, Bandwidth bandwidth,
                  LinkSharing sharing = LinkSharing::Shared);

  /// From now on, for flows under way too.
  void set_bandwidth(LinkId link, Bandwidth bandwidth);

  /// The run may ask for this many different paths. Before the first one; without it there are
  /// some for a hundred GPUs.
  void reserve_paths(std::size_t count);

  /// The route over these links; equal lists give the same path. Naming a link twice doubles its
  /// load. At any time. Throws UsageError when there are more than were reserved, or than the four
  /// million that we make at most.
  PathId path(const std::vector<LinkId>& links);
  /// Of all paths together: SimGrid's work for a flow grows with the square of its path's.
  std::size_t path_links() const;

  /// Moves `size` bytes over `path` from now on; fires `who` when the last byte has arrived. The
  /// first one loads SimGrid: IoError where that cannot be (sim/engine/load_flows.h).
  void start_flow(PathId path, Bytes size, Handler& who, std::uint64_t what);

  /// Whether flows are on their way: then the clock may stop between any two events of the queue.
  bool has_flows() const;

  /// Runs until nothing is left to happen.
  void run();

 private:
  class Impl;
  EventQueue queue_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretrace::sim
