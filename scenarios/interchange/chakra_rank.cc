#include "scenarios/interchange/chakra_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "scenarios/base/text/errors.h"
#include "scenarios/interchange/chakra_order.h"
#include "scenarios/read/op_fields.h"

namespace foretrace::interchange {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;
constexpr std::uint64_t kMostUs = 1'000'000'000;
constexpr std::size_t kMostStreams = 16;
constexpr std::array<const char*, 10> kCollectives{
    "nccl_all_reduce",     "nccl_reduce",    "nccl_all_gather", "nccl_gather",
    "nccl_scatter",        "nccl_broadcast", "nccl_all_to_all", "nccl_reduce_scatter",
    "nccl_reduce_scatter", "nccl_all_reduce"};
constexpr std::int64_t kBarrier = 9;
constexpr const char* kIndent = "          ";        ///< of an operation in the region
constexpr const char* kDeeper = "                ";  ///< of one in a group

/// What has to be over: of each stream the last operation, by its number there; 0: none.
using Clock = std::array<std::uint32_t, kMostStreams>;

struct Wait {
  std::uint32_t stream{}, position{};
  friend auto operator<=>(const Wait&, const Wait&) = default;
};

/// What the host thread does next: waits, then one call.
struct Step {
  std::optional<std::uint32_t> stream;  ///< none: the host's own work
  std::vector<Wait> waits;
  std::string op;  ///< empty: only waits
};

class RankWriter {
 public:
  RankWriter(const std::string& file, const ChakraTrace& trace, const Options& options,
             const std::map<std::string, ChakraGroup>& groups, ChakraFacts& facts)
      : file_{file}, trace_{trace}, options_{options}, groups_{groups}, facts_{facts} {
    const auto in_line = trace.numbers.find(kHostInLine);
    host_in_line_ = in_line != trace.numbers.end() && in_line->second != 0;
    for (std::uint32_t i = 0; i < facts.processes; ++i) world_.ranks.push_back(i);
    world_.comm = "world";
    name_streams();
  }

  std::string write() {
    const ChakraOrder order = order_of(file_, trace_);
    if (!order.with_control) ++facts_.counts["circles"];
    facts_.counts["missing"] += order.missing;
    for (std::size_t i = 0; i < order.nodes.size();) {
      std::size_t end = i + 1;
      const std::int64_t launch = trace_.nodes[order.nodes[i]].number("launch", -1);
      while (launch >= 0 && end < order.nodes.size() && is_nccl(trace_.nodes[order.nodes[i]]) &&
             is_nccl(trace_.nodes[order.nodes[end]]) &&
             trace_.nodes[order.nodes[end]].number("launch", -1) == launch) {
        ++end;
      }
      take({order.nodes.data() + i, end - i}, order.with_control);
      i = end;
    }
    return text();
  }

 private:
  // ---- streams ---------------------------------------------------------------------------------

  static bool is_cpu(const ChakraNode& node) { return node.number("is_cpu_op", 0) != 0; }

  static bool is_nccl(const ChakraNode& node) {
    return !is_cpu(node) && node.type >= NodeType::CommSend;
  }

  /// Those that the trace names, or one for each kind of work.
  void name_streams() {
    std::map<std::int64_t, std::uint32_t> streams;
    for (const ChakraNode& node : trace_.nodes) {
      if (is_cpu(node) || node.type <= NodeType::Metadata) continue;
      streams.try_emplace(node.number("stream", -1), 0);
    }
    by_number_ = !streams.empty() && streams.begin()->first >= 0 && streams.size() <= kMostStreams;
    if (!by_number_) {
      names_ = {"compute", "comm", "copy"};
      return;
    }
    for (auto& [number, place] : streams) {
      place = static_cast<std::uint32_t>(names_.size());
      names_.push_back(fmt::format("stream_{}", number));
    }
    by_stream_ = std::move(streams);
  }

  std::uint32_t stream_of(const ChakraNode& node) const {
    if (by_number_) return by_stream_.at(node.number("stream", -1));
    if (node.type == NodeType::Comp) return 0;
    return node.type == NodeType::MemLoad || node.type == NodeType::MemStore ? 2 : 1;
  }

