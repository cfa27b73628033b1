#include "reports/export/chakra_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "reports/export/exported_name.h"
#include "reports/timeline/op_work.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/check/happens_before.h"
#include "scenarios/program/op_facts.h"

namespace foretrace::interchange {
namespace {

constexpr std::uint64_t kMostOperations = std::uint64_t{1} << 20;
constexpr const char* kVersion = "1.0.0";  ///< of the schema, as Chakra's own tools write it

struct Interval {
  std::int64_t begin_ns = std::numeric_limits<std::int64_t>::max(), end_ns = 0;
  bool is_known() const { return begin_ns <= end_ns; }
  void add(const Span& span) {
    begin_ns = std::min(begin_ns, span.begin_ns);
    end_ns = std::max(end_ns, span.end_ns);
  }
};

/// The spans of each execution: on a device, or the host's calls.
class Executions {
 public:
  explicit Executions(const Timeline& timeline) {
    for (const Span& span : timeline.spans) {
      const Lane& lane = timeline.lanes[span.lane];
      if (lane.kind == LaneKind::Request) continue;
      const std::uint32_t device = span.part == 0 ? kNoDevice : lane.device;
      found_[{span.op, span.instance, lane.process, device}].add(span);
      if (span.part != 0 && !timeline.details[span.detail].kernel.empty()) {
        kernels_.emplace(span.op, timeline.details[span.detail].kernel);
      }
    }
  }
  Interval of(const ExecutedOp& one, std::uint32_t process, std::uint32_t device) const {
    const auto found = found_.find({one.op->id.value, one.instance, process, device});
    return found == found_.end() ? Interval{} : found->second;
  }
  /// Measured: what ran.
  std::string kernel(const Op& op) const {
    const auto found = kernels_.find(op.id.value);
    return found == kernels_.end() ? std::string{} : found->second;
  }

 private:
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint32_t, std::uint32_t>, Interval> found_;
  std::unordered_map<std::uint32_t, std::string> kernels_;
};

std::int64_t comm_type(CollectiveKind kind) {
  switch (kind) {  // CollectiveCommType of the schema
    case CollectiveKind::AllReduce:
      return 0;
    case CollectiveKind::Reduce:
      return 1;
    case CollectiveKind::AllGather:
      return 2;
    case CollectiveKind::Gather:
      return 3;
    case CollectiveKind::Scatter:
      return 4;
    case CollectiveKind::Broadcast:
      return 5;
    case CollectiveKind::AllToAll:
      return 6;
    case CollectiveKind::ReduceScatter:
      return 7;
  }
  return 0;
}

/// What a rank puts in is a part for each rank.
bool puts_in_parts(CollectiveKind kind) {
  return kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllToAll ||
         kind == CollectiveKind::Scatter;
}

class Exporter {
 public:
  Exporter(const Program& program, const Timeline& timeline)
      : program_{program},
        executions_{timeline},
        index_{index_ops(program)},
        order_{happens_before(program, {.most_operations = kMostOperations})} {
    if (!order_.is_complete) {
      throw UsageError{fmt::format(
          "{}: more than {} operations are executed\n  hint: fewer steps or micro-batches",
          program.file, kMostOperations)};
    }
    result_.ranks.resize(std::size_t{program.processes} * program.devices);
    for (const Span& span : timeline.spans) begin_ns_ = std::min(begin_ns_, span.begin_ns);
    name_groups();
  }

  ChakraExport run() && {
    lanes_of_process_.resize(program_.processes);
    for (std::uint32_t lane = 0; lane < order_.lanes.size(); ++lane) {
      lanes_of_process_[order_.lanes[lane].process].push_back(lane);
    }
    done_.resize(order_.lanes.size());
    for (std::uint32_t node = 0; node < order_.nodes.size(); ++node) {
      if (order_.is_device(node)) {
        add_device(node);
      } else {
        add_host(node);
      }
    }
    for (ChakraTrace& trace : result_.ranks) finish(trace);
    note("no time", "kernels and copies without a time in the timeline: 0");
    note("meetings", "meetings of host threads (barriers, signals): left out");
    note("memory", "calls that allocate, free or register memory: left out, with their time");
    note("graphs", "launches of CUDA graphs: each is one kernel");
    note("between devices", "copies between a process's GPUs: kernels of their time");
    return std::move(result_);
  }

