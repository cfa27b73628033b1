#include "hw/run/host_barriers.h"

#include <algorithm>
#include <exception>

#include "hw/guard/mpi_check.h"

namespace foretrace::hw {
namespace {

bool is_before(const BarrierParty& a, const BarrierParty& b) {
  return a.process != b.process ? a.process < b.process : a.thread < b.thread;
}

}  // namespace

HostBarriers::HostBarriers(const Program& program, const Processes& processes, SharedState& shared)
    : shared_{shared} {
  if (!processes.one_host()) mpi_check(MPI_Comm_dup(processes.comm(), &comm_));
  for (const Barrier& barrier : program.barriers) {
    Meeting& meeting = meetings_.emplace_back();
    std::vector<BarrierParty> parties = barrier.parties;
    std::sort(parties.begin(), parties.end(), is_before);
    std::vector<int> hosts;
    for (const BarrierParty& party : parties) {
      const int process = static_cast<int>(party.process);
      const int host = processes.host_of(process);
      if (std::ranges::find(hosts, host) == hosts.end()) {
        if (host == processes.host()) {
          meeting.own = hosts.size();
          meeting.leader = party;
        }
        hosts.push_back(host);
        meeting.leaders.push_back(process);
      }
      if (host == processes.host()) ++meeting.parties;
    }
  }
}

HostBarriers::~HostBarriers() {
  if (comm_ != MPI_COMM_NULL && std::uncaught_exceptions() == 0) MPI_Comm_free(&comm_);
}

void HostBarriers::arrive_and_wait(BarrierId id, std::uint32_t process, std::uint32_t thread) {
  const Meeting& meeting = meetings_[id.value];
  BarrierSlot& slot = shared_.host_barrier(id);
  if (meeting.leaders.size() < 2) return slot.arrive_and_wait(meeting.parties);
  if (meeting.leader.process != process || meeting.leader.thread != thread) return slot.follow();
  slot.lead(meeting.parties - 1, [&] { meet(meeting, static_cast<int>(id.value)); });
}

/// A dissemination barrier: in each round everybody hears of twice as many as before.
void HostBarriers::meet(const Meeting& meeting, int tag) const {
  const std::size_t count = meeting.leaders.size();
  for (std::size_t distance = 1; distance < count; distance *= 2) {
    const int to = meeting.leaders[(meeting.own + distance) % count];
    const int from = meeting.leaders[(meeting.own + count - distance) % count];
    mpi_check(MPI_Sendrecv(nullptr, 0, MPI_BYTE, to, tag, nullptr, 0, MPI_BYTE, from, tag, comm_,
                           MPI_STATUS_IGNORE));
  }
}

}  // namespace foretrace::hw
