// Functions that streams call on the host (cudaLaunchHostFunc): what each has to do, and when it
// did it, because CUPTI 12 and 13.0 have no record for them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "hw/cuda/graph.h"
#include "hw/run/pass_barrier.h"
#include "hw/trace/records.h"
#include "scenarios/program/ids.h"

namespace foretrace::hw {

class HostFunctions;

/// One call of cudaLaunchHostFunc: the argument that the driver hands to the function. In a graph
/// it runs once per launch of the graph.
struct HostFunctionCall {
  struct Run {
    std::int64_t begin_ns{};
    std::int64_t end_ns{};
  };
  HostFunctions* owner{};
  Execution execution;
  int ordinal{};  ///< the stream's CUDA device
  std::int64_t duration_ns{};
  std::optional<SignalId> wait, signal;
  const Graph* graph{};     ///< that it was captured into; null: none
  std::uint32_t capture{};  ///< which of the graph's captures
  std::vector<Run> runs;    ///< written by the driver's thread, read when the devices are idle
};

/// The calls that one host thread made in a pass. Their memory is reused by later passes, so a
/// warm pass allocates nothing.
class HostFunctions {
 public:
  explicit HostFunctions(Signals& signals) : signals_{signals} {}
  HostFunctions(const HostFunctions&) = delete;
  HostFunctions& operator=(const HostFunctions&) = delete;

  /// A call to fill in; stays where it is until the pass has ended.
  HostFunctionCall& next();
  /// Before a pass, with all devices idle.
  void reset() { used_ = 0; }
  /// What ran in the pass; a captured function belongs to the launch of its graph.
  std::vector<DeviceActivity> activities() const;
  /// Those that wait for a signal now; from any thread.
  std::vector<Execution> waiting() const;

  /// The function itself; `call` is a HostFunctionCall. On a thread of the driver: no CUDA here.
  static void CUDART_CB run(void* call);

 private:
  bool wait_for_signal(const HostFunctionCall& call);

  Signals& signals_;
  std::deque<HostFunctionCall> calls_;  ///< stable addresses
  std::size_t used_ = 0;
  mutable std::mutex mutex_;
  std::vector<Execution> waiting_;
};

}  // namespace foretrace::hw