 private:
  void note(const char* what, const char* words) {
    if (const auto found = counts_.find(what); found != counts_.end()) {
      result_.notes.push_back(fmt::format("{} {}", found->second, words));
    }
  }

  std::uint32_t rank_of(const RankPlace& place) const {
    return place.process * program_.devices + place.device;
  }

  /// Simulators know all ranks by no name, and others by a number.
  void name_groups() {
    std::map<std::vector<std::uint32_t>, std::string> names;
    for (const Communicator& one : program_.communicators) {
      std::vector<std::uint32_t> ranks;
      for (const RankPlace& place : one.members) ranks.push_back(rank_of(place));
      bool is_all = ranks.size() == result_.ranks.size();
      for (std::uint32_t i = 0; i < ranks.size(); ++i) is_all = is_all && ranks[i] == i;
      std::string name;
      if (!is_all) {
        name = names.try_emplace(ranks, fmt::format("{}", names.size() + 1)).first->second;
        result_.groups[name] = ranks;
      }
      ranks_of_.push_back(std::move(ranks));
      group_names_.push_back(name);
    }
  }

  /// The nodes of its rank that have ended by what is `known` when another one begins: of each lane
  /// the last, but for those that another one is behind.
  std::vector<std::uint32_t> waits_for(std::uint32_t node, std::uint32_t known,
                                       std::uint32_t device) const {
    std::vector<std::uint32_t> last;
    for (const std::uint32_t lane : lanes_of_process_[order_.nodes[node].process]) {
      const OrderLane& of = order_.lanes[lane];
      if (of.stream && program_.streams[*of.stream].device != device) continue;
      const auto behind =
          std::ranges::upper_bound(done_[lane], order_.before[known][lane], {},
                                   [&](std::uint32_t one) { return order_.nodes[one].position; });
      if (behind == done_[lane].begin()) continue;
      const std::uint32_t one = *std::prev(behind);
      if (one != node) last.push_back(one);
    }
    std::vector<std::uint32_t> needed;
    for (const std::uint32_t one : last) {
      const bool is_implied = std::ranges::any_of(
          last, [&](std::uint32_t other) { return other != one && order_.is_ordered(one, other); });
      if (!is_implied) needed.push_back(one);
    }
    return needed;
  }

  /// Several nodes of one launch: all of them are waited for, none waits for another.
  ChakraNode& add_node(std::uint32_t node, std::uint32_t known, std::uint32_t rank,
                       const std::string& name, NodeType type) {
    ChakraTrace& trace = result_.ranks[rank];
    ChakraNode& added = trace.nodes.emplace_back();
    added.id = trace.nodes.size() - 1;
    added.name = name;
    added.type = type;
    for (const std::uint32_t one : waits_for(node, known, rank % program_.devices)) {
      const auto ids = ids_.find({one, rank});
      if (ids == ids_.end()) continue;
      added.data.insert(added.data.end(), ids->second.begin(), ids->second.end());
    }
    std::ranges::sort(added.data);
    return added;
  }

  void set_time(ChakraNode& node, const Interval& interval) {
    if (!interval.is_known()) {
      ++counts_["no time"];
      return;
    }
    const std::int64_t ns = interval.end_ns - interval.begin_ns;
    // Whole microseconds, at least one: 0 would mean that the time is not known.
    node.duration_us =
        static_cast<std::uint64_t>(ns == 0 ? 0 : std::max<std::int64_t>(1, (ns + 500) / 1000));
    node.begin_us = static_cast<std::uint64_t>(interval.begin_ns - begin_ns_) / 1000;
    node.numbers["duration_ns"] = ns;
  }

  std::string name_of(const Op& op) const {
    if (!op.label.empty()) return exported_name(op.label);
    const std::string kernel = executions_.kernel(op);
    return kernel.empty() ? kind_name(op.kind) : shortened(kernel, kLongestKernel);
  }

  // ---- host ------------------------------------------------------------------------------------

