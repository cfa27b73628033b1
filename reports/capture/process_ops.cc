#include "reports/capture/process_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "reports/capture/kernel_name.h"
#include "reports/capture/stream_order.h"
#include "reports/capture/torch_words.h"

namespace foretrace::capture {
namespace {

constexpr std::int64_t kWaitedNs = 20'000;  ///< a call or a gap that takes longer waited
constexpr std::int64_t kLate = 2'000;       ///< two clocks agree no better

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// cudaStreamWaitEvent, hipStreamWaitEvent, with whatever suffix a profiler gives them.
bool is_stream_wait(std::string_view call) { return has(call, "StreamWaitEvent"); }
bool is_sync(std::string_view call) {
  return has(call, "Synchronize") || has(call, "EventWait") || has(call, "QueueFinish");
}
bool is_whole_device(std::string_view call) {
  return has(call, "Device") || has(call, "Ctx") || has(call, "QueueFinish");
}

class OpsWriter {
 public:
  OpsWriter(const Capture& capture, const Process& process, const Started& started,
            const Step& step, const ScenarioOptions& options,
            std::pair<std::int64_t, std::int64_t> growth)
      : capture_{capture},
        started_{started},
        step_{step},
        growth_{growth},
        widths_{ran_at_once(capture, process)},
        w_{process, options},
        calls_ns_{options.calls} {
    for (const Event& event : process.events) {
      if (event.kind != EventKind::Call || event.begin >= step.host.end) continue;
      if (event.begin >= step.host.begin) {
        calls_.push_back(&event);
      } else {
        for (const Event* work : started_.by(event)) w_.in_flight.add_earlier(work->end);
      }
    }
  }

  ProcessOps write() {
    keep_launching_threads();
    for (const Event* call : calls_) {
      for (const Event* work : started_.by(*call)) {
        if (is_collective(*work)) order_.has_collectives(work->lane);
      }
    }
    launch_orphans();
    clock_ = step_.whole.begin;
    for (const Event* call : calls_) add(*call);
    owe(calls_ns_.synchronize);
    pass(step_.host.end);
    w_.script.add("device_synchronize: {}");
    say_what_was_left();
    w_.out.begin = step_.whole.begin;
    w_.out.end = step_.whole.end;
    w_.out.text = w_.script.text();
    return std::move(w_.out);
  }

 private:
  const std::string& name_of(const Event& event) const { return capture_.names[event.name]; }
  static double ms(std::int64_t ns) { return static_cast<double>(ns) * 1e-6; }

  /// Threads that start nothing only watch.
  void keep_launching_threads() {
    std::set<std::int64_t> launching;
    for (const Event* call : calls_) {
      if (!started_.by(*call).empty()) launching.insert(call->lane);
    }
    const std::size_t before = calls_.size();
    std::erase_if(calls_, [&](const Event* call) { return !launching.contains(call->lane); });
    if (before > calls_.size()) {
      w_.out.guesses["calls of threads that start no work are left out"] += before - calls_.size();
    }
    if (launching.size() > 1) {
      w_.out.guesses
          ["host threads that start work take turns, as autograd's do with the main "
           "one"] += launching.size();
    }
  }

  /// Work whose call is not in the trace is launched when it began.
  void launch_orphans() {
    std::vector<const Event*> orphans;
    for (const Event* work : started_.orphans()) {
      const bool is_inside = work->begin >= std::max(step_.host.begin, started_.first_begin()) &&
                             work->begin < step_.host.end;
      if (is_inside) orphans.push_back(work);
    }
    if (orphans.empty()) return;
    w_.out.guesses["work whose call is not in the trace is launched when it began"] +=
        orphans.size();
    made_up_.reserve(orphans.size());
    for (const Event* work : orphans) {
      Event call;
      call.begin = work->begin;
      call.end = work->begin;
      call.name = work->name;
      made_up_.push_back(call);
      orphan_of_[&made_up_.back()] = work;
      calls_.push_back(&made_up_.back());
    }
    std::ranges::stable_sort(calls_, {}, &Event::begin);
  }

