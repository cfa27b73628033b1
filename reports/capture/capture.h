// What a profiler saw of a program's processes, whichever profiler: calls into CUDA by host thread,
// and what ran on the streams, joined by correlation. Times in nanoseconds of one clock.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace foretrace::capture {

/// More events, streams or processes than these are refused.
inline constexpr std::size_t kMostEvents = 4'000'000;
inline constexpr std::size_t kMostLanes = 4096;

/// Names once each: a trace has a million events and a hundred names.
class Names {
 public:
  std::uint32_t add(std::string_view name);
  const std::string& operator[](std::uint32_t index) const { return *names_[index]; }
  std::size_t size() const { return names_.size(); }

 private:
  std::unordered_map<std::string, std::uint32_t> index_;
  std::vector<const std::string*> names_;
};

enum class EventKind : std::uint8_t {
  Call,    ///< into CUDA, on a host thread
  Kernel,  ///< on a stream, as the next two
  Copy,
  Fill,
  Iteration  ///< the profiler's mark of one step, on a host thread
};

inline constexpr std::uint32_t kNoCollective = 0xffffffff;

struct Event {
  EventKind kind = EventKind::Call;
  std::uint32_t name = 0;                    ///< index into Names
  std::uint32_t collective = kNoCollective;  ///< Kernel: index into Process::collectives
  std::uint32_t blocks = 0;                  ///< Kernel: of its grid; 0: not known
  std::uint32_t device = 0;
  std::int64_t lane = 0;  ///< host thread, or stream
  std::int64_t begin = 0, end = 0;
  std::uint64_t correlation = 0;  ///< of a call with what it started; 0: none
  std::uint64_t external = 0;     ///< Call: of the framework's operation around it; 0: none
};

/// What CUPTI says a call waited for ("cuda_sync"); streams by their numbers, -1: not said.
struct SyncDetail {
  std::int64_t stream = -1;     ///< that waits or, of the host's call, is waited for
  std::int64_t on_stream = -1;  ///< of an event: where it was recorded
  std::uint64_t record = 0;     ///< correlation of the cudaEventRecord; 0: not said
};

/// What torch.distributed says of an NCCL kernel.
struct Collective {
  std::string name;                     ///< "allreduce", "_allgather_base"
  std::string type;                     ///< "Float", "BFloat16"
  std::string ranks;                    ///< "[0, 1]"; long lists are shortened
  std::uint64_t input = 0, output = 0;  ///< elements of this rank
  std::uint64_t group = 0;              ///< ranks
  friend auto operator<=>(const Collective&, const Collective&) = default;
};

/// What PyTorch's allocator holds on a device from a time on (profile_memory=True); bytes.
struct MemoryEvent {
  std::int64_t at = 0;
  std::uint32_t device = 0;
  std::int64_t allocated = 0, reserved = 0;
};

/// Part of a process's time.
struct Window {
  std::int64_t begin = 0, end = 0;
};

struct Process {
  std::int64_t rank = -1;  ///< -1: the trace does not say
  std::string file;
  std::string gpu;
  std::uint32_t sms = 0;
  std::vector<Event> events;  ///< by begin
  std::vector<Collective> collectives;
  std::vector<MemoryEvent> memory;                      ///< by time
  std::unordered_map<std::uint64_t, SyncDetail> syncs;  ///< by the call's correlation
  bool tells_stream_waits = false;  ///< `syncs` has those of streams for each other
  Window extent;                    ///< of all that the host did, operators too; empty: not known
  std::map<std::string, std::size_t> left_out;  ///< categories of events that were not kept
};

struct Capture {
  Names names;
  std::vector<Process> processes;
};

/// Sorts events by time.
void finish(Process& process);

/// Throws UsageError where two processes have one rank, one was given twice, nothing of a GPU was
/// captured, or more time lies between two events than a timeline can hold.
void check(const Capture& capture);

}  // namespace foretrace::capture
