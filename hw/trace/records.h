// What is noted while a pass runs, before it becomes samples and spans. Times are on clock.h's
// clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace foretrace::hw {

/// One execution of an operation in this process.
struct Execution {
  std::uint32_t op{};
  std::uint64_t instance{};
  friend bool operator==(Execution, Execution) = default;
};

/// A region's time, or what an event_elapsed_time said.
struct RegionTime {
  Execution execution;
  std::int64_t ns{};
};

/// The host's side of one operation, on clock.h's clock.
struct HostCall {
  Execution execution;
  std::int64_t begin_ns{};
  std::int64_t end_ns{};
};

/// An NCCL operation inside a group: its kernel is launched by the group's end.
struct GroupedCall {
  Execution group;
  Execution call;
  int ordinal{};
  void* stream{};  ///< a cudaStream_t
};

/// What a host thread brings back from a traced pass.
struct ThreadTrace {
  std::vector<HostCall> calls;
  std::vector<GroupedCall> grouped;
};

/// One thing a GPU did, or a host function in its stream.
struct DeviceActivity {
  enum class Kind : std::uint8_t {
    Kernel,
    Copy,
    Set,
    HostFunction  ///< on a thread of the driver, while its stream waits
  };
  Kind kind = Kind::Kernel;
  std::optional<Execution> cause;  ///< empty: nobody's, as a library's internal work
  std::int64_t begin_ns{};
  std::int64_t end_ns{};
  int ordinal{};                ///< CUDA device
  std::uint32_t stream_id{};    ///< CUPTI's number of the stream
  std::string name;             ///< of a kernel, without its parameters
  std::uint32_t grid_blocks{};  ///< of a kernel; NCCL: one per channel
};

}  // namespace foretrace::hw
