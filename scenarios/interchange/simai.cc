// SimAI's workload: a first line with the parallelism, the number of rows, and a row for each
// layer: name, dependency, then time (ns), collective and bytes of the forward pass, of the input's
// gradient and of the weights' gradient, and the time of the update
// (aliyun/SimAI, astra-sim-alibabacloud/astra-sim/workload/Workload.cc).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "scenarios/interchange/interchange.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::interchange {
namespace {

constexpr std::size_t kMostRows = 100'000;
constexpr std::uint64_t kMostPassBytes = std::uint64_t{1} << 42;
constexpr std::uint64_t kMostNs = 1'000'000'000'000;  // 1,000 s
constexpr std::uint32_t kMostGpus = 1 << 20;

struct Words {
  const std::string& file;
  std::size_t line = 0;
  std::vector<std::string> words;

  [[noreturn]] void fail(std::size_t word, std::string_view what) const {
    throw UsageError{fmt::format("{}:{}: word {}: {}", file, line, word + 1, what)};
  }
  const std::string& text(std::size_t i) const {
    if (i >= words.size()) fail(i, "the line ends here");
    return words[i];
  }
  std::uint64_t number(std::size_t i, std::uint64_t most) const {
    const std::string& word = text(i);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc{} || end != word.data() + word.size() || value > most) {
      fail(i, fmt::format("'{}' is no number from 0 to {}", word.substr(0, 40), most));
    }
    return value;
  }
};

struct Pass {
  std::uint64_t ns = 0;
  std::string collective;  ///< "ALLREDUCE", "ALLTOALL", ...; empty: none
  std::string group;       ///< "TP", "DP", "EP", "DP_EP"
  std::uint64_t bytes = 0;
};

struct Row {
  std::string name;
  std::array<Pass, 3> passes;  ///< forward, input's gradient, weights' gradient
};

constexpr std::array kLayerCollectives{
    std::pair{"ALLREDUCE", "nccl_all_reduce"}, std::pair{"ALLGATHER", "nccl_all_gather"},
    std::pair{"REDUCESCATTER", "nccl_reduce_scatter"}, std::pair{"ALLTOALL", "nccl_all_to_all"}};

Pass pass_of(const Words& words, std::size_t first, bool weights) {
  Pass pass{words.number(first, kMostNs), {}, {}, words.number(first + 2, kMostPassBytes)};
  const std::string& word = words.text(first + 1);
  if (word == "NONE") return pass;
  for (const auto& [name, op] : kLayerCollectives) {
    if (!word.starts_with(name)) continue;
    const std::string group = word.substr(std::string_view{name}.size());
    pass.collective = op;
    if (group.empty()) pass.group = weights ? "DP" : "TP";
    if (group == "_EP") pass.group = "EP";
    if (group == "_DP_EP") pass.group = "DP_EP";
    if (!pass.group.empty()) return pass;
  }
  words.fail(first + 1,
             fmt::format("'{}' is no collective of SimAI that is known: NONE, ALLREDUCE, "
                         "ALLGATHER, REDUCESCATTER, ALLTOALL, with _EP or _DP_EP",
                         word.substr(0, 40)));
}

struct Workload {
  std::string policy;
  std::map<std::string, std::uint64_t> facts{{"model_parallel_NPU_group", 1},
                                             {"ep", 1},
                                             {"pp", 1},
                                             {"vpp", 1},
                                             {"ga", 1},
                                             {"all_gpus", 0}};
  std::vector<Row> rows;
  std::vector<std::string> unknown;
};