  // ---- steps -----------------------------------------------------------------------------------

  /// Nodes of one launch; mostly one.
  void take(std::span<const std::size_t> nodes, bool with_control) {
    Clock after{};
    for (const std::size_t i : nodes) {
      for (const std::uint64_t dep : deps_of(trace_.nodes[i], with_control)) {
        const auto found = done_.find(dep);
        if (found == done_.end()) continue;
        for (std::size_t s = 0; s < kMostStreams; ++s) {
          after[s] = std::max(after[s], found->second[s]);
        }
      }
    }
    const ChakraNode& first = trace_.nodes[nodes.front()];
    if (is_cpu(first)) {
      host(first, after);
    } else {
      std::string ops;
      std::optional<std::uint32_t> stream;
      for (const std::size_t i : nodes) {
        const std::string op = operation(trace_.nodes[i]);
        if (op.empty()) continue;
        ops += fmt::format("{}- {}\n", nodes.size() > 1 ? kDeeper : kIndent, op);
        if (!stream) stream = stream_of(trace_.nodes[i]);
      }
      if (nodes.size() > 1 && stream) {
        ops = fmt::format("{}- nccl_group:\n{}    ops:\n{}", kIndent, kIndent, ops);
      }
      if (stream) issue(*stream, after, std::move(ops));
    }
    for (const std::size_t i : nodes) done_[trace_.nodes[i].id] = after;
  }

  void issue(std::uint32_t stream, Clock& after, std::string op) {
    Step step{
        .stream = stream, .waits = waits_of(seen_[stream], after, stream), .op = std::move(op)};
    steps_.push_back(std::move(step));
    facts_.streams.insert(names_[stream]);
    after[stream] = ++issued_[stream];
    seen_[stream][stream] = after[stream];
  }

  void host(const ChakraNode& node, const Clock& after) {
    if (!host_in_line_) {
      ++facts_.counts["cpu"];
      return;
    }
    ++facts_.counts["host"];
    const double ns = time_of(node);
    Step step{.stream = {}, .waits = waits_of(host_seen_, after, kMostStreams), .op = {}};
    if (ns >= 1) step.op = fmt::format("{}- host_compute: {{duration: {:.0f}ns}}\n", kIndent, ns);
    if (!step.waits.empty() || !step.op.empty()) steps_.push_back(std::move(step));
  }

  static std::vector<Wait> waits_of(Clock& seen, const Clock& after, std::size_t own) {
    std::vector<Wait> waits;
    for (std::uint32_t other = 0; other < kMostStreams; ++other) {
      if (other == own || after[other] <= seen[other]) continue;
      waits.push_back({other, after[other]});
      seen[other] = after[other];
    }
    return waits;
  }

  // ---- text ------------------------------------------------------------------------------------

