#include "reports/capture/process_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <deque>
#include <optional>
#include <unordered_map>

#include "reports/capture/kernel_name.h"

namespace foretrace::capture {
namespace {

constexpr std::int64_t kBlockedNs = 10'000;  ///< work that begins so soon behind another waited
constexpr std::int64_t kWaitedNs = 20'000;   ///< a synchronisation that takes longer waited

struct CollectiveWord {
  std::string_view captured, written;
};

/// What the language calls torch.distributed's collectives; empty for those it is not told of.
std::string_view word_of(std::string_view captured) {
  constexpr std::array<CollectiveWord, 8> kWords{
      {{"allreduce", "all_reduce"},
       {"allreduce_coalesced", "all_reduce"},
       {"_allgather_base", "all_gather"},
       {"all_gather", "all_gather"},
       {"_reduce_scatter_base", "reduce_scatter"},
       {"reduce_scatter", "reduce_scatter"},
       {"allgather_into_tensor_coalesced", "all_gather"},
       {"reduce_scatter_tensor_coalesced", "reduce_scatter"}}};
  const auto* const found = std::ranges::find(kWords, captured, &CollectiveWord::captured);
  return found == kWords.end() ? std::string_view{} : found->written;
}

struct TypeWord {
  std::string_view captured, written;
  std::uint64_t bytes;
};

TypeWord type_of(std::string_view captured) {
  constexpr std::array<TypeWord, 8> kTypes{{{"Float", "float32", 4},
                                            {"BFloat16", "bfloat16", 2},
                                            {"Half", "float16", 2},
                                            {"Double", "float64", 8},
                                            {"Int", "int32", 4},
                                            {"Long", "int64", 8},
                                            {"Char", "int8", 1},
                                            {"Byte", "int8", 1}}};
  const auto* const found = std::ranges::find(kTypes, captured, &TypeWord::captured);
  return found == kTypes.end() ? kTypes.front() : *found;
}

bool is_sync(std::string_view call) { return call.find("Synchronize") != std::string_view::npos; }

class OpsWriter {
 public:
  OpsWriter(const Capture& capture, const Process& process, const Window& window,
            const ScenarioOptions& options, std::pair<std::int64_t, std::int64_t> growth)
      : capture_{capture}, process_{process}, options_{options}, growth_{growth} {
    for (const Event& event : process.events) {
      if (event.kind == EventKind::Iteration) continue;
      if (event.kind != EventKind::Call) {
        if (event.correlation != 0) started_[event.correlation].push_back(&event);
      } else if (event.begin >= window.begin && event.begin < window.end) {
        calls_.push_back(&event);
      }
    }
  }

  ProcessOps write() {
    keep_launching_threads();
    out_.begin = calls_.empty() ? 0 : calls_.front()->begin;
    clock_ = out_.begin;
    for (const Event* call : calls_) add(*call);
    out_.end = std::max(out_.end, clock_);
    line("device_synchronize: {}");
    return std::move(out_);
  }

 private:
  const std::string& name_of(const Event& event) const { return capture_.names[event.name]; }

  /// Threads that start nothing only watch.
  void keep_launching_threads() {
    std::set<std::int64_t> launching;
    for (const Event* call : calls_) {
      if (started_.contains(call->correlation)) launching.insert(call->lane);
    }
    const std::size_t before = calls_.size();
    std::erase_if(calls_, [&](const Event* call) { return !launching.contains(call->lane); });
    if (before > calls_.size()) {
      out_.guesses["calls of threads that start no work are left out"] += before - calls_.size();
    }
    if (launching.size() > 1) {
      out_.guesses["host threads that start work take turns, as autograd's do with the main one"] +=
          launching.size();
    }
  }

  void line(std::string_view text) {
    constexpr std::string_view kMargin = "        - ";
    out_.text += kMargin;
    out_.text += text;
    out_.text += '\n';
  }

