// The processes that mpirun started, and the ones of them that run a scenario. Without mpirun it is
// one process and MPI is never initialised, so a single-GPU run needs no working MPI.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace foretrace::hw {

/// Who takes part in something together. All functions are called by every member, in the same
/// order, from the main thread.
class Processes {
 public:
  /// One process, no MPI.
  Processes() = default;
  /// Frees the communicator when it is not MPI_COMM_WORLD.
  ~Processes();
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  Processes(Processes&& other) noexcept;
  Processes& operator=(Processes&&) = delete;

  static Processes of(MPI_Comm comm);

  int rank() const { return rank_; }
  int count() const { return count_; }
  int local_rank() const { return local_rank_; }  ///< among the processes of this host
  int local_count() const { return local_count_; }
  bool one_host() const { return hosts_ == 1; }
  int hosts() const { return hosts_; }
  int host() const { return host_of(rank_); }  ///< of this process
  /// Hosts are counted in the order of their lowest ranks.
  int host_of(int rank) const {
    return host_of_.empty() ? 0 : host_of_[static_cast<std::size_t>(rank)];
  }

  /// The processes with rank < `members`, as a group of their own; the others get a group that
  /// contains only themselves and `member` false.
  struct Subset;
  Subset first(int members) const;

  void wait_for_all() const;
  /// The same without keeping a core busy: for those who wait while others measure. Returns up to
  /// 2 ms late.
  void wait_quietly() const;
  /// `bytes` is overwritten by the root's.
  void broadcast(std::span<std::byte> bytes, int root) const;
  std::string broadcast(std::string text, int root = 0) const;
  std::int64_t broadcast(std::int64_t value, int root = 0) const;
  std::int64_t largest(std::int64_t value) const;
  /// At rank 0: everyone's, by rank. Empty elsewhere.
  std::vector<std::string> gather(const std::string& text) const;

  MPI_Comm comm() const { return comm_; }  ///< MPI_COMM_NULL for one process without MPI

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int count_ = 1;
  int local_rank_ = 0;
  int local_count_ = 1;
  int hosts_ = 1;
  std::vector<int> host_of_;  ///< by rank
};

struct Processes::Subset {
  bool member = false;
  Processes processes;
};

/// Of all processes of the start, for what watchdogs tell each other while the main threads are in
/// calls of their own; MPI_COMM_NULL without MPI. A rank below `first(members)` is the same in it.
MPI_Comm guard_comm();

/// Whether any thread may call MPI at any time: what several hosts need (host_barrier, watchdogs).
bool threads_may_call_mpi();

/// MPI from start to end: initialised when a launcher started this process. The destructor
/// finalises, unless it runs because of an exception: then other processes may wait for this one
/// for ever, and main must abort the run.
class Mpi {
 public:
  Mpi();
  ~Mpi();
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  Processes world() const;

  /// True when mpirun, srun or another launcher with PMI or PMIx started this process.
  static bool started_by_launcher();

 private:
  bool initialised_ = false;
  int exceptions_ = 0;
};

/// Memory that all processes of a host share; zeroed. Private memory for a single process.
class SharedMemory {
 public:
  SharedMemory(const Processes& processes, std::size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::byte* data() const { return data_; }

 private:
  MPI_Win window_ = MPI_WIN_NULL;
  MPI_Comm host_ = MPI_COMM_NULL;
  std::vector<std::byte> private_;
  std::byte* data_ = nullptr;
};

}  // namespace foretrace::hw