  /// The host comes to `until` (captured time), less what it owes.
  void pass(std::int64_t until) {
    constexpr std::int64_t kShortest = 200;  // ns; what is shorter is added to the next
    const std::int64_t gap = std::max<std::int64_t>(0, until - clock_) - w_.owed;
    clock_ = std::max(clock_, until);
    w_.owed = -gap;
    if (gap < kShortest) return;
    w_.owed = 0;
    w_.out.has_host_time = true;
    w_.script.add(fmt::format("host_compute: {{duration: {}ns * $host / 100}}", gap));
  }
  void owe(std::int64_t time) { w_.owed += time; }
  /// The host was held until `until`: that is no work of its own.
  void held(std::int64_t until) {
    clock_ = std::max(clock_, until);
    w_.owed = 0;
  }

  void add(const Event& call) {
    const auto made_up = orphan_of_.find(&call);
    if (made_up != orphan_of_.end()) {
      pass(call.begin);
      return start(call, *made_up->second);
    }
    const std::vector<const Event*>& work = started_.by(call);
    if (work.empty()) {
      if (is_stream_wait(name_of(call))) return order_.add_wait(call);
      order_.remember_record(call, name_of(call));
      return synchronize(call);
    }
    const bool was_full = waited_for_room(call);
    pass(was_full ? call.begin : launched_at(call, *work.front()));
    if (work.size() > 1) w_.guess("work of a graph's launch is launched piece by piece");
    for (const Event* one : work) start(call, *one);
    if (was_full) {
      w_.guess("a launch waited for room in the full launch queue");
      held(call.end);
    }
  }

  /// When a call handed over its work: at its end, or right before that began. One that waited for
  /// its stream, as a copy into pageable memory does: at its beginning.
  std::int64_t launched_at(const Event& call, const Event& work) const {
    const auto before = w_.ends.find(work.lane);
    const bool stream_is_busy = before != w_.ends.end() && before->second > call.begin;
    if (stream_is_busy && call.end >= work.begin) return call.begin;
    return std::max(call.begin, std::min(call.end, work.begin) - calls_ns_.launch);
  }

  /// A call that starts work and takes long, behind much that is queued: it came back when
  /// something had ended and made room.
  bool waited_for_room(const Event& call) {
    constexpr std::size_t kMuch = 16;
    constexpr std::int64_t kReturns = 15'000;  // ns from the end of what makes room
    const std::size_t queued = w_.in_flight.queued(call.begin);
    if (call.end - call.begin <= kWaitedNs || queued < kMuch) return false;
    const bool is_behind = w_.in_flight.ended_within(call.end - kReturns, call.end) != nullptr;
    return is_behind || call.end <= step_.whole.begin;
  }

  /// A call that came back behind the end of work that had not ended when it was made.
  void synchronize(const Event& call) {
    const std::string& name = name_of(call);
    if (call.end - call.begin <= kWaitedNs) return;
    const Launched* last = w_.in_flight.ended_within(call.begin + 1, call.end + kLate);
    const bool all = w_.in_flight.all_ended(call.end + kLate);
    // Others (cudaFree, cudaMalloc) wait for the device, if they do.
    if (last == nullptr || (!is_sync(name) && (!all || call.end - last->end > kBlockedNs))) return;
    pass(call.begin);
    const auto told = w_.process.syncs.find(call.correlation);
    const std::int64_t stream = told == w_.process.syncs.end() ? -1 : told->second.stream;
    if (all && (!is_sync(name) || is_whole_device(name) || last->collective)) {
      w_.script.add("device_synchronize: {}");
    } else if (stream >= 0 && w_.out.streams.contains(stream)) {
      w_.script.add(fmt::format("stream_synchronize: {{stream: s{}}}", stream));
    } else if (last->collective) {
      w_.guess("a host waits for a collective: left out");
    } else if (w_.in_flight.last_on(last->lane) == last) {
      w_.guess("for which stream the host waits is taken from the captured times");
      w_.script.add(fmt::format("stream_synchronize: {{stream: s{}}}", last->lane));
    } else {
      w_.guess("for which work the host waits is taken from the captured times");
      w_.script.add(
          fmt::format("event_synchronize: {{event: order({})}}", order_.record_behind(*last)));
    }
    held(last->end);  // the call's way back is the host's time
    w_.owed = calls_ns_.synchronize;
  }