  /// The host comes to `until` (captured time), less what it owes.
  void pass(std::int64_t until) {
    const std::int64_t gap = until - clock_ - owed_;
    clock_ = std::max(clock_, until);
    owed_ = std::max<std::int64_t>(0, -gap);
    if (gap > 0) line(fmt::format("host_compute: {{duration: {}ns * $host / 100}}", gap));
  }
  void owe(std::int64_t time) { owed_ += time; }

  void add(const Event& call) {
    const std::string& name = name_of(call);
    const auto found = started_.find(call.correlation);
    if (found != started_.end() && call.correlation != 0) {
      for (const Event* work : found->second) start(call, *work, found->second.size());
    } else if (name == "cudaStreamWaitEvent" || name == "cuStreamWaitEvent") {
      waits_.push_back(&call);
    } else if (is_sync(name) && call.end - call.begin > kWaitedNs) {
      synchronize(call);
    }
  }

  void synchronize(const Event& call) {
    pass(call.begin);
    line("device_synchronize: {}");
    if (name_of(call).find("Device") == std::string::npos) {
      ++out_.guesses["a synchronisation waits for the whole device"];
    }
    clock_ = std::max(clock_, call.end);
    owed_ = options_.calls.synchronize;
  }

  void start(const Event& call, const Event& work, std::size_t together) {
    pass(call.begin);
    out_.end = std::max(out_.end, work.end);
    const bool nccl = work.kind == EventKind::Kernel && is_nccl(name_of(work));
    if (nccl && add_collective(call, work)) {
      waits_.clear();
      return;
    }
    const std::string stream = stream_of(work.lane);
    order(call, work, stream);
    // NCCL's kernels find SMs beside others; what that costs these is in their captured time.
    const std::uint32_t sms = (process_.sms == 0 ? 128 : process_.sms) * 3 / 4;
    const bool is_kernel = work.kind == EventKind::Kernel;
    const std::uint32_t blocks = is_kernel ? std::clamp<std::uint32_t>(work.blocks, 1, sms) : 1;
    if (!is_kernel) ++out_.guesses["copies and fills are kernels of one block"];
    if (together > 1) ++out_.guesses["work of a graph's launch is launched piece by piece"];
    line(fmt::format("spin: {{id: {}, stream: {}, duration: {}ns * $kernels / 100, blocks: {}}}",
                     short_name(name_of(work)), stream, work.end - work.begin, blocks));
    owe(options_.calls.launch);
    last_stream_ = work.lane;
    last_on_stream_[work.lane] = work.end;
    // A copy to the host whose call returned behind it: the host waited.
    if (work.kind == EventKind::Copy && call.end >= work.end) {
      line(fmt::format("stream_synchronize: {{stream: {}}}", stream));
      clock_ = std::max(clock_, call.end);
      owed_ = options_.calls.synchronize;
    }
  }

  std::string stream_of(std::int64_t lane) {
    out_.streams.insert(lane);
    return fmt::format("s{}", lane);
  }

  /// Events between this work and the streams before it, for the waits that were called since the
  /// last launch.
  void order(const Event& call, const Event& work, const std::string& stream) {
    bool for_a_stream = false;
    for (const Event* wait : waits_) {
      const bool is_nccls = wait->external != 0 && wait->external == last_collective_;
      if (is_nccls || wait->begin > call.begin) continue;
      if (!wait_for_collective(work, stream)) for_a_stream = true;
    }
    if (for_a_stream && last_stream_ && *last_stream_ != work.lane) {
      ++out_.guesses["a stream waits for the one that was used before it"];
      line(fmt::format("event_record: {{event: order({}), stream: s{}}}", out_.events,
                       *last_stream_));
      line(fmt::format("stream_wait_event: {{stream: {}, event: order({})}}", stream, out_.events));
      ++out_.events;
      owe(options_.calls.event_record + options_.calls.stream_wait);
    }
    waits_.clear();
  }