  /// Work of the host, and its waits for devices: one has ended when the next call begins.
  void add_host(std::uint32_t node) {
    const OrderNode& call = order_.nodes[node];
    const OpFacts facts = op_facts(call.call.op->kind);
    if (facts.acts == HostActs::Meets) ++counts_["meetings"];
    if (facts.memory != nullptr) ++counts_["memory"];
    const bool works = facts.acts == HostActs::Itself;
    const bool waits = facts.waits == HostWaits::ForStream || facts.waits == HostWaits::ForDevice ||
                       facts.waits == HostWaits::ForEvent;
    const auto& lane = order_.lanes[call.lane].nodes;
    if (!works && (!waits || call.position >= lane.size())) return;
    const std::uint32_t known = works ? node : lane[call.position];  // positions are from 1 on
    for (std::uint32_t device = 0; device < program_.devices; ++device) {
      const std::uint32_t rank = rank_of({call.process, device});
      ChakraNode& added = add_node(node, known, rank, name_of(*call.call.op), NodeType::Comp);
      added.numbers["is_cpu_op"] = 1;
      if (works) set_time(added, executions_.of(call.call, call.process, kNoDevice));
      ids_[{node, rank}].push_back(added.id);
    }
    done_[call.lane].push_back(node);
  }

  // ---- device ----------------------------------------------------------------------------------

  void add_device(std::uint32_t node) {
    const OrderNode& entry = order_.nodes[node];
    const Stream& stream = program_.streams[*order_.lanes[entry.lane].stream];
    const std::uint32_t rank = rank_of({entry.process, stream.device});
    const bool is_graph = std::holds_alternative<GraphLaunch>(entry.call.op->kind);
    if (is_graph || entry.work_count == 0) {
      if (is_graph) ++counts_["graphs"];
      add_work(node, entry.call, rank, stream);
      return;
    }
    for (std::uint32_t i = 0; i < entry.work_count; ++i) {
      add_work(node, order_.work[entry.first_work + i], rank, stream);
    }
  }

  void add_work(std::uint32_t node, const ExecutedOp& executed, std::uint32_t rank,
                const Stream& stream) {
    const OrderNode& entry = order_.nodes[node];
    const OpFacts facts = op_facts(executed.op->kind);
    if (facts.work == StreamWork::None || facts.work == StreamWork::Record ||
        facts.work == StreamWork::Wait || facts.work == StreamWork::Marker) {
      return;
    }
    ChakraNode& added = add_node(node, node, rank, name_of(*executed.op), NodeType::Comp);
    added.numbers["is_cpu_op"] = 0;
    added.numbers["stream"] = static_cast<std::int64_t>(&stream - program_.streams.data());
    Interval interval = executions_.of(executed, entry.process, stream.device);
    if (!interval.is_known()) interval = executions_.of(entry.call, entry.process, stream.device);
    set_time(added, interval);
    const auto variables = variables_of(index_, executed, entry.process);
    if (entry.work_count > 1) added.numbers["launch"] = static_cast<std::int64_t>(node);
    std::visit([&](const auto& op) { say(added, op, variables); }, executed.op->kind);
    ids_[{node, rank}].push_back(added.id);
    auto& done = done_[entry.lane];
    if (done.empty() || done.back() != node) done.push_back(node);
  }

