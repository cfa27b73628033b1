// The machine as a program sees it: every process's devices, streams, events, buffers and
// communicators, and the links between devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "models/machine/machine.h"
#include "scenarios/program/program.h"
#include "sim/device/device.h"
#include "sim/device/graph.h"
#include "sim/device/hardware_queue.h"
#include "sim/device/level2.h"
#include "sim/device/stream.h"
#include "sim/engine/engine.h"
#include "sim/host/costs.h"
#include "sim/host/memory_pool.h"
#include "sim/host/semaphore.h"
#include "sim/nccl/nccl.h"
#include "sim/record/recorder.h"
#include "sim/simulate.h"

namespace foretrace::sim {

struct BarrierState {
  std::size_t arrived = 0;
  std::vector<Waiter*> waiting;
};

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
  Process(Engine& engine, const Machine& machine, std::uint32_t number)
      : Context{engine, machine}, index{number} {}
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
  Execution fault{};              ///< what lost the context; no op: it is intact
  std::vector<bool> peer_access;  ///< [device * devices + peer]
  std::vector<bool> pinned;       ///< by BufferId: registered by the program
  /// What ncclCommRegister, or a CUDA graph, gave to a communicator's other ranks.
  struct Registration {
    int count = 0;           ///< of the program's calls
    bool is_mapped = false;  ///< by the peers
    bool by_graph = false;   ///< kept until the graph goes
  };
  std::map<std::pair<CommId, BufferId>, Registration> registrations;
  std::vector<HostRead> host_reads;  ///< by BufferId
  std::uint32_t host_frees = 0;      ///< calls of cudaFreeHost so far
  std::vector<Level2> level2;        ///< by device
  std::vector<MemoryPool> pools;     ///< by device
  std::vector<TimePoint> cleared;    ///< by device: until then memory that was freed is cleared
  std::uint64_t host_bytes_touched = 0;
  TimePoint host_copies_until{};  ///< one thread's copy from host to host after the other's
};

class World {
 public:
  World(Engine& engine, const Program& program, const Machine& machine, Recorder& recorder,
        Fidelity fidelity, std::vector<bool> runs);

  /// Whether a process is simulated; else it does what another one does, when that does it.
  bool runs(std::uint32_t process) const { return runs_[process]; }
  /// What a product takes, and what decides that: to find out what cuBLAS would choose is slow, so
  /// it is remembered.
  Costs& costs() { return costs_; }
  Process& process(std::uint32_t index) { return processes_[index]; }
  /// The per-thread default stream `id` of a host thread, made at its first use.
  StreamQueue& per_thread_stream(Process& process, std::uint32_t thread_lane, StreamId id);
  /// Calls `visit(StreamQueue&)` for all streams of a device, per-thread ones included.
  template <class Visit>
  static void for_each_stream(Process& process, std::uint32_t device, const Visit& visit) {
    for (const auto& queue : process.streams) {
      if (queue->declared().device == device) visit(*queue);
    }
    for (const auto& [key, queue] : process.per_thread) {
      if (queue->declared().device == device) visit(*queue);
    }
  }
  BarrierState& barrier(BarrierId id) { return barriers_[id.value]; }
  NcclComm& communicator(std::uint32_t index) { return *communicators_[index]; }

  /// Routes of copies; `rate` is the parameter that caps one copy (kind of memory, staging).
  PathId host_to_device(const Process& process, std::uint32_t device, Param rate);
  PathId device_to_host(const Process& process, std::uint32_t device, Param rate);
  PathId peer(const Process& process, std::uint32_t from, std::uint32_t to, bool direct);
  /// What an operator on the CPU with so many threads (0: one for each core) computes and moves
  /// through; and a read of a file.
  PathId cores(const Process& process, std::uint32_t threads);
  PathId host_memory(const Process& process, std::uint32_t threads);
  PathId storage(const Process& process);
  /// At chunk fidelity, for a copy over NVLink: it shares the ports with NCCL's slices.
  ChunkRoute chunk_route(const Process& process, std::uint32_t from, std::uint32_t to,
                         bool direct) const;

 private:
  struct PcieLinks {
    LinkId in, out, both;
    std::optional<LinkId> pair;  ///< with its neighbour, where the machine says what they reach
  };
  struct GpuLinks {
    LinkId nvlink_in, nvlink_out;
    std::optional<PcieLinks> pcie;
    std::optional<NcclMemory> nccl_memory;
  };
  struct HostLinks {
    LinkId cores, memory, storage;
  };
  struct NodeLinks {
    LinkId host_read, host_write;
    std::optional<HostLinks> host;  ///< where the program has something for the CPU to do
  };
  struct TeamCaps {
    LinkId flops, memory;
  };
  const PcieLinks& pcie(std::uint32_t gpu) const;
  std::uint32_t gpu_index(std::uint32_t process, std::uint32_t device) const;
  std::uint32_t node_of(std::uint32_t gpu) const;
  Nic place_of(std::uint32_t gpu) const;
  double share_of(MachineFault::Part part, std::uint32_t gpu) const;
  double jitter_of(std::uint32_t gpu) const;
  void add_fabric();
  std::unique_ptr<StreamQueue> make_stream(Process& process, const Stream& declared,
                                           std::uint32_t lane);
  void share_hardware_queues(Process& process, const std::set<std::uint32_t>& used);
  void add_links();
  void add_host_links();
  std::optional<LinkId> host_memory_of_pair(std::uint32_t gpu);
  PathId host_route(std::uint32_t gpu, LinkId host_end, LinkId gpu_end,
                    std::optional<Param> capped);
  const HostLinks& host_links(const Process& process) const;
  std::size_t paths_at_most() const;
  bool sends_between_ranks() const;
  std::vector<std::uint32_t> gpus_that_flow_alike() const;
  void open_to_peers(const Communicator& communicator);
  void add_communicators(Engine& engine);
  const nccl::Tuning& tuning_of(const Communicator& communicator);
  Bandwidth rate_of(Param param) const;
  LinkId cap(Param rate) const;

  Engine& engine_;
  const Program& program_;
  const Machine& machine_;
  std::vector<bool> runs_;  ///< by process
  std::vector<std::unique_ptr<Device>> gpus_;
  std::deque<JoinedLink> memory_links_;
  std::vector<GpuLinks> gpu_links_;
  std::vector<NodeLinks> node_links_;
  Costs costs_;
  std::map<Param, LinkId> caps_;
  std::map<std::uint32_t, TeamCaps> team_caps_;  ///< by the threads of an operator on the CPU
  Recorder& recorder_;
  std::deque<Process> processes_;
  std::vector<BarrierState> barriers_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, nccl::Tuning> tunings_;  ///< by ranks and nodes
  std::vector<MachineFault> faults_;
  std::unique_ptr<ChunkNetwork> network_;  ///< chunk fidelity only
  std::unique_ptr<NetworkLinks> fabric_;   ///< where the machine or the program says it
  std::vector<std::unique_ptr<NcclComm>> communicators_;
};

}  // namespace foretrace::sim
