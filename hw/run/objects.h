// One process's instances of what a program declares: streams, events, buffers, communicators.
#pragma once

#include <nccl.h>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "hw/cuda/buffer.h"
#include "hw/cuda/communicator.h"
#include "hw/cuda/event.h"
#include "hw/cuda/gemm.h"
#include "hw/cuda/graph.h"
#include "hw/cuda/kernels.h"
#include "hw/cuda/stream.h"
#include "hw/execute/cpu_team.h"
#include "hw/execute/stored_files.h"
#include "hw/library/growing_memory.h"
#include "hw/run/processes.h"
#include "hw/run/registrations.h"
#include "scenarios/program/program.h"

namespace foretrace::hw {

/// Everything that lives as long as a scenario is measured is made by the constructor; what every
/// pass has anew (events, fresh memory, communicators that the program itself creates) by
/// before_pass. All of it is collective where communicators are.
class Objects {
 public:
  /// Device d of this process is CUDA device first_ordinal + d.
  Objects(const Program& program, const Processes& processes, int first_ordinal);
  ~Objects();
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  /// Ends with all devices idle.
  void before_pass();
  /// Under tracing the first kernel of a host thread and of a device costs the host 0.25 to 5 ms:
  /// it is launched here, before the pass, by each thread. Not in cold programs.
  void wake_tracer() const;
  /// Waits for the devices, then undoes what the pass left: graphs it captured, memory it
  /// allocated, communicators it created, peer access, pinned pages.
  void after_pass();
  /// Host memory gets its declared contents again; device memory does before every pass.
  void fill_host_buffers();

  int ordinal(std::int64_t device) const { return first_ordinal_ + static_cast<int>(device); }
  const Stream& stream(StreamId id) const { return streams_[id.value]; }
  cudaEvent_t event(EventId id) const { return events_[id.value].handle(); }
  Buffer& buffer(BufferId id) { return buffers_[id.value]; }
  Graph& graph(GraphId id) { return graphs_[id.value]; }
  Communicator& comm(CommId id) { return comms_[id.value]; }
  /// Of this process's handle; only for devices that are members.
  int rank(CommId id) const { return ranks_[id.value]; }
  const ncclUniqueId& comm_id(CommId id) const {
    return comm_ids_[program_.comms[id.value].communicator];
  }
  Registrations& registrations() { return registrations_; }
  GemmHandles& gemms() { return gemms_; }
  GrowingMemory& kernel_memory() { return kernel_memory_; }
  const DeviceLimits& limits(int ordinal) const { return devices_.at(ordinal).limits; }
  SpinClock spin_clock(int ordinal) const { return devices_.at(ordinal).spin_clock; }
  /// Zeroed scratch memory of the stream's reductions; made before timing.
  void* reduction_scratch(StreamId id) const { return scratch_.at(id).get(); }
  void enable_peer_access(int ordinal, int peer);
  CpuTeams& cpu_teams() { return cpu_teams_; }
  /// One for each host thread of the program that reads, as large as its largest read.
  StoredFiles& files() { return files_; }

  /// From any thread, in an emergency.
  void abort_communicators();
  void synchronize_devices() const;

 private:
  struct Device {
    DeviceLimits limits;
    SpinClock spin_clock;
  };
  struct PeerAccess {
    int ordinal;
    int peer;
  };
  struct FreeDeviceMemory {
    void operator()(void* memory) const { cuda_ignore(cudaFree(memory)); }
  };

  void prepare_devices();
  void write_files();
  void create_communicators(CommInit when);
  void share_comm_ids(CommInit when);
  void destroy_communicators(CommInit when);
  void destroy_graphs();
  void fill_buffer(BufferId id);
  bool is_mine(CommId id) const { return ranks_[id.value] >= 0; }

  const Program& program_;
  const Processes& processes_;
  int first_ordinal_;
  std::map<int, Device> devices_;
  std::vector<Stream> streams_;
  std::vector<Event> events_;
  std::vector<Buffer> buffers_;
  std::vector<Element> buffer_types_;
  std::vector<Graph> graphs_;
  std::vector<Communicator> comms_;
  Registrations registrations_;
  std::vector<int> ranks_;  ///< by CommId; -1 where the device is no member
  std::vector<ncclUniqueId> comm_ids_;
  std::map<StreamId, std::unique_ptr<void, FreeDeviceMemory>> scratch_;
  GemmHandles gemms_;
  GrowingMemory kernel_memory_;  ///< what library kernels work on
  CpuTeams cpu_teams_;
  StoredFiles files_;
  std::vector<PeerAccess> peer_accesses_;
};

}  // namespace foretrace::hw
