// An instantiated CUDA graph: what was captured, stream by stream, and its launches.
//
// Every captured stream is a chain, a StreamQueue of the graph's own; each launch fills the chains
// anew. The records and waits of events between captured streams stay what they were.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "sim/device/stream.h"
#include "sim/device/work.h"
#include "sim/engine/queue.h"
#include "sim/nccl/launch.h"

namespace foretrace::sim {

class GraphExec final : Waiter {
 public:
  explicit GraphExec(Engine& engine) : engine_{engine} {}
  GraphExec(const GraphExec&) = delete;
  GraphExec& operator=(const GraphExec&) = delete;

  // ---- capturing
  void begin_capture();
  void capture(StreamQueue& stream, Work::What what);
  void capture(std::vector<NcclCall> calls) { entries_.push_back({nullptr, std::move(calls)}); }
  std::uint32_t nodes() const { return nodes_; }

  // ---- running
  struct Entry {
    StreamQueue* stream;  ///< the captured one; null for NCCL calls, which know theirs
    std::variant<Work::What, std::vector<NcclCall>> what;
  };
  const std::vector<Entry>& entries() const { return entries_; }
  /// Records and waits are none: they order nodes.
  static bool is_node(const Entry& entry) {
    const auto* what = std::get_if<Work::What>(&entry.what);
    return what == nullptr ||
           !(std::holds_alternative<RecordWork>(*what) || std::holds_alternative<WaitWork>(*what));
  }
  /// The chain that runs what was captured from `stream`.
  StreamQueue& chain_of(StreamQueue& stream);

  /// `work` is about to be queued on `stream`, as its entry number `count`.
  void launched(GraphWork& work, StreamQueue& stream, std::uint64_t count) {
    work.after = std::exchange(last_stream_, &stream);
    work.after_count = std::exchange(last_count_, count);
  }
  /// Runs `work` after the launches before it. Launches of one graph never overlap.
  void start(GraphWork& work, const Execution& execution, std::uint32_t lane, GraphOwner& owner);

  // What the chains' spans are named by.
  const Execution& execution() const { return launches_.front().execution; }
  std::uint32_t lane() const { return launches_.front().lane; }
  std::uint32_t next_part() { return ++parts_; }

 private:
  struct Launch {
    GraphWork* work;
    Execution execution;
    std::uint32_t lane;
    GraphOwner* owner;
  };
  void wake() override;
  void begin();

  Engine& engine_;
  std::vector<Entry> entries_;
  std::uint32_t nodes_ = 0;
  std::map<StreamQueue*, std::unique_ptr<StreamQueue>> chains_;
  Queue<Launch> launches_;  ///< the first one runs
  bool running_ = false;
  std::size_t open_chains_ = 0;
  StreamQueue* last_stream_ = nullptr;  ///< of the last launch that was called
  std::uint64_t last_count_ = 0;
  std::uint32_t parts_ = 0;
};

}  // namespace foretrace::sim
