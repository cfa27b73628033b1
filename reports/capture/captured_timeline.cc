#include "reports/capture/captured_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <unordered_set>

#include "reports/capture/kernel_name.h"
#include "reports/capture/steps.h"
#include "reports/timeline/origin.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::capture {
namespace {

/// The calls of a step and what they started.
std::unordered_set<const Event*> events_of(const Step& step, const Process& process,
                                           const Started& started) {
  std::unordered_set<const Event*> inside;
  const auto is_inside = [&](const Event& event) {
    return event.begin >= step.host.begin && event.begin < step.host.end;
  };
  for (const Event& event : process.events) {
    if (event.kind != EventKind::Call || !is_inside(event)) continue;
    inside.insert(&event);
    inside.insert(started.by(event).begin(), started.by(event).end());
  }
  for (const Event* work : started.orphans()) {
    if (is_inside(*work) && work->begin >= started.first_begin()) inside.insert(work);
  }
  return inside;
}

class Writer {
 public:
  explicit Writer(const Capture& capture) : capture_{capture} {
    for (const Process& process : capture.processes) {
      if (!process.events.empty()) {
        origin_ns_ = std::min(origin_ns_, process.events.front().begin);
      }
    }
    regions_.push_back(row("region", "step"));
    timeline_.ops.front().captured = false;
  }
  Writer(const Capture& capture, const Program& program, std::optional<std::size_t> iteration)
      : capture_{capture}, program_{&program}, iteration_{iteration} {
    timeline_.ops = op_rows(program);
    instances_.resize(timeline_.ops.size());
    for (std::uint32_t op = 0; op < timeline_.ops.size(); ++op) {
      if (timeline_.ops[op].kind == "region") regions_.push_back(op);
    }
    FORETRACE_CHECK(!regions_.empty(), "a captured scenario has a region");
    for (const Process& process : capture.processes) {
      const Step step = step_of(steps_of(process, Started{process}), process, iteration);
      origin_ns_ = std::min(origin_ns_, step.host.begin);
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
      timeline_.origin.program_hash = kCapturedHash;
    }
    if (program_ != nullptr) {
      timeline_.origin.scenario = program_->name;
      timeline_.origin.file = program_->file;
      timeline_.origin.program_hash = program_->hash;
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
      op.captured = true;
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
    const Started started{process};
    const std::vector<Step> steps = steps_of(process, started);
    std::optional<Step> only;
    if (program_ != nullptr) only = step_of(steps, process, iteration_);
    const std::unordered_set<const Event*> inside =
        only ? events_of(*only, process, started) : std::unordered_set<const Event*>{};
    for (const Event& event : process.events) {
      if (event.kind == EventKind::Iteration || (only && !inside.contains(&event))) continue;
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
      if (only && (event.at < only->host.begin || event.at >= only->whole.end)) continue;
      timeline_.memory.push_back(
          {number, event.device, event.at - origin_ns_, event.allocated, event.reserved});
    }
    for (const auto& [op, count] : next) instances_[op] = std::max(instances_[op], count);
    RegionSamples region;  // an iteration is a repetition
    region.op = regions_[std::min<std::size_t>(number, regions_.size() - 1)];
    region.process = number;
    region.name = "step";
    for (const Step& one : steps) {
      if (!only) region.samples_ns.push_back(one.whole.end - one.whole.begin);
    }
    if (only) region.samples_ns = {only->whole.end - only->whole.begin};
    timeline_.regions.push_back(std::move(region));
  }

  std::uint32_t intern_once(std::uint32_t name, const SpanDetail& detail) {
    const auto [found, is_new] = details_.try_emplace(name, 0);
    if (is_new) found->second = intern(timeline_, detail);
    return found->second;
  }

  const Capture& capture_;
  Timeline timeline_;
  const Program* program_ = nullptr;
  std::optional<std::size_t> iteration_;
  std::vector<std::uint32_t> regions_;  ///< by process; the last is that of all others
  std::int64_t origin_ns_ = std::numeric_limits<std::int64_t>::max();
  std::map<std::pair<std::string, std::string>, std::uint32_t> rows_;
  std::vector<std::uint64_t> instances_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::int64_t>, std::uint32_t> lanes_;
  std::map<std::uint32_t, std::uint32_t> details_;
};

}  // namespace

Timeline timeline_of(const Capture& capture) { return Writer{capture}.write(); }

Timeline timeline_of(const Capture& capture, const Program& program,
                     std::optional<std::size_t> iteration) {
  return Writer{capture, program, iteration}.write();
}

}  // namespace foretrace::capture