  /// An event is recorded right behind what is waited for, and free again when its last wait is
  /// issued.
  std::string text() {
    std::map<Wait, std::size_t> last_use;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      for (const Wait& wait : steps_[i].waits) last_use[wait] = i;
    }
    std::string text;
    std::vector<std::size_t> free;
    std::size_t events = 0;
    std::map<Wait, std::size_t> event_of;
    Clock issued{};
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const Step& step = steps_[i];
      for (const Wait& wait : step.waits) {
        const std::size_t event = event_of.at(wait);
        if (step.stream) {
          text += fmt::format("{}- stream_wait_event: {{stream: {}, event: done({})}}\n", kIndent,
                              names_[*step.stream], event);
        } else {
          text += fmt::format("{}- event_synchronize: {{event: done({})}}\n", kIndent, event);
        }
        if (last_use.at(wait) == i) free.push_back(event);
      }
      text += step.op;
      if (!step.stream) continue;
      const Wait here{*step.stream, ++issued[*step.stream]};
      if (!last_use.contains(here)) continue;
      if (free.empty()) free.push_back(events++);
      event_of[here] = free.back();
      free.pop_back();
      text += fmt::format("{}- event_record: {{stream: {}, event: done({})}}\n", kIndent,
                          names_[*step.stream], event_of[here]);
    }
    facts_.events = std::max(facts_.events, events);
    text += fmt::format("{}- device_synchronize: {{}}\n", kIndent);
    return text;
  }

  // ---- operations ------------------------------------------------------------------------------

  std::uint64_t bytes_of(const ChakraNode& node, const char* name) const {
    const std::int64_t bytes = node.number(name, 0);
    if (bytes < 0 || static_cast<std::uint64_t>(bytes) > kMostBytes) {
      fail(file_, node, fmt::format("{} is {}", name, bytes));
    }
    return static_cast<std::uint64_t>(bytes);
  }

  static std::uint64_t whole(std::uint64_t bytes, std::uint64_t unit = 16) {
    return std::max(unit, (bytes + unit - 1) / unit * unit);
  }

  std::string operation(const ChakraNode& node) {
    switch (node.type) {
      case NodeType::Comp:
        return kernel(node);
      case NodeType::CommColl:
        return collective(node);
      case NodeType::CommSend:
      case NodeType::CommRecv:
        return transfer(node);
      case NodeType::MemLoad:
      case NodeType::MemStore: {
        const std::uint64_t bytes = whole(bytes_of(node, "tensor_size"));
        facts_.largest = std::max(facts_.largest, bytes);
        ++facts_.counts["copies"];
        const bool load = node.type == NodeType::MemLoad;
        return fmt::format("memcpy_async: {{stream: {}, src: {}, dst: {}, size: {}B}}",
                           names_[stream_of(node)], load ? "host" : "a", load ? "b" : "host",
                           bytes);
      }
      case NodeType::Metadata:
      case NodeType::Invalid:
        ++facts_.counts["without work"];
        return {};
    }
    return {};
  }

  /// In ns; 0: the trace does not say it.
  double time_of(const ChakraNode& node) const {
    if (node.duration_us > kMostUs) fail(file_, node, fmt::format("takes {} us", node.duration_us));
    const std::int64_t exact = node.number("duration_ns", -1);
    const double ns = static_cast<double>(node.duration_us) * 1e3;
    const bool is_alike = exact >= 0 && std::abs(static_cast<double>(exact) - ns) <= 1e3;
    return is_alike ? static_cast<double>(exact) : ns;
  }

  std::string kernel(const ChakraNode& node) {
    double ns = time_of(node);
    if (node.duration_us == 0) {
      const auto ops = static_cast<double>(bytes_of(node, "num_ops"));
      const auto bytes = static_cast<double>(bytes_of(node, "tensor_size"));
      if (options_.flops > 0) ns = std::max(ns, ops / options_.flops * 1e9);
      if (options_.bytes_per_second > 0) ns = std::max(ns, bytes / options_.bytes_per_second * 1e9);
      ++facts_.counts[ns > 0 ? "priced" : "without time"];
    }
    if (ns < 1) return {};
    ++facts_.counts["kernels"];
    return fmt::format("spin: {{stream: {}, duration: {:.0f}ns, blocks: 100, of: 132}}",
                       names_[stream_of(node)], ns);
  }

  const ChakraGroup& group_of(const ChakraNode& node) {
    const auto name = node.texts.find("pg_name");
    if (name == node.texts.end()) return world_;
    const auto known = groups_.find(name->second);
    if (known != groups_.end()) return known->second;
    facts_.unknown_groups.insert(name->second);
    return world_;
  }

  /// The word of its type, and the bytes of an element: 16 where it is not said.
  static std::pair<std::string, std::uint64_t> type_of(const ChakraNode& node) {
    const auto said = node.texts.find("data_type");
    if (said != node.texts.end()) {
      for (int i = 0; i <= static_cast<int>(DataType::Float8E5M2); ++i) {
        const auto type = static_cast<DataType>(i);
        if (type_word(type) == said->second) return {said->second, size_of(type).count};
      }
    }
    return {"bfloat16", 16};
  }

  std::string collective(const ChakraNode& node) {
    const std::int64_t type = node.number("comm_type", -1);
    if (type < 0 || type >= static_cast<std::int64_t>(kCollectives.size())) {
      fail(file_, node, fmt::format("comm_type {} is no collective of Chakra", type));
    }
    const ChakraGroup& group = group_of(node);
    const std::uint64_t ranks = group.ranks.size();
    if (ranks < 2) {
      ++facts_.counts["alone"];
      return {};
    }
    const std::string op = kCollectives[static_cast<std::size_t>(type)];
    const auto [word, unit] = type_of(node);
    std::uint64_t bytes = type == kBarrier ? 16 : bytes_of(node, "comm_size");
    const bool divides =
        op == "nccl_reduce_scatter" || op == "nccl_all_to_all" || op == "nccl_scatter";
    bytes = whole(divides ? (bytes + ranks - 1) / ranks : bytes, unit);
    const bool parts = divides || op == "nccl_all_gather" || op == "nccl_gather";
    facts_.largest = std::max(facts_.largest, parts ? bytes * ranks : bytes);
    ++facts_.counts["collectives"];
    facts_.comms.insert(group.comm);
    const bool rooted = op == "nccl_reduce" || op == "nccl_gather" || op == "nccl_scatter" ||
                        op == "nccl_broadcast";
    const std::int64_t root = node.number("root_rank", 0);
    const bool is_rank = root > 0 && static_cast<std::uint64_t>(root) < ranks;
    return fmt::format(
        "{}: {{comm: {}, stream: {}, send_buffer: a, recv_buffer: b, size: {}B, type: {}{}}}", op,
        group.comm, names_[stream_of(node)], bytes, word,
        rooted ? fmt::format(", root: {}", is_rank ? root : 0) : "");
  }

  std::string transfer(const ChakraNode& node) {
    const bool sends = node.type == NodeType::CommSend;
    const std::int64_t peer = node.number(sends ? "comm_dst" : "comm_src", -1);
    if (peer < 0 || static_cast<std::uint64_t>(peer) >= facts_.processes) {
      fail(file_, node,
           fmt::format("{} {} is none of {} ranks", sends ? "comm_dst" : "comm_src", peer,
                       facts_.processes));
    }
    const ChakraGroup* group = &group_of(node);
    auto place = std::ranges::find(group->ranks, static_cast<std::uint64_t>(peer));
    if (place == group->ranks.end()) {
      group = &world_;
      place = world_.ranks.begin() + peer;
    }
    const auto [word, unit] = type_of(node);
    const std::uint64_t bytes = whole(bytes_of(node, "comm_size"), unit);
    facts_.largest = std::max(facts_.largest, bytes);
    ++facts_.counts["transfers"];
    facts_.comms.insert(group->comm);
    return fmt::format(
        "nccl_{}: {{comm: {}, stream: {}, buffer: {}, size: {}B, type: {}, peer: {}}}",
        sends ? "send" : "recv", group->comm, names_[stream_of(node)], sends ? "a" : "b", bytes,
        word, place - group->ranks.begin());
  }

  const std::string& file_;
  const ChakraTrace& trace_;
  const Options& options_;
  const std::map<std::string, ChakraGroup>& groups_;
  ChakraFacts& facts_;
  ChakraGroup world_;
  bool host_in_line_ = false;
  bool by_number_ = false;
  std::map<std::int64_t, std::uint32_t> by_stream_;
  std::vector<std::string> names_;  ///< of streams
  std::vector<Step> steps_;
  std::unordered_map<std::uint64_t, Clock> done_;  ///< by node: what is over when it is
  Clock issued_{};
  std::array<Clock, kMostStreams>
      seen_{};  ///< of each stream: what it has waited for of the others
  Clock host_seen_{};
};

}  // namespace

std::string rank_ops(const std::string& file, const ChakraTrace& trace, const Options& options,
                     const std::map<std::string, ChakraGroup>& groups, ChakraFacts& facts) {
  return RankWriter{file, trace, options, groups, facts}.write();
}

}  // namespace foretrace::interchange