  template <class Any>
  void say(ChakraNode& node, const Any& op, Variables variables) {
    if constexpr (requires { op.size.eval(variables).count; }) {
      node.numbers["tensor_size"] = bytes(op.size.eval(variables));
    }
  }
  void say(ChakraNode& node, const Gemm& op, Variables variables) {
    const auto at = [&](const Expr& e) { return static_cast<double>(e.eval(variables)); };
    const double m = at(op.m), n = at(op.n), k = at(op.k), batch = at(op.batch);
    node.numbers["num_ops"] = whole(2 * m * n * k * batch);
    node.numbers["tensor_size"] =
        whole((m * k + k * n + m * n) * batch * static_cast<double>(size_of(op.type).count));
  }
  void say(ChakraNode& node, const LibraryKernel& op, Variables variables) {
    node.numbers["num_ops"] = op.flops.eval(variables);
    node.numbers["tensor_size"] = bytes(op.bytes.eval(variables));
  }
  void say(ChakraNode& node, const MemcpyAsync& op, Variables variables) {
    say_copy(node, op.src, op.dst, op.size, variables);
  }
  void say(ChakraNode& node, const Memcpy& op, Variables variables) {
    say_copy(node, op.src, op.dst, op.size, variables);
  }
  void say_copy(ChakraNode& node, const BufferRef& src, const BufferRef& dst, const BytesExpr& size,
                Variables variables) {
    const Buffer& from = program_.buffers[src.resolve(variables).value];
    const Buffer& to = program_.buffers[dst.resolve(variables).value];
    const bool from_device = from.memory == MemoryKind::Device;
    const bool to_device = to.memory == MemoryKind::Device;
    node.numbers["tensor_size"] = bytes(size.eval(variables));
    if (from_device != to_device) node.type = to_device ? NodeType::MemLoad : NodeType::MemStore;
    if (from_device && to_device && from.device != to.device) ++counts_["between devices"];
  }
  void say(ChakraNode& node, const NcclCollective& op, Variables variables) {
    const std::uint32_t communicator = say_comm(node, op, variables);
    const auto ranks = ranks_of_[communicator].size();
    node.type = NodeType::CommColl;
    node.numbers["comm_type"] = comm_type(op.kind);
    node.numbers["comm_size"] =
        bytes(op.size.eval(variables)) *
        (puts_in_parts(op.kind) ? static_cast<std::int64_t>(ranks) : std::int64_t{1});
    const bool is_rooted = op.kind == CollectiveKind::Broadcast ||
                           op.kind == CollectiveKind::Reduce || op.kind == CollectiveKind::Gather ||
                           op.kind == CollectiveKind::Scatter;
    if (is_rooted) node.numbers["root_rank"] = op.root.eval(variables);
  }
  void say(ChakraNode& node, const NcclSend& op, Variables variables) {
    node.type = NodeType::CommSend;
    say_transfer(node, op, variables, "comm_dst");
  }
  void say(ChakraNode& node, const NcclRecv& op, Variables variables) {
    node.type = NodeType::CommRecv;
    say_transfer(node, op, variables, "comm_src");
  }
  template <class Transfer>
  void say_transfer(ChakraNode& node, const Transfer& op, Variables variables, const char* peer) {
    const std::uint32_t communicator = say_comm(node, op, variables);
    const auto of = static_cast<std::size_t>(op.peer.eval(variables));
    node.numbers[peer] = ranks_of_[communicator][of];
    node.numbers["comm_size"] = bytes(op.size.eval(variables));
    node.numbers["comm_tag"] = 0;
  }
  template <class Nccl>
  std::uint32_t say_comm(ChakraNode& node, const Nccl& op, Variables variables) {
    const std::uint32_t communicator =
        program_.comms[op.comm.resolve(variables).value].communicator;
    if (!group_names_[communicator].empty()) node.texts["pg_name"] = group_names_[communicator];
    node.texts["data_type"] = data_type_name(op.type);
    return communicator;
  }

  static std::int64_t bytes(Bytes size) { return static_cast<std::int64_t>(size.count); }
  static std::int64_t bytes(std::int64_t size) { return size; }
  static std::int64_t whole(double number) {
    return static_cast<std::int64_t>(std::min(number, 0x1p62));
  }

  void finish(ChakraTrace& trace) const {
    trace.version = kVersion;
    trace.numbers[kHostInLine] = 1;
    nlohmann::ordered_json groups = nlohmann::ordered_json::array();
    for (const auto& [name, ranks] : result_.groups) {
      groups.push_back({{"pg_name", name}, {"ranks", ranks}, {"group_size", ranks.size()}});
    }
    trace.texts[kGroups] = groups.dump();
  }

  const Program& program_;
  Executions executions_;
  std::vector<OpInfo> index_;
  HappensBefore order_;
  ChakraExport result_;
  std::int64_t begin_ns_ = std::numeric_limits<std::int64_t>::max();
  std::vector<std::vector<std::uint32_t>> ranks_of_;  ///< by communicator
  std::vector<std::string> group_names_;
  std::vector<std::vector<std::uint32_t>> lanes_of_process_;
  std::vector<std::vector<std::uint32_t>> done_;  ///< by lane: those that became nodes, in order
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint64_t>>
      ids_;  ///< by entry or call, and rank
  std::map<std::string, std::size_t> counts_;
};

}  // namespace

ChakraExport chakra_of(const Program& program, const Timeline& timeline) {
  return Exporter{program, timeline}.run();
}

}  // namespace foretrace::interchange
