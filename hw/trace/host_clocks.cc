#include "hw/trace/host_clocks.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "hw/guard/mpi_check.h"
#include "hw/trace/clock.h"

namespace foretrace::hw {
namespace {

constexpr int kRoundTrips = 64;
constexpr int kClockTag = 2;
constexpr std::int64_t kLongestAge = 1'000'000'000;
/// Until the moment of leaving: longer than the message that names it takes.
constexpr std::int64_t kLeastNotice = 200'000;
constexpr int kNoticeBounds = 16;  // bounds are halves of a round trip

std::int64_t exchange(MPI_Comm comm, int with, bool asks) {
  std::int64_t time_ns = 0;
  if (asks) {
    mpi_check(MPI_Send(&time_ns, 1, MPI_INT64_T, with, kClockTag, comm));
    mpi_check(MPI_Recv(&time_ns, 1, MPI_INT64_T, with, kClockTag, comm, MPI_STATUS_IGNORE));
    return time_ns;
  }
  mpi_check(MPI_Recv(&time_ns, 1, MPI_INT64_T, with, kClockTag, comm, MPI_STATUS_IGNORE));
  time_ns = now_ns();
  mpi_check(MPI_Send(&time_ns, 1, MPI_INT64_T, with, kClockTag, comm));
  return time_ns;
}

/// At rank 0: of each host, by the process that answers for it. Empty offsets elsewhere.
std::vector<ClockOffset> ask_all(const Processes& processes) {
  std::vector<ClockOffset> offsets(static_cast<std::size_t>(processes.hosts()));
  int asked = 0;
  for (int rank = 1; rank < processes.count(); ++rank) {
    if (processes.host_of(rank) <= asked) continue;
    asked = processes.host_of(rank);
    if (processes.rank() != 0 && processes.rank() != rank) continue;
    std::vector<RoundTrip> trips;
    for (int i = 0; i < kRoundTrips; ++i) {
      RoundTrip trip;
      trip.sent_ns = now_ns();
      trip.remote_ns =
          exchange(processes.comm(), processes.rank() == 0 ? rank : 0, processes.rank() == 0);
      trip.received_ns = now_ns();
      trips.push_back(trip);
    }
    if (processes.rank() == 0) offsets[static_cast<std::size_t>(asked)] = offset_of(trips);
  }
  return offsets;
}

}  // namespace

ClockOffset offset_of(std::span<const RoundTrip> trips) {
  const auto best = std::ranges::min_element(
      trips, {}, [](const RoundTrip& trip) { return trip.received_ns - trip.sent_ns; });
  const std::int64_t took = best->received_ns - best->sent_ns;
  const std::int64_t middle = best->sent_ns + took / 2;
  return {best->remote_ns - middle, (took + 1) / 2, best->remote_ns};
}

double drift_between(const ClockOffset& before, const ClockOffset& after) {
  const auto passed = static_cast<double>(after.at_ns - before.at_ns);
  const std::int64_t gained = after.ahead_ns - before.ahead_ns;
  if (passed <= 0 || std::abs(gained) <= before.bound_ns + after.bound_ns) return 0;
  return static_cast<double>(gained) / passed;
}

std::int64_t bound_between(const ClockOffset& before, const ClockOffset& after) {
  const bool corrected = drift_between(before, after) != 0;
  const std::int64_t gained = corrected ? 0 : std::abs(after.ahead_ns - before.ahead_ns);
  return std::max(before.bound_ns, gained + after.bound_ns);
}

void HostClocks::compare() {
  if (processes_.one_host()) return;
  // Asked one after the other, while the others wait here: their cores are not needed.
  const std::vector<ClockOffset> by_host = ask_all(processes_);
  std::vector<std::array<std::int64_t, 3>> all;
  for (int rank = 0; rank < processes_.count(); ++rank) {
    ClockOffset offset = by_host[static_cast<std::size_t>(processes_.host_of(rank))];
    if (processes_.host_of(rank) == 0) offset.at_ns = now_ns();
    all.push_back({offset.ahead_ns, offset.bound_ns, offset.at_ns});
  }
  std::array<std::int64_t, 3> mine{};
  mpi_check(
      MPI_Scatter(all.data(), 3, MPI_INT64_T, mine.data(), 3, MPI_INT64_T, 0, processes_.comm()));
  offset_ = {mine[0], mine[1], mine[2]};
}

std::int64_t HostClocks::leave_together() {
  const std::int64_t age = processes_.rank() == 0 ? now_ns() - offset_.at_ns : 0;
  if (processes_.largest(age) > kLongestAge) compare();
  const std::int64_t notice = std::max(kLeastNotice, kNoticeBounds * offset_.bound_ns);
  const std::int64_t moment = processes_.largest(now_ns() - offset_.ahead_ns + notice);
  const std::int64_t here = moment + offset_.ahead_ns;
  late_ns_ = std::max<std::int64_t>(0, now_ns() - here);
  wait_until(here);
  return here;
}

std::int64_t bound_between_hosts(const Processes& processes, std::int64_t bound_ns) {
  if (processes.one_host()) return 0;
  // Between two hosts neither of which is rank 0's, both may be wrong.
  return processes.largest(bound_ns) * (processes.hosts() > 2 ? 2 : 1);
}

}  // namespace foretrace::hw
