// A process at run time: its devices, streams, events and buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "models/machine/machine.h"
#include "scenarios/program/program.h"
#include "sim/device/device.h"
#include "sim/device/graph.h"
#include "sim/device/hardware_queue.h"
#include "sim/device/level2.h"
#include "sim/device/stream.h"
#include "sim/engine/engine.h"
#include "sim/host/memory_pieces.h"
#include "sim/host/memory_pool.h"
#include "sim/host/semaphore.h"
#include "sim/host/touched_pages.h"

namespace foretrace::sim {

/// Which part of a pageable buffer a copy has read last, and when: counted in bytes that the host
/// touched.
struct HostRead {
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
  std::uint32_t reads = 0;  ///< of some of it in a row, without a write in between
  std::uint64_t at = 0;
  bool from_last_pass = false;  ///< all of the buffer: every pass reads it and nobody writes it
  std::uint32_t frees = 0;      ///< Process::host_frees by then

  bool has(std::uint64_t first, std::uint64_t bytes) const {
    return first >= begin && first + bytes <= begin + size;
  }
  bool overlaps(std::uint64_t first, std::uint64_t bytes) const {
    return first < begin + size && begin < first + bytes;
  }
};

/// Where a copy by the host finds what it reads.
enum class FoundIn : std::uint8_t { Memory, LastLevelCache, CoreCache };

/// Whoever must know that the process's context is lost.
class ContextUser {
 public:
  virtual void context_lost() = 0;

 protected:
  ~ContextUser() = default;
};

/// A kernel or a copy of a graph goes through memory at each launch: what it takes by what the
/// level-2 cache has of that then.
struct CapturedUse {
  std::size_t entry;  ///< of the graph's
  std::uint32_t device;
  std::vector<UsedMemory> memory;
  /// None: a copy, which takes what it takes.
  std::function<cost::KernelCost(Reading&, std::span<const cost::Pass>)> cost;
};

struct Process final : Context {
  Process(Engine& engine, const Machine& machine, Gaps& gaps_of_all, std::uint32_t number)
      : Context{engine, machine, gaps_of_all}, index{number} {}
  void lost(const Execution& execution) override {
    fault = execution;
    for (ContextUser* user : users) user->context_lost();
  }

  std::uint32_t index{};
  std::vector<Device*> devices;
  std::vector<std::unique_ptr<StreamQueue>> streams;  ///< by StreamId, per-thread ones apart
  /// By the host thread's lane: an address would order them anew in every run.
  std::map<std::pair<std::uint32_t, StreamId>, std::unique_ptr<StreamQueue>> per_thread;
  std::map<std::pair<std::uint32_t, std::uint32_t>, HardwareQueue> hardware_queues;
  std::vector<TicketRef> events;  ///< by EventId: the latest recording, or null
  std::vector<Semaphore> signals;
  std::vector<std::unique_ptr<GraphExec>> graphs;                      ///< by GraphId
  std::map<const GraphExec*, std::vector<CapturedUse>> captured_uses;  ///< in their order
  struct InCall {
    TimePoint until;
    std::uint32_t device = 0;
  };
  std::vector<InCall> in_call_until;  ///< of each host thread
  std::vector<ContextUser*> users;
  Execution fault{};               ///< what lost the context; no op: it is intact
  std::vector<bool> peer_access;   ///< [device * devices + peer]
  std::vector<bool> peer_enabled;  ///< the same, by a call of this pass
  std::vector<bool> pinned;        ///< by BufferId: registered by the program
  /// What ncclCommRegister, or a CUDA graph, gave to a communicator's other ranks.
  struct Registration {
    int count = 0;           ///< of the program's calls
    bool is_mapped = false;  ///< by the peers
    bool by_graph = false;   ///< kept until the graph goes
  };
  std::map<std::pair<CommId, BufferId>, Registration> registrations;
  std::vector<HostRead> host_reads;   ///< by BufferId
  std::vector<TouchedPages> touched;  ///< by BufferId: of fresh memory
  std::uint32_t host_frees = 0;       ///< calls of cudaFreeHost so far
  std::vector<Level2> level2;         ///< by device
  std::vector<MemoryPieces> pieces;   ///< by device
  MemoryPieces pinned_pieces;
  std::vector<MemoryPool> pools;   ///< by device
  std::vector<TimePoint> cleared;  ///< by device: until then memory that was freed is cleared
  /// Of one device: who holds it lets nobody else queue work there.
  struct HeldContext {
    TimePoint until{};          ///< of a call that allocates, frees or copies within the host
    std::uint32_t waiting = 0;  ///< threads
    std::uint32_t frees = 0;    ///< threads that wait for the device in cudaFree
  };
  std::vector<HeldContext> contexts;        ///< by device
  std::vector<TimePoint> pool_calls_until;  ///< by device: they take turns
  std::vector<TimePoint> uploads_until;  ///< by device: one thread's from pageable memory, in turn
  std::uint64_t host_bytes_touched = 0;
};

}  // namespace foretrace::sim
