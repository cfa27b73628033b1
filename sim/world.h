// The machine as a program sees it: processes (process.h), communicators, and the links between
// devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "models/machine/machine.h"
#include "scenarios/program/program.h"
#include "sim/engine/engine.h"
#include "sim/host/costs.h"
#include "sim/nccl/nccl.h"
#include "sim/process.h"
#include "sim/record/recorder.h"
#include "sim/simulate.h"

namespace foretrace::sim {

struct BarrierState {
  std::size_t arrived = 0;
  std::vector<Waiter*> waiting;
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
  Gaps gaps_;
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
