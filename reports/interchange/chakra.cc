// Chakra's nodes as operations: kernels, collectives and copies on a stream each, in an order that
// their dependencies allow; events between the streams.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <queue>
#include <set>
#include <unordered_map>

#include "reports/interchange/chakra_nodes.h"
#include "reports/interchange/interchange.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::interchange {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;
constexpr std::uint64_t kMostUs = 1'000'000'000;
constexpr std::array<const char*, 10> kCollectives{
    "nccl_all_reduce",     "nccl_reduce",    "nccl_all_gather", "nccl_gather",
    "nccl_scatter",        "nccl_broadcast", "nccl_all_to_all", "nccl_reduce_scatter",
    "nccl_reduce_scatter", "nccl_all_reduce"};
constexpr std::int64_t kBarrier = 9;

struct Facts {
  std::uint64_t largest = 16;  ///< bytes of a buffer
  std::map<std::string, std::size_t> counts;
  std::set<std::string> groups;
};

[[noreturn]] void fail(const std::string& file, const ChakraNode& node, std::string_view what) {
  throw UsageError{fmt::format("{}: byte {}: node {}: {}", file, node.byte, node.id, what)};
}

struct Order {
  std::vector<std::size_t> nodes;  ///< fewer than there are where dependencies form a circle
  std::size_t missing = 0;         ///< dependencies on nodes that are not there
};

std::vector<std::uint64_t> deps_of(const ChakraNode& node, bool with_control) {
  std::vector<std::uint64_t> deps = node.data;
  if (with_control) deps.insert(deps.end(), node.control.begin(), node.control.end());
  return deps;
}

/// The least id of those that are ready comes first.
Order order_of(const std::string& file, const ChakraTrace& trace, bool with_control) {
  Order order;
  std::unordered_map<std::uint64_t, std::size_t> place;
  for (std::size_t i = 0; i < trace.nodes.size(); ++i) {
    if (!place.try_emplace(trace.nodes[i].id, i).second) {
      fail(file, trace.nodes[i], "its id is that of another node, too");
    }
  }
  std::vector<std::vector<std::size_t>> behind(trace.nodes.size());
  std::vector<std::size_t> waits(trace.nodes.size());
  using Ready = std::pair<std::uint64_t, std::size_t>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (std::size_t i = 0; i < trace.nodes.size(); ++i) {
    for (const std::uint64_t dep : deps_of(trace.nodes[i], with_control)) {
      const auto found = place.find(dep);
      if (found == place.end()) {
        ++order.missing;
        continue;
      }
      behind[found->second].push_back(i);
      ++waits[i];
    }
    if (waits[i] == 0) ready.emplace(trace.nodes[i].id, i);
  }
  while (!ready.empty()) {
    const std::size_t i = ready.top().second;
    ready.pop();
    order.nodes.push_back(i);
    for (const std::size_t next : behind[i]) {
      if (--waits[next] == 0) ready.emplace(trace.nodes[next].id, next);
    }
  }
  const auto stuck = std::ranges::find_if(waits, [](std::size_t left) { return left > 0; });
  if (stuck != waits.end() && !with_control) {
    fail(file, trace.nodes[static_cast<std::size_t>(stuck - waits.begin())],
         "waits for itself, through its data dependencies");
  }
  return order;
}

enum Stream : std::uint8_t { kCompute, kComm, kCopy, kStreams };
constexpr std::array<const char*, kStreams> kStreamNames{"compute", "comm", "copy"};

/// What has to be over: the last operation of each stream, by its number there; 0: none.
using Clock = std::array<std::size_t, kStreams>;

class RankWriter {
 public:
  RankWriter(const std::string& file, const Options& options, std::uint64_t processes, Facts& facts)
      : file_{file}, options_{options}, processes_{processes}, facts_{facts} {}

  std::string write(const ChakraTrace& trace) {
    bool with_control = true;
    Order order = order_of(file_, trace, with_control);
    if (order.nodes.size() < trace.nodes.size()) {  // Chakra's own feeder reads data alone
      with_control = false;
      ++facts_.counts["circles"];
      order = order_of(file_, trace, with_control);
    }
    facts_.counts["missing"] += order.missing;
    std::unordered_map<std::uint64_t, Clock> done;
    for (const std::size_t i : order.nodes) {
      const ChakraNode& node = trace.nodes[i];
      Clock after{};
      for (const std::uint64_t dep : deps_of(node, with_control)) {
        const Clock& one = done[dep];
        for (std::size_t s = 0; s < kStreams; ++s) after[s] = std::max(after[s], one[s]);
      }
      Stream stream = kCompute;
      const std::string op = operation(node, stream);
      if (!op.empty()) {
        wait_for(after, stream);
        line(op);
        seen_[stream][stream] = after[stream] = ++issued_[stream];
      }
      done[node.id] = after;
    }
    return text_;
  }

 private:
  void line(const std::string& op) { text_ += "          - " + op + "\n"; }

