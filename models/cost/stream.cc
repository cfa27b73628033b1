#include "models/cost/stream.h"

namespace foretrace::cost {

Duration launch_latency(Reading& read, Entry entry) {
  switch (entry) {
    case Entry::Kernel:
      return read.time(Param::LaunchLatency);
    case Entry::Nccl:
      return read.time(Param::NcclLaunchLatency);
    case Entry::Copy:
      return read.time(Param::CopyLaunchLatency);
    case Entry::Graph:
      return read.time(Param::GraphLatency);
    case Entry::HostFunction:
    case Entry::NoTime:
      break;
  }
  return Duration{0};
}

Duration gap(Reading& read, const Neighbours& neighbours) {
  const auto [before, next, in_graph, event_between] = neighbours;
  if (before == Before::Nothing) return Duration{0};
  if (before == Before::HostFunction) {
    const bool follows = next == Entry::HostFunction;  // the driver's thread runs both
    return follows ? Duration{0} : read.time(Param::HostFuncReturn);
  }
  if (in_graph) return read.time(Param::GraphGap);
  if (next == Entry::HostFunction || next == Entry::NoTime) return Duration{0};
  const bool copy = next == Entry::Copy;
  if (before == Before::EventAfterCopy) return read.time(Param::EventLatencyCopy);
  if (before == Before::Event) {
    return read.time(copy ? Param::EventLatencyCopy : Param::EventLatency);
  }
  const Duration events = event_between ? read.time(Param::EventGap) : Duration{0};
  if (copy != (before == Before::Copy)) return read.time(Param::CopyAfterKernel) + events;
  if (copy) return read.time(Param::CopyGap) + events;
  const bool both_nccl = before == Before::Nccl && next == Entry::Nccl;
  return read.time(Param::KernelGap) + events +
         (both_nccl ? read.time(Param::NcclGap) : Duration{0});
}

}  // namespace foretrace::cost
