// What waits in a stream's queue: one entry per thing the device will do.
#pragma once

#include <boost/container/small_vector.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "models/cost/kernel.h"
#include "models/cost/stream.h"
#include "scenarios/program/program.h"
#include "sim/engine/engine.h"

namespace foretrace::sim {

class Waiter;
class NcclLaunch;
class StreamQueue;
class Semaphore;
class GraphExec;
class ChunkNetwork;

/// One execution of one operation: what a span is named by, with its process.
struct Execution {
  const Op* op{};
  std::uint64_t instance{};
};

/// One recording of an event: done when its stream reached it. Waits refer to the recording that
/// was the latest when they were called, as CUDA does, not to the event.
struct Ticket {
  bool done = false;
  cost::Before after = cost::Before::Nothing;  ///< what it waited for
  bool after_copy = false;                     ///< that was a copy
  bool timed = true;                           ///< it takes a time stamp
  TimePoint when{};
  Execution record;
  StreamQueue* stream{};      ///< where it was recorded
  std::uint64_t entries = 0;  ///< of the stream, before it
  boost::container::small_vector<Waiter*, 1> waiters;
  std::uint32_t references = 0;

  friend void intrusive_ptr_add_ref(Ticket* t) { ++t->references; }
  friend void intrusive_ptr_release(Ticket* t) {
    if (--t->references == 0) delete t;
  }
};
using TicketRef = boost::intrusive_ptr<Ticket>;

/// Whoever blocks until something is done: a stream or a host thread.
class Waiter {
 public:
  virtual void wake() = 0;

 protected:
  ~Waiter() = default;
};

/// Which engine moves the bytes; copies of one engine of one device run one at a time.
enum class CopyEngineKind : std::uint8_t { HostToDevice, DeviceToHost, PeerToPeer };

/// A copy between GPUs at chunk fidelity; otherwise no network, and the path counts.
struct ChunkRoute {
  ChunkNetwork* network = nullptr;
  std::uint32_t from = 0, to = 0;       ///< GPUs
  double copy_rate = 0, port_rate = 0;  ///< bytes per second
};

struct CopyWork {
  CopyEngineKind engine = CopyEngineKind::HostToDevice;
  PathId path;
  ChunkRoute chunks;
  Bytes size;
  bool in_stream = false;    ///< travels among the stream's commands
  bool in_pieces = false;    ///< the driver fetches it piece by piece: others get the engine, too
  Duration hand_over{};      ///< to the GPU whose engine copies, and back
  Duration latency;          ///< fixed part, before the bytes flow
  std::uint32_t detail = 0;  ///< of its span
};
struct KernelWork {
  cost::KernelCost cost;
  std::uint32_t detail = 0;  ///< of its span
};
struct RecordWork {
  TicketRef ticket;
};
struct WaitWork {
  TicketRef ticket;
};
struct NcclWork {
  std::shared_ptr<NcclLaunch> launch;
};
/// Takes its place in the stream's order and no time: malloc_async, free_async.
struct MarkerWork {};
struct HostFuncWork {
  Duration duration;
  Semaphore* wait = nullptr;
  Semaphore* signal = nullptr;
};
/// A kernel that ends its process's context.
struct FaultWork {};
/// A launch of a graph: what its chains are filled with when the stream reaches it.
struct GraphWork;

struct Work {
  using What = std::variant<KernelWork, CopyWork, RecordWork, WaitWork, NcclWork, MarkerWork,
                            HostFuncWork, FaultWork, std::shared_ptr<GraphWork>>;
  Execution execution;
  TimePoint available;           ///< the host's call has reached the device
  std::uint64_t legacy_count{};  ///< begins after this many entries of the legacy default stream
  std::uint32_t part = 1;
  What what;
};

struct GraphWork {
  GraphExec* graph;
  std::vector<std::pair<StreamQueue*, Work::What>> entries;  ///< chain, and what it gets
  /// The launch of this graph that was called before: it ends first, whatever stream it is on.
  StreamQueue* after = nullptr;
  std::uint64_t after_count = 0;
};
/// The stream that a graph was launched on.
class GraphOwner {
 public:
  virtual void graph_ended() = 0;

 protected:
  ~GraphOwner() = default;
};

}  // namespace foretrace::sim