Workload workload_of(const RankFile& file) {
  Workload workload;
  std::istringstream lines{file.bytes};
  Words words{file.name, 0, {}};
  const auto next = [&] {
    std::string line;
    words.words.clear();
    while (words.words.empty() && std::getline(lines, line)) {
      ++words.line;
      if (line.size() > 4096) words.fail(0, "a line of more than 4096 bytes");
      std::istringstream cells{line};
      for (std::string word; cells >> word;) words.words.push_back(word);
    }
    return !words.words.empty();
  };
  if (!next()) words.fail(0, "the file is empty");
  workload.policy = words.text(0);
  for (std::size_t i = 1; i < words.words.size(); ++i) {
    std::string name = words.words[i];
    if (name.ends_with(':')) name.pop_back();
    if (name == "checkpoints" || name == "checkpoint_initiates") {
      const std::uint64_t count = words.number(i + 1, kMostRows);
      if (count > 0) workload.unknown.push_back(name + " (recomputed layers)");
      for (std::uint64_t k = 0; k < count; ++k)
        static_cast<void>(words.number(i + 2 + k, kMostRows));
      i += 1 + count;
    } else if (workload.facts.contains(name)) {
      workload.facts[name] = words.number(i + 1, kMostGpus);
      ++i;
    } else if (name == "pp_comm") {
      const std::uint64_t bytes = words.number(i + 1, kMostPassBytes);
      if (bytes > 0) {
        workload.unknown.push_back(fmt::format("pp_comm ({} bytes between stages)", bytes));
      }
      ++i;
    } else {
      words.fail(i, fmt::format("'{}' is not known", name.substr(0, 40)));
    }
  }
  if (!next()) words.fail(0, "the number of rows is missing");
  const std::uint64_t rows = words.number(0, kMostRows);
  for (std::uint64_t i = 0; i < rows; ++i) {
    if (!next()) throw UsageError{fmt::format("{}: {} of {} rows", file.name, i, rows)};
    Row row{words.text(0), {}};
    for (std::size_t k = 0; k < 3; ++k) row.passes[k] = pass_of(words, 2 + 3 * k, k == 2);
    if (words.words.size() > 12) words.fail(12, "a row has 12 words");
    workload.rows.push_back(row);
  }
  if (next()) words.fail(0, fmt::format("more than the {} rows of line 2", rows));
  return workload;
}

struct Group {
  std::uint64_t size = 1;
  std::string color;
};

/// Ranks as Megatron has them: tensor first, then data, of one pipeline stage.
std::map<std::string, Group> groups_of(std::uint64_t tensor, std::uint64_t data,
                                       std::uint64_t expert) {
  const std::string place = fmt::format("(process / {})", tensor);
  const std::string lane = fmt::format("process % {}", tensor);
  return {
      {"TP", {tensor, fmt::format("process / {}", tensor)}},
      {"DP", {data, lane}},
      {"EP", {expert, fmt::format("{} / {} * {} + {}", place, expert, tensor, lane)}},
      {"DP_EP", {data / expert, fmt::format("{} % {} * {} + {}", place, expert, tensor, lane)}}};
}

class Writer {
 public:
  Writer(const std::map<std::string, Group>& groups) : groups_{groups} {}

  void pass(const Pass& pass, bool waits) {
    if (pass.ns > 1)
      line(fmt::format("spin: {{stream: compute, duration: {}ns, blocks: 100, of: 132}}", pass.ns));
    if (pass.collective.empty() || pass.bytes == 0) return;
    const Group& group = groups_.at(pass.group);
    if (group.size <= 1) {
      ++alone_;
      return;
    }
    const bool parts = pass.collective != "nccl_all_reduce";
    const std::uint64_t each = parts ? (pass.bytes + group.size - 1) / group.size : pass.bytes;
    const std::uint64_t size = (each + 15) / 16 * 16;
    largest_ = std::max(largest_, parts ? size * group.size : size);
    used_[pass.group] = true;
    const std::string stream = waits ? "compute" : "gradients";
    if (!waits) {
      line("event_record: {stream: compute, event: ready}");
      line("stream_wait_event: {stream: gradients, event: ready}");
    }
    line(
        fmt::format("{}: {{comm: {}, stream: {}, send_buffer: a, recv_buffer: b, size: {}B, type: "
                    "bfloat16}}",
                    pass.collective, pass.group, stream, size));
  }

  const std::string& text() const { return text_; }
  std::uint64_t largest() const { return largest_; }
  std::uint64_t alone() const { return alone_; }
  const std::map<std::string, bool>& used() const { return used_; }