  /// An event behind all that the other stream has by now is behind what is needed, too.
  void wait_for(const Clock& after, Stream stream) {
    for (std::uint8_t other = 0; other < kStreams; ++other) {
      if (other == stream || after[other] <= seen_[stream][other]) continue;
      line(fmt::format("event_record: {{stream: {}, event: {}_done}}", kStreamNames[other],
                       kStreamNames[other]));
      line(fmt::format("stream_wait_event: {{stream: {}, event: {}_done}}", kStreamNames[stream],
                       kStreamNames[other]));
      seen_[stream][other] = issued_[other];
      if (issued_[other] > after[other]) ++facts_.counts["late"];
    }
  }

  std::uint64_t bytes_of(const ChakraNode& node, const char* name) const {
    const std::int64_t bytes = node.number(name, 0);
    if (bytes < 0 || static_cast<std::uint64_t>(bytes) > kMostBytes) {
      fail(file_, node, fmt::format("{} is {}", name, bytes));
    }
    return static_cast<std::uint64_t>(bytes);
  }

  static std::uint64_t whole(std::uint64_t bytes) {
    return std::max<std::uint64_t>(16, (bytes + 15) / 16 * 16);
  }

  std::string operation(const ChakraNode& node, Stream& stream) {
    if (node.number("is_cpu_op", 0) != 0) {
      ++facts_.counts["cpu"];
      return {};
    }
    switch (node.type) {
      case NodeType::Comp:
        return kernel(node);
      case NodeType::CommColl:
        stream = kComm;
        return collective(node);
      case NodeType::CommSend:
      case NodeType::CommRecv:
        stream = kComm;
        return transfer(node);
      case NodeType::MemLoad:
      case NodeType::MemStore: {
        stream = kCopy;
        const std::uint64_t bytes = whole(bytes_of(node, "tensor_size"));
        facts_.largest = std::max(facts_.largest, bytes);
        ++facts_.counts["copies"];
        const bool load = node.type == NodeType::MemLoad;
        return fmt::format("memcpy_async: {{stream: copy, src: {}, dst: {}, size: {}B}}",
                           load ? "host" : "a", load ? "b" : "host", bytes);
      }
      case NodeType::Metadata:
      case NodeType::Invalid:
        ++facts_.counts["without work"];
        return {};
    }
    return {};
  }

  std::string kernel(const ChakraNode& node) {
    if (node.duration_us > kMostUs) fail(file_, node, fmt::format("takes {} us", node.duration_us));
    double ns = static_cast<double>(node.duration_us) * 1e3;
    if (node.duration_us == 0) {
      const auto ops = static_cast<double>(bytes_of(node, "num_ops"));
      const auto bytes = static_cast<double>(bytes_of(node, "tensor_size"));
      if (options_.flops > 0) ns = std::max(ns, ops / options_.flops * 1e9);
      if (options_.bytes_per_second > 0) ns = std::max(ns, bytes / options_.bytes_per_second * 1e9);
      ++facts_.counts[ns > 0 ? "priced" : "without time"];
    }
    if (ns < 1) return {};
    ++facts_.counts["kernels"];
    return fmt::format("spin: {{stream: compute, duration: {:.0f}ns, blocks: 100, of: 132}}", ns);
  }

  std::string collective(const ChakraNode& node) {
    const std::int64_t type = node.number("comm_type", -1);
    if (type < 0 || type >= static_cast<std::int64_t>(kCollectives.size())) {
      fail(file_, node, fmt::format("comm_type {} is no collective of Chakra", type));
    }
    if (const auto group = node.texts.find("pg_name"); group != node.texts.end()) {
      facts_.groups.insert(group->second);
    }
    if (processes_ < 2) {
      ++facts_.counts["alone"];
      return {};
    }
    const std::string op = kCollectives[static_cast<std::size_t>(type)];
    std::uint64_t bytes = type == kBarrier ? 16 : bytes_of(node, "comm_size");
    const bool divides =
        op == "nccl_reduce_scatter" || op == "nccl_all_to_all" || op == "nccl_scatter";
    bytes = whole(divides ? (bytes + processes_ - 1) / processes_ : bytes);
    const bool parts = divides || op == "nccl_all_gather" || op == "nccl_gather";
    facts_.largest = std::max(facts_.largest, parts ? bytes * processes_ : bytes);
    ++facts_.counts["collectives"];
    const bool rooted = op == "nccl_reduce" || op == "nccl_gather" || op == "nccl_scatter" ||
                        op == "nccl_broadcast";
    return fmt::format(
        "{}: {{comm: world, stream: comm, send_buffer: a, recv_buffer: b, size: {}B, "
        "type: bfloat16{}}}",
        op, bytes, rooted ? ", root: 0" : "");
  }

