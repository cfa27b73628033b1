#include "reports/capture/captured_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "reports/capture/kernel_name.h"

namespace foretrace::capture {
namespace {

class Writer {
 public:
  explicit Writer(const Capture& capture) : capture_{capture} {
    origin_ns_ = std::numeric_limits<std::int64_t>::max();
    for (const Process& process : capture.processes) {
      if (!process.events.empty()) {
        origin_ns_ = std::min(origin_ns_, process.events.front().begin);
      }
    }
  }

  Timeline write() {
    std::uint32_t number = 0;
    for (const Process& process : capture_.processes) add_process(process, number++);
    for (auto& [key, index] : rows_) {
      timeline_.ops[index].loops = {std::max<std::uint64_t>(1, instances_[index])};
    }
    timeline_.origin.measured = true;
    timeline_.origin.scenario = "capture";
    timeline_.origin.producer = "foretrace import";
    if (!capture_.processes.empty()) {
      const Process& first = capture_.processes.front();
      timeline_.origin.file = first.file;
      timeline_.origin.machine = fmt::format("{} x {}", capture_.processes.size(), first.gpu);
      timeline_.origin.program_hash = fmt::format("capture-{}-{}-{}", capture_.processes.size(),
                                                  first.events.size(), timeline_.spans.size());
    }
    return std::move(timeline_);
  }

 private:
  std::uint32_t row(const std::string& kind, const std::string& label) {
    const auto [found, is_new] =
        rows_.try_emplace({kind, label}, static_cast<std::uint32_t>(timeline_.ops.size()));
    if (is_new) {
      OpRow op;
      op.kind = kind;
      op.label = label;
      timeline_.ops.push_back(std::move(op));
      instances_.push_back(0);
    }
    return found->second;
  }

  std::uint32_t lane(const Event& event, std::uint32_t process) {
    const bool on_host = event.kind == EventKind::Call;
    const std::uint32_t device = on_host ? kNoDevice : event.device;
    const auto [found, is_new] = lanes_.try_emplace(
        {process, device, event.lane}, static_cast<std::uint32_t>(timeline_.lanes.size()));
    if (is_new) {
      Lane made;
      made.kind = on_host ? LaneKind::HostThread : LaneKind::Stream;
      made.process = process;
      made.device = device;
      made.name = fmt::format("{} {}", on_host ? "thread" : "stream", event.lane);
      timeline_.lanes.push_back(std::move(made));
    }
    return found->second;
  }

  std::string kind_of(const Event& event) const {
    switch (event.kind) {
      case EventKind::Copy:
        return "memcpy_async";
      case EventKind::Fill:
        return "memset_async";
      case EventKind::Kernel:
        return is_nccl(capture_.names[event.name]) ? "nccl_kernel" : "library_kernel";
      case EventKind::Call:
      case EventKind::Iteration:
        break;
    }
    const std::string& name = capture_.names[event.name];
    return name.find("Synchronize") == std::string::npos ? "cuda_call" : "synchronize";
  }

  void add_process(const Process& process, std::uint32_t number) {
    std::map<std::uint32_t, std::uint64_t> next;  // instance of an operation in this process
    for (const Event& event : process.events) {
      if (event.kind == EventKind::Iteration) continue;
      Span span;
      span.op = row(kind_of(event), short_name(capture_.names[event.name]));
      span.lane = lane(event, number);
      span.instance = next[span.op]++;
      span.begin_ns = event.begin - origin_ns_;
      span.end_ns = event.end - origin_ns_;
      span.part = event.kind == EventKind::Call ? 0 : 1;
      if (event.kind == EventKind::Kernel) {
        SpanDetail detail;
        detail.kernel = capture_.names[event.name];
        span.detail = intern_once(event.name, detail);
      }
      timeline_.spans.push_back(span);
    }
    for (const MemoryEvent& event : process.memory) {
      timeline_.memory.push_back(
          {number, event.device, event.at - origin_ns_, event.allocated, event.reserved});
    }
    for (const auto& [op, count] : next) instances_[op] = std::max(instances_[op], count);
    const std::vector<Window> windows = iterations_of(process);
    const std::uint32_t step = row("region", "step");
    instances_[step] = std::max<std::uint64_t>(instances_[step], windows.size());
    for (std::size_t i = 0; i < windows.size(); ++i) {
      RegionSamples region;
      region.op = step;
      region.instance = i;
      region.process = number;
      region.name = "step";
      region.samples_ns = {windows[i].end - windows[i].begin};
      timeline_.regions.push_back(std::move(region));
    }
  }

  std::uint32_t intern_once(std::uint32_t name, const SpanDetail& detail) {
    const auto [found, is_new] = details_.try_emplace(name, 0);
    if (is_new) found->second = intern(timeline_, detail);
    return found->second;
  }

  const Capture& capture_;
  Timeline timeline_;
  std::int64_t origin_ns_ = 0;
  std::map<std::pair<std::string, std::string>, std::uint32_t> rows_;
  std::vector<std::uint64_t> instances_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::int64_t>, std::uint32_t> lanes_;
  std::map<std::uint32_t, std::uint32_t> details_;
};

}  // namespace

Timeline timeline_of(const Capture& capture) { return Writer{capture}.write(); }

}  // namespace foretrace::capture
