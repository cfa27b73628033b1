#include "models/cost/stream.h"

#include <algorithm>
#include <utility>

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
    case Entry::Record:
    case Entry::NoTime:
      break;
  }
  return Duration{0};
}

Duration hand_over_to_peer(Reading& read) {
  return read.has(Param::EventLatencyPeer) ? read.time(Param::EventLatencyPeer) : Duration{0};
}

namespace {

/// Between two engines: one polls for what the other has done, and how soon it looks is chance. A
/// pair of queued copies takes 9 or 17 us, time and again (hw/laboratory/causes/small_copies.yaml).
Duration switch_time(Reading& read, const Neighbours& neighbours) {
  const bool small = read.has(Param::SmallCopySwitch) && read.has(Param::SmallCopyLimit) &&
                     neighbours.copied <= read.size(Param::SmallCopyLimit);
  if (neighbours.other_engine && read.has(Param::CopySwitch)) {
    return read.time(small ? Param::SmallCopySwitch : Param::CopySwitch);
  }
  // The engine of the stream's kernels takes small uploads itself.
  const bool one_engine =
      (small || neighbours.in_stream) && neighbours.upload && !neighbours.other_engine;
  return read.time(one_engine ? Param::CopyGap : Param::CopyAfterKernel);
}

/// What a NCCL kernel and others wait longer for each other's events than kernels do among
/// themselves; an event that is handed on through streams without work is not a kernel's.
Duration hand_over_time(Reading& read, const Neighbours& neighbours) {
  const auto [next, waited_for] = std::pair{neighbours.next, neighbours.waited_for};
  const auto known = [&](Param param) { return read.has(param) ? read.time(param) : Duration{0}; };
  const bool from_kernel = waited_for == Before::Kernel && read.has(Param::NcclEventLatencyKernel);
  if (next == Entry::Nccl) {
    return known(from_kernel ? Param::NcclEventLatencyKernel : Param::NcclEventLatency);
  }
  const bool to_kernel = next == Entry::Kernel && waited_for == Before::Nccl;
  return to_kernel ? known(Param::NcclEventLatencyAfter) : Duration{0};
}

}  // namespace

Duration gap(Reading& read, const Neighbours& neighbours) {
  const auto [before, next, in_graph, event_between, other_engine, upload, copied, in_stream,
              waited_for] = neighbours;
  if (before == Before::Nothing) return Duration{0};
  if (before == Before::HostFunction) {
    const bool follows = next == Entry::HostFunction;  // the driver's thread runs both
    return follows ? Duration{0} : read.time(Param::HostFuncReturn);
  }
  const bool copy = next == Entry::Copy;
  const bool was_copy = before == Before::Copy;
  if (in_graph) {
    const bool other = copy != was_copy || other_engine;
    if (other) return read.time(Param::CopyAfterKernel);
    // Between a NCCL kernel and another one as on a stream: 1.1 us (captured_collectives_202 of
    // blind round 3, with spans).
    const bool one_nccl = (next == Entry::Nccl) != (before == Before::Nccl);
    return read.time(one_nccl ? Param::KernelGap : Param::GraphGap);
  }
  const bool was_held_up = before == Before::Event || before == Before::PlainEvent;
  // An event handed on takes as long as one that a kernel waits for: 7.5 us for two, the second in
  // front of a NCCL kernel (hw/laboratory/causes/nccl_beside.yaml, exchange_2MiB_first_none).
  const bool hands_on = next == Entry::Record && was_held_up && read.takes(Term::HandsOn);
  const bool no_time = next == Entry::NoTime || (next == Entry::Record && !hands_on);
  if (next == Entry::HostFunction || no_time) return Duration{0};
  if (before == Before::EventAfterCopy) return read.time(Param::EventLatencyCopy);
  // A kernel of the legacy default stream begins 2.3 to 2.6 us behind those of blocking streams,
  // one of theirs 1.1 to 1.6 us behind its own, as behind an event: spans of
  // 36_default_stream_mixture of written-1 and of conformance scenarios on H200s.
  if (before == Before::OtherStreams) {
    if (copy) return read.time(Param::CopyAfterKernel);
    const Duration plain = read.time(Param::EventLatency) - read.time(Param::EventGap);
    return std::max(plain, Duration{0}) + read.time(Param::KernelGap);
  }
  if (was_held_up) {
    Duration latency = read.time(copy ? Param::EventLatencyCopy : Param::EventLatency);
    if (before == Before::PlainEvent) latency -= read.time(Param::EventGap);
    latency += hand_over_time(read, neighbours);
    return std::max(latency, read.time(Param::KernelGap));
  }
  const Duration events = event_between ? read.time(Param::EventGap) : Duration{0};
  if (copy != was_copy || other_engine) return switch_time(read, neighbours) + events;
  if (copy) return read.time(Param::CopyGap) + events;
  const bool both_nccl = before == Before::Nccl && next == Entry::Nccl;
  return read.time(Param::KernelGap) + events +
         (both_nccl ? read.time(Param::NcclGap) : Duration{0});
}

}  // namespace foretrace::cost