 private:
  void line(const std::string& op) { text_ += "          - " + op + "\n"; }

  const std::map<std::string, Group>& groups_;
  std::string text_;
  std::uint64_t largest_ = 16;
  std::uint64_t alone_ = 0;
  std::map<std::string, bool> used_;
};

}  // namespace

bool is_simai(std::string_view head) {
  return head.starts_with("HYBRID_TRANSFORMER") ||
         head.starts_with("HYBRID_TRANSFORMER_FWD_IN_BCKWD");
}

Scenario read_simai(const RankFile& file, const Options& options) {
  const Workload workload = workload_of(file);
  const std::uint64_t tensor = workload.facts.at("model_parallel_NPU_group");
  const std::uint64_t stages = workload.facts.at("pp"), expert = workload.facts.at("ep");
  if (tensor == 0 || stages == 0 || expert == 0) {
    throw UsageError{fmt::format("{}:1: a degree of 0", file.name)};
  }
  const std::uint64_t all = workload.facts.at("all_gpus");
  const std::uint64_t processes = options.processes > 0 ? options.processes : all / stages;
  if (processes == 0 || processes % (tensor * expert) != 0) {
    throw UsageError{fmt::format(
        "{}:1: {} GPUs of a pipeline stage are no multiple of {} x {} (tensor x expert)\n  hint: "
        "--processes N, all_gpus: in the first line",
        file.name, processes, tensor, expert)};
  }
  const auto groups = groups_of(tensor, processes / tensor, expert);
  Writer writer{groups};
  for (const Row& row : workload.rows) writer.pass(row.passes[0], true);
  for (auto row = workload.rows.rbegin(); row != workload.rows.rend(); ++row) {
    writer.pass(row->passes[1], true);
    writer.pass(row->passes[2], false);
  }
  Scenario scenario;
  std::string communicators;
  for (const auto& [name, is_used] : writer.used()) {
    communicators +=
        fmt::format("  {}: {{split: {{color: {}}}, init: rank}}\n", name, groups.at(name).color);
  }
  scenario.text = fmt::format(
      "# A step of a SimAI workload, {} rows: foretrace import.\nschema_version: 1\nname: "
      "{}\nprocesses: {}\nstreams: {{compute: {{flags: non_blocking}}, gradients: {{flags: "
      "non_blocking}}}}\nevents: {{ready: {{timing: false}}}}\nbuffers:\n  a: {{memory: device, "
      "size: {}B}}\n  b: {{memory: device, size: {}B}}\n{}{}threads:\n  main:\n    - host_barrier: "
      "{{}}\n    - region:\n        name: step\n        ops:\n{}          - stream_synchronize: "
      "{{stream: compute}}\n          - stream_synchronize: {{stream: gradients}}\n",
      workload.rows.size(), options.name, processes, writer.largest(), writer.largest(),
      communicators.empty() ? "" : "communicators:\n", communicators, writer.text());
  const auto note = [&](std::string text) { scenario.notes.push_back(std::move(text)); };
  note("assumed: times are ns, sizes of gathers and scatters are those of all ranks together");
  note(
      "assumed: forward and input-gradient collectives hold the layer up, weights' gradients do "
      "not");
  note(
      "assumed: kernels take 100 of an H100's 132 SMs; updates (the last word of a row) are left "
      "out");
  if (stages > 1) {
    note(
        fmt::format("left out: {} pipeline stages, their bubbles and micro-batches (ga: {}, vpp: "
                    "{}): rows are run once, by the {} GPUs of one stage",
                    stages, workload.facts.at("ga"), workload.facts.at("vpp"), processes));
  } else if (workload.facts.at("ga") > 1) {
    note(fmt::format("left out: ga: {}: rows are run once", workload.facts.at("ga")));
  }
  for (const std::string& fact : workload.unknown) note("left out: " + fact);
  if (writer.alone() > 0) note(fmt::format("left out: {} collectives of one GPU", writer.alone()));
  return scenario;
}

}  // namespace foretrace::interchange