  void start(const Event& call, const Event& work) {
    if (is_collective(work)) return add_collective(call, work);
    const bool is_kernel = work.kind == EventKind::Kernel;
    if (is_kernel && is_nccl(name_of(work))) say_captured_time(work);
    if (!is_kernel) w_.guess("copies and fills are kernels of one block");
    const std::string stream = w_.stream_of(work.lane);
    const auto before = w_.ends.find(work.lane);
    const std::int64_t ready = std::max(
        {call.end, step_.whole.begin, before == w_.ends.end() ? call.end : before->second});
    order_.order(call, work, ready);
    const KernelKind kind = kind_of(work.kind, name_of(work));
    w_.out.kernel_time[kind] += work.end - work.begin;
    const std::string_view word = what_if_word(kind);
    const std::int64_t gap = gap_before(work, ready);
    w_.in_flight.add({work.begin, work.end, work.lane, w_.script.size(), {}});
    w_.script.add(fmt::format(
        "spin: {{id: {}, stream: {}, duration: {}ns * $kernels / 100, {}{}{}}}",
        short_name(name_of(work)), stream,
        std::max<std::int64_t>(1, work.end - work.begin - calls_ns_.spin_overhead + gap),
        blocks_of(work), word.empty() ? "" : ", scales_with: ", word));
    w_.ends[work.lane] = work.end;
    owe(calls_ns_.launch);
    w_.last_stream = work.lane;
    // A call that returned behind the end of what it started: the host waited.
    const bool waited = call.end >= work.end && !orphan_of_.contains(&call) &&
                        (work.kind == EventKind::Copy || call.end - call.begin > kWaitedNs);
    if (waited) {
      w_.script.add(fmt::format("stream_synchronize: {{stream: {}}}", stream));
      held(work.end);
      w_.owed = calls_ns_.synchronize;
    }
  }

  void say_captured_time(const Event& work) {
    if (work.collective == kNoCollective) {
      w_.guess("NCCL's kernels without sizes are kernels of the captured time");
    } else {
      w_.guess(fmt::format("{}: kernels of the captured time",
                           w_.process.collectives[work.collective].name));
    }
  }

  /// What is added to the duration of work that was queued behind other work of its stream, so that
  /// the captured gap stays, less what the simulator leaves there. A longer one, which nothing in
  /// the trace explains, is a kernel of its own.
  std::int64_t gap_before(const Event& work, std::int64_t ready) {
    const auto awaited = w_.awaited.find(work.lane);
    if (awaited != w_.awaited.end()) ready = std::max(ready, awaited->second);
    const std::int64_t gap = work.begin - ready;
    const auto before = w_.ends.find(work.lane);
    const bool was_queued = before != w_.ends.end() && before->second == ready;
    const bool is_explained =
        w_.in_flight.ended_within(work.begin - kBlockedNs, work.begin, work.lane) != nullptr;
    if (gap <= kWaitedNs) return was_queued && gap >= 0 ? gap - calls_ns_.kernel_gap : 0;
    if (is_explained) return 0;
    w_.out.unexplained += gap;
    w_.script.add(fmt::format(
        "spin: {{id: waits_for_what_was_not_captured, stream: {}, duration: {}ns, blocks: 1}}",
        w_.stream_of(work.lane), gap));
    owe(calls_ns_.launch);
    return 0;
  }

  /// "blocks: 228, of: 304": as large a part of whichever GPU it is simulated on. NCCL's kernels
  /// find SMs beside others, and so do those that ran beside each other; what that cost them is in
  /// their captured time.
  std::string blocks_of(const Event& work) const {
    if (work.kind != EventKind::Kernel) return "blocks: 1";
    const std::uint32_t sms = w_.process.sms == 0 ? w_.options.sms : w_.process.sms;
    const std::uint32_t most = std::max<std::uint32_t>(1, sms * 3 / (4 * widths_[index_of(work)]));
    if (work.blocks > 0 && work.blocks < most) return fmt::format("blocks: {}", work.blocks);
    return fmt::format("blocks: {}, of: {}", most, sms);
  }
  std::size_t index_of(const Event& event) const {
    return static_cast<std::size_t>(&event - w_.process.events.data());
  }

