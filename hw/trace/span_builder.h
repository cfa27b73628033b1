// From what was recorded in a traced pass to lanes and spans: a pure function, tested without a
// GPU.
#pragma once

#include <cstdint>
#include <vector>

#include "hw/trace/records.h"
#include "reports/timeline/timeline.h"
#include "scenarios/program/program.h"

namespace foretrace::hw {

/// An NCCL operation inside a group, with CUPTI's number of its stream.
struct GroupedLaunch {
  Execution group;
  Execution call;
  int ordinal{};
  std::uint32_t stream_id{};
};

/// One process's records of one traced pass.
struct TracedPass {
  std::uint32_t process{};
  std::uint32_t node{};  ///< the host that it is on
  int first_ordinal{};
  std::int64_t released_ns{};                ///< the pass's start: times count from here
  double drift = 0;                          ///< of this host's clock against rank 0's,
  std::int64_t compared_ns{};                ///< since they were compared (host_clocks.h)
  std::vector<std::vector<HostCall>> calls;  ///< by host thread of the program; empty: not ours
  std::vector<GroupedLaunch> grouped;
  std::vector<DeviceActivity> activities;      ///< ordered by begin
  std::vector<DeviceActivity> host_functions;  ///< ordered by begin
};

struct BuiltSpans {
  Timeline timeline;             ///< lanes, spans and details only
  std::uint64_t unattributed{};  ///< activities that no operation of the program caused
};

/// Part 0 is the host's call, parts 1, 2, ... what it made a device do, in the order of begin; the
/// pieces of one copy are one part, but not the copies of a graph. Everything that a graph does
/// belongs to its launch, on the launch's stream. A kernel that a group launched belongs to the
/// first of the group's operations on its stream.
BuiltSpans build_spans(const Program& program, const TracedPass& pass);

/// Adds another process's spans: its lanes and details get new numbers.
void add_process(Timeline& timeline, const Timeline& process);

}  // namespace foretrace::hw
