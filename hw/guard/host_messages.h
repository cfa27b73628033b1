// What the watchdogs of several hosts tell each other, while the main threads are busy or stuck:
// how far their host is, what their process knows of a hang, that an operation failed. On one host
// shared memory and files do all this; everything here is empty then.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hw/run/processes.h"

namespace foretrace::hw {

class HostMessages {
 public:
  explicit HostMessages(const Processes& processes);
  ~HostMessages();
  HostMessages(const HostMessages&) = delete;
  HostMessages& operator=(const HostMessages&) = delete;

  /// Called again and again by one thread of each process. The first process of each host tells
  /// the others of its host's progress, once a second and when it has changed, and returns the sum
  /// of what it heard; empty elsewhere.
  std::optional<std::uint64_t> exchange(std::uint64_t local_progress);

 private:
  struct Peer {
    int rank{};
    std::uint64_t heard{};
    std::uint64_t sent{};
    MPI_Request request = MPI_REQUEST_NULL;
  };
  std::vector<Peer> peers_;  ///< at the first process of a host: those of the others
  std::int64_t told_ns_ = 0;
};

enum class Told : std::uint8_t { Hang = 1, Failure = 2 };
/// To rank 0, which takes it when it looks; from any thread.
void tell_rank_0(Told kind, const std::string& text);
/// At rank 0: one that has come.
std::optional<std::string> take_told(Told kind);

}  // namespace foretrace::hw
