#include "hw/guard/host_messages.h"

#include <exception>

#include "hw/guard/mpi_check.h"
#include "hw/trace/clock.h"

namespace foretrace::hw {
namespace {

constexpr std::int64_t kTellEvery = 1'000'000'000;
constexpr int kProgressTag = 16;

int tag_of(Told kind) { return kProgressTag + static_cast<int>(kind); }

}  // namespace

HostMessages::HostMessages(const Processes& processes) {
  if (processes.one_host() || processes.local_rank() != 0) return;
  std::vector<bool> is_there(static_cast<std::size_t>(processes.hosts()));
  is_there[static_cast<std::size_t>(processes.host())] = true;
  for (int rank = 0; rank < processes.count(); ++rank) {
    const auto host = static_cast<std::size_t>(processes.host_of(rank));
    if (is_there[host]) continue;
    is_there[host] = true;
    peers_.emplace_back().rank = rank;
  }
}

HostMessages::~HostMessages() {
  if (std::uncaught_exceptions() > 0) return;
  // Eight bytes leave at once, whether somebody waits for them or not.
  for (Peer& peer : peers_) {
    if (peer.request != MPI_REQUEST_NULL) MPI_Wait(&peer.request, MPI_STATUS_IGNORE);
  }
}

std::optional<std::uint64_t> HostMessages::exchange(std::uint64_t local_progress) {
  if (peers_.empty()) return std::nullopt;
  const std::int64_t now = now_ns();
  const bool tells = now - told_ns_ >= kTellEvery;
  if (tells) told_ns_ = now;
  std::uint64_t sum = 0;
  for (Peer& peer : peers_) {
    for (int there = 1; there != 0;) {
      mpi_check(MPI_Iprobe(peer.rank, kProgressTag, guard_comm(), &there, MPI_STATUS_IGNORE));
      if (there == 0) break;
      mpi_check(MPI_Recv(&peer.heard, 1, MPI_UINT64_T, peer.rank, kProgressTag, guard_comm(),
                         MPI_STATUS_IGNORE));
    }
    sum += peer.heard;
    int sent = 1;
    if (peer.request != MPI_REQUEST_NULL) {
      mpi_check(MPI_Test(&peer.request, &sent, MPI_STATUS_IGNORE));
    }
    if (!tells || sent == 0 || peer.sent == local_progress) continue;
    peer.sent = local_progress;
    mpi_check(MPI_Isend(&peer.sent, 1, MPI_UINT64_T, peer.rank, kProgressTag, guard_comm(),
                        &peer.request));
  }
  return sum;
}

void tell_rank_0(Told kind, const std::string& text) {
  mpi_check(MPI_Send(text.data(), static_cast<int>(text.size()), MPI_BYTE, 0, tag_of(kind),
                     guard_comm()));
}

std::optional<std::string> take_told(Told kind) {
  int there = 0;
  MPI_Status status{};
  mpi_check(MPI_Iprobe(MPI_ANY_SOURCE, tag_of(kind), guard_comm(), &there, &status));
  if (there == 0) return std::nullopt;
  int bytes = 0;
  mpi_check(MPI_Get_count(&status, MPI_BYTE, &bytes));
  std::string text(static_cast<std::size_t>(bytes), '\0');
  mpi_check(MPI_Recv(text.data(), bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, guard_comm(),
                     MPI_STATUS_IGNORE));
  return text;
}

}  // namespace foretrace::hw
