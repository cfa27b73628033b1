// The machine as a program sees it: every process's devices, streams, events, buffers and
// communicators, and the links between devices.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "models/machine.h"
#include "scenarios/program.h"
#include "sim/device.h"
#include "sim/engine.h"
#include "sim/nccl.h"
#include "sim/recorder.h"
#include "sim/stream.h"

namespace foretrace::sim {

/// A counting semaphore between the host threads of a process.
struct Semaphore {
  std::uint64_t count = 0;
  std::vector<Waiter*> waiting;  ///< first come, first served
};

struct BarrierState {
  std::size_t arrived = 0;
  std::vector<Waiter*> waiting;
};

/// How much of a pageable buffer a copy has read last, and when: counted in bytes the host touched.
struct HostRead {
  std::uint64_t size = 0;
  std::uint32_t reads = 0;  ///< in a row, without a write in between
  std::uint64_t at = 0;
};

struct Process {
  std::uint32_t index{};
  std::vector<Device*> devices;
  std::vector<std::unique_ptr<StreamQueue>> streams;  ///< by StreamId
  std::vector<TicketRef> events;                      ///< by EventId: the latest recording, or null
  std::vector<Semaphore> signals;
  std::vector<bool> peer_access;     ///< [device * devices + peer]
  std::vector<bool> pinned;          ///< by BufferId: registered by the program
  std::vector<HostRead> host_reads;  ///< by BufferId
  std::uint64_t host_bytes_touched = 0;
};

class World {
 public:
  World(Engine& engine, const Program& program, const Machine& machine, Recorder& recorder);

  Process& process(std::uint32_t index) { return processes_[index]; }
  BarrierState& barrier(BarrierId id) { return barriers_[id.value]; }
  NcclComm& communicator(std::uint32_t index) { return *communicators_[index]; }

  /// Routes of copies; `rate` is the parameter that caps one copy (kind of memory, staging).
  PathId host_to_device(const Process& process, std::uint32_t device, Param rate);
  PathId device_to_host(const Process& process, std::uint32_t device, Param rate);
  PathId peer(const Process& process, std::uint32_t from, std::uint32_t to, bool direct);

 private:
  struct GpuLinks {
    LinkId pcie_in, pcie_out, pcie_both, nvlink_in, nvlink_out, nccl_p2p;
  };
  struct NodeLinks {
    LinkId host_read, host_write;
  };
  std::uint32_t gpu_index(std::uint32_t process, std::uint32_t device) const;
  std::uint32_t node_of(std::uint32_t gpu) const;
  void add_links();
  void add_communicators(Engine& engine);
  LinkId cap(Param rate) const;

  Engine& engine_;
  const Program& program_;
  const Machine& machine_;
  std::vector<std::unique_ptr<Device>> gpus_;
  std::vector<GpuLinks> gpu_links_;
  std::vector<NodeLinks> node_links_;
  std::map<Param, LinkId> caps_;
  std::vector<Process> processes_;
  std::vector<BarrierState> barriers_;
  std::vector<std::unique_ptr<NcclComm>> communicators_;
};

}  // namespace foretrace::sim
