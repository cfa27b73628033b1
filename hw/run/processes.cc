#include "hw/run/processes.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <thread>
#include <utility>

#include "hw/guard/mpi_check.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::hw {
namespace {

/// MPI counts are int: longer texts go in pieces of this size.
constexpr std::size_t kPieceBytes = std::size_t{1} << 30;
constexpr std::size_t kCacheLine = 64;

MPI_Comm same_host(MPI_Comm comm) {
  MPI_Comm host = MPI_COMM_NULL;
  mpi_check(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
  return host;
}

MPI_Comm guard = MPI_COMM_NULL;

int rank_in(MPI_Comm comm) {
  int rank = 0;
  mpi_check(MPI_Comm_rank(comm, &rank));
  return rank;
}

int count_in(MPI_Comm comm) {
  int count = 1;
  mpi_check(MPI_Comm_size(comm, &count));
  return count;
}

}  // namespace

Processes::~Processes() {
  int finalized = 0;
  if (comm_ == MPI_COMM_NULL || comm_ == MPI_COMM_WORLD) return;
  // Freeing is collective: not while an exception leaves the others behind.
  if (std::uncaught_exceptions() > 0) return;
  MPI_Finalized(&finalized);
  if (!finalized) MPI_Comm_free(&comm_);
}

Processes::Processes(Processes&& other) noexcept
    : comm_{std::exchange(other.comm_, MPI_COMM_NULL)},
      rank_{other.rank_},
      count_{other.count_},
      local_rank_{other.local_rank_},
      local_count_{other.local_count_},
      hosts_{other.hosts_},
      host_of_{std::move(other.host_of_)} {}

Processes Processes::of(MPI_Comm comm) {
  Processes result;
  result.comm_ = comm;
  result.rank_ = rank_in(comm);
  result.count_ = count_in(comm);
  MPI_Comm host = same_host(comm);
  result.local_rank_ = rank_in(host);
  result.local_count_ = count_in(host);
  int lowest = result.rank_;  // of this host: its name among the hosts
  mpi_check(MPI_Bcast(&lowest, 1, MPI_INT, 0, host));
  mpi_check(MPI_Comm_free(&host));
  std::vector<int> lowest_of(static_cast<std::size_t>(result.count_));
  mpi_check(MPI_Allgather(&lowest, 1, MPI_INT, lowest_of.data(), 1, MPI_INT, comm));
  result.hosts_ = 0;
  for (std::size_t rank = 0; rank < lowest_of.size(); ++rank) {
    const auto of_lowest = static_cast<std::size_t>(lowest_of[rank]);
    result.host_of_.push_back(of_lowest == rank ? result.hosts_++ : result.host_of_[of_lowest]);
  }
  return result;
}

Processes::Subset Processes::first(int members) const {
  FORETRACE_CHECK(members <= count_, "a group cannot have more members than there are processes");
  if (comm_ == MPI_COMM_NULL) return {true, Processes{}};
  const bool member = rank_ < members;
  MPI_Comm comm = MPI_COMM_NULL;
  // The others get a group of one each: colour by rank.
  mpi_check(MPI_Comm_split(comm_, member ? 0 : 1 + rank_, rank_, &comm));
  return {member, of(comm)};
}

void Processes::wait_for_all() const {
  if (comm_ != MPI_COMM_NULL) mpi_check(MPI_Barrier(comm_));
}

void Processes::wait_quietly() const {
  if (comm_ == MPI_COMM_NULL) return;
  MPI_Request request = MPI_REQUEST_NULL;
  mpi_check(MPI_Ibarrier(comm_, &request));
  for (int done = 0; done == 0;) {
    mpi_check(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (done == 0) std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
}

void Processes::broadcast(std::span<std::byte> bytes, int root) const {
  if (comm_ == MPI_COMM_NULL) return;
  for (std::size_t done = 0; done < bytes.size(); done += kPieceBytes) {
    const auto piece = static_cast<int>(std::min(kPieceBytes, bytes.size() - done));
    mpi_check(MPI_Bcast(bytes.data() + done, piece, MPI_BYTE, root, comm_));
  }
}

std::int64_t Processes::broadcast(std::int64_t value, int root) const {
  if (comm_ != MPI_COMM_NULL) mpi_check(MPI_Bcast(&value, 1, MPI_INT64_T, root, comm_));
  return value;
}

std::string Processes::broadcast(std::string text, int root) const {
  text.resize(static_cast<std::size_t>(broadcast(static_cast<std::int64_t>(text.size()), root)));
  broadcast(std::as_writable_bytes(std::span{text}), root);
  return text;
}

std::int64_t Processes::largest(std::int64_t value) const {
  std::int64_t result = value;
  if (comm_ != MPI_COMM_NULL) {
    mpi_check(MPI_Allreduce(&value, &result, 1, MPI_INT64_T, MPI_MAX, comm_));
  }
  return result;
}

std::vector<std::string> Processes::gather(const std::string& text) const {
  if (comm_ == MPI_COMM_NULL) return {text};
  constexpr int kTag = 1;
  std::vector<std::string> result;
  if (rank_ != 0) {
    const auto bytes = static_cast<std::int64_t>(text.size());
    mpi_check(MPI_Send(&bytes, 1, MPI_INT64_T, 0, kTag, comm_));
    for (std::size_t done = 0; done < text.size(); done += kPieceBytes) {
      const auto piece = static_cast<int>(std::min(kPieceBytes, text.size() - done));
      mpi_check(MPI_Send(text.data() + done, piece, MPI_BYTE, 0, kTag, comm_));
    }
    return result;
  }
  result.push_back(text);
  for (int from = 1; from < count_; ++from) {
    std::int64_t bytes = 0;
    mpi_check(MPI_Recv(&bytes, 1, MPI_INT64_T, from, kTag, comm_, MPI_STATUS_IGNORE));
    std::string received(static_cast<std::size_t>(bytes), '\0');
    for (std::size_t done = 0; done < received.size(); done += kPieceBytes) {
      const auto piece = static_cast<int>(std::min(kPieceBytes, received.size() - done));
      mpi_check(
          MPI_Recv(received.data() + done, piece, MPI_BYTE, from, kTag, comm_, MPI_STATUS_IGNORE));
    }
    result.push_back(std::move(received));
  }
  return result;
}

MPI_Comm guard_comm() { return guard; }

bool threads_may_call_mpi() {
  int provided = MPI_THREAD_SINGLE;
  mpi_check(MPI_Query_thread(&provided));
  return provided == MPI_THREAD_MULTIPLE;
}

bool Mpi::started_by_launcher() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

Mpi::Mpi() : exceptions_{std::uncaught_exceptions()} {
  if (!started_by_launcher()) return;
  int provided = 0;
  // The watchdog's thread may call MPI_Abort while the main thread is in another call.
  mpi_check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided));
  mpi_check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  mpi_check(MPI_Comm_dup(MPI_COMM_WORLD, &guard));
  initialised_ = true;
}

Mpi::~Mpi() {
  if (initialised_ && std::uncaught_exceptions() == exceptions_) MPI_Finalize();
}

Processes Mpi::world() const { return initialised_ ? Processes::of(MPI_COMM_WORLD) : Processes{}; }

SharedMemory::SharedMemory(const Processes& processes, std::size_t bytes) {
  // Mappings begin on pages, so a start aligned to cache lines is the same one in all processes.
  const std::size_t with_padding = bytes + kCacheLine;
  const auto aligned = [&](void* start) {
    std::size_t space = with_padding;
    return static_cast<std::byte*>(std::align(kCacheLine, bytes, start, space));
  };
  if (processes.comm() == MPI_COMM_NULL) {
    private_.resize(with_padding);
    data_ = aligned(private_.data());
    return;
  }
  host_ = same_host(processes.comm());
  const bool owner = rank_in(host_) == 0;
  void* mine = nullptr;
  mpi_check(MPI_Win_allocate_shared(static_cast<MPI_Aint>(owner ? with_padding : 0), 1,
                                    MPI_INFO_NULL, host_, &mine, &window_));
  MPI_Aint size = 0;
  int unit = 0;
  void* shared = nullptr;
  mpi_check(MPI_Win_shared_query(window_, 0, &size, &unit, &shared));
  data_ = aligned(shared);
  if (owner) std::memset(data_, 0, bytes);
  mpi_check(MPI_Barrier(host_));
}

SharedMemory::~SharedMemory() {
  if (window_ == MPI_WIN_NULL || std::uncaught_exceptions() > 0) return;
  MPI_Win_free(&window_);
  MPI_Comm_free(&host_);
}

}  // namespace foretrace::hw
