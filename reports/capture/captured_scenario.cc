#include "reports/capture/captured_scenario.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <numeric>

#include "reports/capture/process_ops.h"
#include "reports/capture/torch_words.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/words.h"
#include "scenarios/base/values/json_lexer.h"

namespace foretrace::capture {
namespace {

/// What a file is called, or says, as a part of one line of a scenario, which is UTF-8.
std::string part_of_a_line(std::string_view text) {
  constexpr std::size_t kMost = 200;
  std::string line = shortened(in_one_line(std::string{text}), kMost);
  if (!is_utf8(line)) {
    std::ranges::replace_if(
        line, [](char c) { return static_cast<unsigned char>(c) > '\x7f'; }, '?');
  }
  return line;
}

/// As YAML writes text that may be anything.
std::string yaml_quoted(std::string_view text) {
  std::string all = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') all += '\\';
    all += c;
  }
  return all + '"';
}

/// The numbers in "[0, 1]"; empty for a list that the profiler shortened ("[0, 1, ..., 7]").
std::vector<std::int64_t> ranks_in(const std::string& text) {
  std::vector<std::int64_t> ranks;
  if (text.find("...") != std::string::npos) return ranks;
  std::int64_t value = -1;
  for (const char c : text + " ") {
    constexpr std::int64_t kMost = 1 << 20;
    if (c >= '0' && c <= '9') {
      value = std::min(kMost, std::max<std::int64_t>(0, value) * 10 + (c - '0'));
    } else if (value >= 0) {
      ranks.push_back(value);
      value = -1;
    }
  }
  return ranks;
}

class Assembly {
 public:
  Assembly(const Capture& capture, const ScenarioOptions& options)
      : capture_{capture}, options_{options} {
    captured_ = static_cast<std::int64_t>(capture.processes.size());
    processes_ = options.processes > 0 ? options.processes : captured_;
  }

  CapturedScenario assemble() {
    if (captured_ == 0) throw UsageError{"no trace"};
    // A group may be larger than what was captured: one rank stands for all.
    std::int64_t world = captured_;
    for (const Process& process : capture_.processes) {
      for (const Collective& collective : process.collectives) {
        constexpr std::uint64_t kMostRanks = 16'384;
        if (collective.group > kMostRanks) {
          throw UsageError{fmt::format("{}: a collective of {} ranks: at most {} can be simulated",
                                       process.file, collective.group, kMostRanks)};
        }
        world = std::max(world, static_cast<std::int64_t>(collective.group));
      }
    }
    if (options_.processes == 0) processes_ = world;
    each_is_itself_ = processes_ == captured_ && world == captured_;
    for (const Process& process : capture_.processes) {
      const Started started{process};
      const std::vector<Step> steps = steps_of(process, started);
      ops_.push_back(ops_of(capture_, process, started, step_of(steps, process, options_.iteration),
                            options_, {processes_, world}));
      if (ops_.back().streams.empty()) {
        throw UsageError{fmt::format(
            "{}: this iteration has no kernel and no copy\n  hint: another one with --iteration",
            process.file)};
      }
    }
    CapturedScenario result;
    result.captured_ns = captured_time();
    collect_guesses(result);
    collect_notes(result);
    result.text = head() + (each_is_itself_ ? own_threads() : one_for_all(result));
    return result;
  }

 private:
  std::int64_t captured_time() const {
    std::int64_t longest = 0;
    for (const ProcessOps& ops : ops_) longest = std::max(longest, ops.end - ops.begin);
    return longest;
  }

  void collect_guesses(CapturedScenario& result) const {
    std::map<std::string, std::size_t> all;
    for (const ProcessOps& ops : ops_) {
      for (const auto& [what, count] : ops.guesses) all[what] += count;
    }
    for (const auto& [what, count] : all) {
      result.guesses.push_back(fmt::format("{} ({} times)", what, count));
    }
  }

  void collect_notes(CapturedScenario& result) const {
    const ProcessOps& slowest = *std::ranges::max_element(
        ops_, {}, [](const ProcessOps& ops) { return ops.end - ops.begin; });
    result.notes = slowest.notes;
    std::int64_t all = 0;
    for (const auto& [kind, time] : slowest.kernel_time) all += time;
    if (all == 0) return;
    const auto share = [&](KernelKind kind) {
      const auto found = slowest.kernel_time.find(kind);
      return found == slowest.kernel_time.end()
                 ? 0.0
                 : 100.0 * static_cast<double>(found->second) / static_cast<double>(all);
    };
    result.notes.push_back(fmt::format(
        "kernels of the captured time: {:.0f} % follow --with gemm (products, convolutions, "
        "attention), {:.0f} % hbm, {:.0f} % pcie; {:.0f} % no what-if ({:.0f} % NCCL's, {:.0f} % "
        "of "
        "unknown names)",
        share(KernelKind::Gemm), share(KernelKind::Hbm), share(KernelKind::Pcie),
        share(KernelKind::Nccl) + share(KernelKind::Unknown), share(KernelKind::Nccl),
        share(KernelKind::Unknown)));
    if (slowest.collective_time > 0) {
      result.notes.push_back(
          fmt::format("collectives with sizes took {:.3f} ms, waiting for other ranks included: "
                      "the model gives "
                      "theirs",
                      static_cast<double>(slowest.collective_time) * 1e-6));
    }
  }