  /// One that the language has, with its size.
  bool is_collective(const Event& work) const {
    return work.kind == EventKind::Kernel && work.collective != kNoCollective &&
           is_nccl(name_of(work)) && !word_of(w_.process.collectives[work.collective].name).empty();
  }

  void add_collective(const Event& call, const Event& work) {
    const Collective& what = w_.process.collectives[work.collective];
    const std::string_view word = word_of(what.name);
    const TypeWord type = type_of(what.type);
    const bool scatters = word == "reduce_scatter";
    std::uint64_t elements = scatters ? what.output : what.input;
    const auto captured = static_cast<std::uint64_t>(std::max<std::int64_t>(1, growth_.second));
    const auto processes = static_cast<std::uint64_t>(growth_.first);
    elements = std::min(elements, std::uint64_t{1} << 38);
    // A share of what stays whole.
    if (word != "all_reduce") elements = (elements * captured + processes - 1) / processes;
    const std::uint64_t bytes = std::max<std::uint64_t>(1, elements) * type.bytes;
    const std::uint64_t ranks = std::max<std::uint64_t>(1, processes * what.group / captured);
    w_.out.largest_bytes =
        std::max(w_.out.largest_bytes, word == "all_reduce" ? bytes : bytes * ranks);
    w_.out.groups.insert(what.ranks);
    const std::string buffers = word == "all_reduce" ? "buffer: part"
                                : scatters           ? "input: whole, output: part"
                                                     : "input: part, output: whole";
    const std::string stream = w_.stream_of(order_.source_of(work));
    w_.in_flight.add({work.begin, work.end, work.lane, w_.script.size(), works_});
    w_.script.add(fmt::format(
        "{}: {{id: {}, stream: {}, group: {}, {}, size: {}B, type: {}, async: true, work: "
        "work_{}}}",
        word, word, stream, group_name(what.ranks), buffers, bytes, type.written, works_));
    order_.add_collective(works_++, work.end, call.external);
    w_.out.collective_time += work.end - work.begin;
    owe(calls_ns_.collective);
  }

  void say_what_was_left() {
    if (step_.backlog > kWaitedNs) {
      w_.out.notes.push_back(
          fmt::format("when the host began, earlier work ran on for {:.3f} ms on the GPU: left out",
                      ms(step_.backlog)));
    }
    if (step_.beside > kWaitedNs) {
      w_.out.notes.push_back(
          fmt::format("{:.3f} ms of this step's work ran beside earlier work: simulated behind it",
                      ms(step_.beside)));
    }
    constexpr std::int64_t kWorthSaying = 100;  // a hundredth of the step
    if (w_.out.unexplained * kWorthSaying > step_.whole.end - step_.whole.begin) {
      w_.out.notes.push_back(fmt::format(
          "{:.3f} ms in which queued work waited for what the trace does not have: kept",
          ms(w_.out.unexplained)));
    }
  }

  const Capture& capture_;
  const Started& started_;
  const Step& step_;
  std::pair<std::int64_t, std::int64_t> growth_;
  std::vector<std::uint32_t> widths_;  ///< by event
  std::vector<const Event*> calls_;
  std::vector<Event> made_up_;  ///< calls of orphans
  std::unordered_map<const Event*, const Event*> orphan_of_;
  Writing w_;
  StreamOrder order_{w_};
  const CallTimes& calls_ns_;
  std::size_t works_ = 0;
  std::int64_t clock_ = 0;
};

}  // namespace

ProcessOps ops_of(const Capture& capture, const Process& process, const Started& started,
                  const Step& step, const ScenarioOptions& options,
                  std::pair<std::int64_t, std::int64_t> growth) {
  return OpsWriter{capture, process, started, step, options, growth}.write();
}

}  // namespace foretrace::capture