  /// The collective that the wait is for: one that ended right before the work began, else the
  /// oldest that nobody waited for and that had ended.
  bool wait_for_collective(const Event& work, const std::string& stream) {
    auto chosen = pending_.end();
    for (auto one = pending_.begin(); one != pending_.end(); ++one) {
      if (one->end > work.begin) continue;
      if (chosen == pending_.end() || work.begin - one->end < kBlockedNs) chosen = one;
    }
    if (chosen == pending_.end()) return false;
    ++out_.guesses["which collective a stream waits for is taken from the captured times"];
    line(fmt::format("work_wait: {{work: work_{}, stream: {}}}", chosen->number, stream));
    owe(options_.calls.stream_wait);
    pending_.erase(chosen);
    return true;
  }

  bool add_collective(const Event& call, const Event& work) {
    if (work.collective == kNoCollective) {
      ++out_.guesses["NCCL's kernels without sizes are kernels of the captured time"];
      return false;
    }
    const Collective& what = process_.collectives[work.collective];
    const std::string_view word = word_of(what.name);
    if (word.empty()) {
      ++out_.guesses[fmt::format("{}: kernels of the captured time", what.name)];
      return false;
    }
    const TypeWord type = type_of(what.type);
    const bool scatters = word == "reduce_scatter";
    std::uint64_t elements = scatters ? what.output : what.input;
    if (word != "all_reduce") {  // a share of what stays whole
      const auto captured = static_cast<std::uint64_t>(growth_.second);
      const auto processes = static_cast<std::uint64_t>(growth_.first);
      elements = (elements * captured + processes - 1) / processes;
    }
    elements = std::clamp<std::uint64_t>(elements, 1, std::uint64_t{1} << 38);
    const std::uint64_t bytes = elements * type.bytes;
    const auto ranks = static_cast<std::uint64_t>(growth_.first) * what.group /
                       static_cast<std::uint64_t>(std::max<std::int64_t>(1, growth_.second));
    out_.largest_bytes =
        std::max(out_.largest_bytes,
                 word == "all_reduce" ? bytes : bytes * std::max<std::uint64_t>(1, ranks));
    out_.groups.insert(what.ranks);
    const std::string buffers = word == "all_reduce" ? "buffer: part"
                                : scatters           ? "input: whole, output: part"
                                                     : "input: part, output: whole";
    const std::string stream = stream_of(last_stream_.value_or(work.lane));
    line(fmt::format(
        "{}: {{id: {}, stream: {}, group: {}, {}, size: {}B, type: {}, async: true, work: "
        "work_{}}}",
        word, word, stream, group_name(what.ranks), buffers, bytes, type.written, works_));
    pending_.push_back({works_++, work.end});
    last_collective_ = call.external;
    owe(options_.calls.collective);
    return true;
  }

  struct Pending {
    std::size_t number;
    std::int64_t end;
  };

  const Capture& capture_;
  const Process& process_;
  const ScenarioOptions& options_;
  std::pair<std::int64_t, std::int64_t> growth_;
  std::unordered_map<std::uint64_t, std::vector<const Event*>> started_;
  std::vector<const Event*> calls_, waits_;
  std::deque<Pending> pending_;
  std::map<std::int64_t, std::int64_t> last_on_stream_;
  std::optional<std::int64_t> last_stream_;  ///< of the last work that is not NCCL's
  std::uint64_t last_collective_ = 0;
  std::size_t works_ = 0;
  std::int64_t clock_ = 0, owed_ = 0;
  ProcessOps out_;
};

}  // namespace

std::string group_name(const std::string& ranks) {
  std::string name = "group";
  for (const char c : ranks) {
    const bool is_digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (is_digit) {
      name += c;
    } else if (name.back() != '_') {
      name += '_';
    }
  }
  while (name.back() == '_') name.pop_back();
  return name;
}

ProcessOps ops_of(const Capture& capture, const Process& process, const Window& window,
                  const ScenarioOptions& options, std::pair<std::int64_t, std::int64_t> growth) {
  return OpsWriter{capture, process, window, options, growth}.write();
}

}  // namespace foretrace::capture