  std::string groups() const {
    std::set<std::string> names;
    for (const ProcessOps& ops : ops_) names.insert(ops.groups.begin(), ops.groups.end());
    std::string text;
    for (const std::string& name : names) {
      const std::vector<std::int64_t> ranks = ranks_in(name);
      const bool whole =
          ranks.empty() || !each_is_itself_ || ranks.size() == static_cast<std::size_t>(processes_);
      if (!each_is_itself_ && names.size() > 1) {
        throw UsageError{fmt::format(
            "the trace has {} process groups: only a trace of one group can stand for other "
            "numbers of processes, or a part of the ranks for all",
            names.size())};
      }
      text += whole ? fmt::format("  {}: {{ranks: all, init: eager}}\n", group_name(name))
                    : fmt::format("  {}: {{ranks: [{}], init: eager}}\n", group_name(name),
                                  fmt::join(ranks, ", "));
    }
    return text.empty() ? "" : "process_groups:\n" + text;
  }

  /// Percent of the captured times of kernels and, where there are any, between calls.
  std::string parameters() const {
    const auto has = [&](auto member) { return std::ranges::any_of(ops_, member); };
    std::vector<std::string_view> names;
    if (has([](const ProcessOps& ops) { return !ops.kernel_time.empty(); })) {
      names.emplace_back("kernels: 100");
    }
    if (has(&ProcessOps::has_host_time)) names.emplace_back("host: 100");
    if (names.empty()) return {};
    return fmt::format(
        "parameters: {{{}}}  # percent of the captured times of kernels, and between "
        "calls\n",
        fmt::join(names, ", "));
  }

  std::string head() const {
    std::set<std::int64_t> streams;
    std::size_t events = 0;
    std::uint64_t bytes = 4;
    for (const ProcessOps& ops : ops_) {
      streams.insert(ops.streams.begin(), ops.streams.end());
      events = std::max(events, ops.events);
      bytes = std::max(bytes, ops.largest_bytes);
    }
    const std::string gpu = part_of_a_line(capture_.processes.front().gpu);
    std::string text = fmt::format(
        "# One iteration of {}, {:.3f} ms on {}\nschema_version: 1\nname: {}\n{}{}"
        "processes: {}\n{}",
        part_of_a_line(capture_.processes.front().file),
        static_cast<double>(captured_time()) * 1e-6,
        gpu.empty() ? "a GPU that the trace does not name" : gpu, options_.name,
        gpu.empty() ? "" : fmt::format("captured_on: {}\n", yaml_quoted(gpu)), parameters(),
        processes_, groups());
    text += "streams:\n";
    for (const std::int64_t stream : streams) {
      text += fmt::format("  s{}: {{flags: non_blocking}}\n", stream);
    }
    if (events > 0) text += fmt::format("events: {{order: {{count: {}}}}}\n", events);
    text += fmt::format(
        "buffers:\n  part:  {{memory: device, size: {0}B}}\n"
        "  whole: {{memory: device, size: {0}B}}\nthreads:\n",
        (bytes + 7) / 8 * 8);
    return text;
  }

  static std::string region(const std::string& ops, std::int64_t late) {
    std::string text = "    - host_barrier: {}\n";
    if (late > 0) text += fmt::format("    - host_compute: {{duration: {}ns}}\n", late);
    return text + "    - region:\n        name: step\n        ops:\n" + ops;
  }

  std::string own_threads() const {
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    for (const ProcessOps& ops : ops_) first = std::min(first, ops.begin);
    std::string text;
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      text += fmt::format("  rank_{0}:\n    processes: [{0}]\n    ops:\n", i);
      text += region(ops_[i].text, ops_[i].begin - first);
    }
    return text;
  }

  /// The slowest captured process stands for all.
  std::string one_for_all(CapturedScenario& result) const {
    const auto slowest = std::ranges::max_element(
        ops_, {}, [](const ProcessOps& ops) { return ops.end - ops.begin; });
    result.guesses.push_back(
        fmt::format("all {} processes do what {} did", processes_,
                    capture_.processes[static_cast<std::size_t>(slowest - ops_.begin())].file));
    return "  main:\n    ops:\n" + region(slowest->text, 0);
  }

  const Capture& capture_;
  const ScenarioOptions& options_;
  std::int64_t captured_ = 0, processes_ = 0;
  bool each_is_itself_ = true;
  std::vector<ProcessOps> ops_;
};

}  // namespace

CapturedScenario scenario_of(const Capture& capture, const ScenarioOptions& options) {
  return Assembly{capture, options}.assemble();
}

}  // namespace foretrace::capture
