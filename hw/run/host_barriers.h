// host_barrier: within a host in shared memory; between hosts, one party of each then meets the
// others' over MPI. They leave up to the network's latency apart, those of one host together.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "hw/run/pass_barrier.h"
#include "hw/run/processes.h"
#include "scenarios/program/program.h"

namespace foretrace::hw {

class HostBarriers {
 public:
  /// All processes of the program make it together.
  HostBarriers(const Program& program, const Processes& processes, SharedState& shared);
  ~HostBarriers();
  HostBarriers(const HostBarriers&) = delete;
  HostBarriers& operator=(const HostBarriers&) = delete;

  /// Returns once all parties of the barrier have called.
  void arrive_and_wait(BarrierId id, std::uint32_t process, std::uint32_t thread);

 private:
  /// What this process must know of one barrier.
  struct Meeting {
    std::uint32_t parties{};   ///< on this host
    std::vector<int> leaders;  ///< the process that meets the others for its host, by host
    std::size_t own{};         ///< index into leaders: this host's
    BarrierParty leader;       ///< of this host
  };
  void meet(const Meeting& meeting, int tag) const;

  SharedState& shared_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::vector<Meeting> meetings_;  ///< by BarrierId
};

}  // namespace foretrace::hw