  std::string transfer(const ChakraNode& node) {
    const bool sends = node.type == NodeType::CommSend;
    const std::int64_t peer = node.number(sends ? "comm_dst" : "comm_src", -1);
    if (peer < 0 || static_cast<std::uint64_t>(peer) >= processes_) {
      fail(file_, node,
           fmt::format("{} {} is none of {} ranks", sends ? "comm_dst" : "comm_src", peer,
                       processes_));
    }
    const std::uint64_t bytes = whole(bytes_of(node, "comm_size"));
    facts_.largest = std::max(facts_.largest, bytes);
    ++facts_.counts["transfers"];
    return fmt::format(
        "nccl_{}: {{comm: world, stream: comm, buffer: {}, size: {}B, type: bfloat16, "
        "peer: {}}}",
        sends ? "send" : "recv", sends ? "a" : "b", bytes, peer);
  }

  const std::string& file_;
  const Options& options_;
  std::uint64_t processes_;
  Facts& facts_;
  std::string text_;
  Clock issued_{};
  std::array<Clock, kStreams> seen_{};  ///< of each stream: what it has waited for of the others
};

std::vector<std::string> notes_of(const Facts& facts,
                                  const std::map<std::string, std::size_t>& unread) {
  std::vector<std::string> notes;
  const auto count = [&](const char* what) {
    const auto found = facts.counts.find(what);
    return found == facts.counts.end() ? std::size_t{0} : found->second;
  };
  notes.push_back(fmt::format("read: {} kernels, {} collectives, {} sends and receives, {} copies",
                              count("kernels"), count("collectives"), count("transfers"),
                              count("copies")));
  notes.emplace_back(
      "assumed: kernels one after the other on 100 of an H100's 132 SMs, collectives and "
      "transfers on a stream, loads and stores as copies from and to the host");
  notes.emplace_back("assumed: comm_size is what a rank puts in, in bytes");
  const auto note = [&](const char* what, const char* text) {
    if (count(what) > 0) notes.push_back(fmt::format("{} {}", count(what), text));
  };
  note("priced", "kernels without a duration: by num_ops, tensor_size and the machine's peaks");
  note("without time", "kernels without duration, num_ops and tensor_size: left out");
  note("missing", "dependencies on nodes that are not in the file: left out");
  note("circles", "traces whose control dependencies form a circle: data dependencies alone hold");
  note("cpu", "operators of the CPU: left out, what they order stays ordered");
  note("without work", "nodes of metadata: left out, what they order stays ordered");
  note("alone", "collectives of one process: left out; --processes N gives them others");
  note("late", "waits for what a stream had been given later, too");
  if (facts.groups.size() > 1) {
    notes.push_back(
        fmt::format("assumed: the {} process groups (pg_name) are all ranks", facts.groups.size()));
  }
  for (const auto& [name, times] : unread) {
    notes.push_back(fmt::format("not read: attribute '{}', {} times", name, times));
    if (notes.size() > 40) break;
  }
  return notes;
}

}  // namespace

bool is_chakra(std::string_view file) { return file.ends_with(".et"); }

Scenario read_chakra(const std::vector<RankFile>& ranks, const Options& options) {
  const std::uint64_t processes = options.processes > 0 ? options.processes : ranks.size();
  if (ranks.size() > 1 && processes != ranks.size()) {
    throw UsageError{
        fmt::format("--processes {}: there are traces of {} ranks\n  hint: one trace for "
                    "all processes, or no --processes",
                    processes, ranks.size())};
  }
  Facts facts;
  std::map<std::string, std::size_t> unread;
  std::string threads;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const ChakraTrace trace = read_chakra_nodes(ranks[rank].name, ranks[rank].bytes);
    for (const auto& [name, times] : trace.unread) unread[name] += times;
    const std::string ops = RankWriter{ranks[rank].name, options, processes, facts}.write(trace);
    threads += fmt::format("  rank{}:\n", rank);
    if (ranks.size() > 1) threads += fmt::format("    process: {}\n    ops:\n", rank);
    threads += fmt::format(
        "{}    - host_barrier: {{}}\n    - region:\n        name: trace\n        ops:\n{}          "
        "- "
        "stream_synchronize: {{stream: compute}}\n          - stream_synchronize: {{stream: "
        "comm}}\n          - stream_synchronize: {{stream: copy}}\n",
        "", ops);
  }
  Scenario scenario;
  scenario.text = fmt::format(
      "# A Chakra execution trace: foretrace import.\nschema_version: 1\nname: {}\nprocesses: "
      "{}\nstreams: {{compute: {{flags: non_blocking}}, comm: {{flags: non_blocking}}, copy: "
      "{{flags: "
      "non_blocking}}}}\nevents: {{compute_done: {{timing: false}}, comm_done: {{timing: false}}, "
      "copy_done: {{timing: false}}}}\nbuffers:\n  a: {{memory: device, size: {}B}}\n  b: "
      "{{memory: "
      "device, size: {}B}}\n  host: {{memory: pinned, size: {}B}}\n{}threads:\n{}",
      options.name, processes, facts.largest, facts.largest,
      facts.counts["copies"] > 0 ? facts.largest : 16,
      processes > 1 ? "communicators: {world: {members: all_devices, init: rank}}\n" : "", threads);
  scenario.notes = notes_of(facts, unread);
  return scenario;
}

}  // namespace foretrace::interchange
