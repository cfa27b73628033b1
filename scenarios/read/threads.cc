// `threads:` and the blocks inside: repeat, for_each, when, region, nccl_group, graph_capture. Of
// `include` there is nothing left here (scenarios/include).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "scenarios/lower/syntax.h"
#include "scenarios/program/program_walk.h"
#include "scenarios/read/decisions.h"
#include "scenarios/read/thread_family.h"

namespace foretrace {
namespace {

// The product of all loops around an operation numbers its instances: see Program's loop_indices.
constexpr auto kMostInstances = static_cast<std::int64_t>(kMostExecutions);

constexpr std::size_t kMostHostThreads = 262'144;
constexpr std::uint32_t kMostWritten = 1'000'000;  // operations of loops whose turns differ

class ThreadReader {
 public:
  explicit ThreadReader(Reader& reader) : reader_{reader} {
    for (const auto ops : {torch_ops(), torch_waits(), all_to_all_v_ops(), task_graph_ops()}) {
      for (const LoweredSyntax& op : ops) lowered_ops_.emplace(op.name, &op);
    }
  }

  void read_thread(const YamlNode& name, const YamlNode& value) {
    std::vector<std::uint32_t> processes;
    std::vector<ThreadMember> members{{}};
    const YamlNode* ops = &value;
    if (value.kind == YamlNode::Kind::Map) {
      MapReader map{value, "a thread", reader_.problems};
      processes = read_processes(map);
      members = read_members(reader_, map, kMostHostThreads);
      ops = map.required("ops");
      map.finish();
    } else {
      processes = all_processes();
    }
    if (ops == nullptr) return;
    const std::size_t errors = problems().error_count();
    std::vector<ConditionSeen> held;
    for (const ThreadMember& member : members) {
      for (const auto& [index, number] : member.indices) reader_.constants[index] = number;
      read_member(name, member, processes, *ops, held);
      for (const auto& [index, number] : member.indices) reader_.constants.erase(index);
      if (problems().error_count() > errors) return;  // the others would say the same
    }
    warn_of_never(problems(), held);
  }

 private:
  /// Of a condition or a length that depends on the process or on turns: for those being read.
  std::optional<std::int64_t> decided(const YamlNode& node) const {
    return decisions_->value(node, reader_.domain.processes.front(), turns_);
  }

  /// `ops`, or `otherwise`, in the place of the `when`.
  void read_when(MapReader& map, Block& block) {
    const YamlNode* condition = map.required("condition");
    const YamlNode* ops = map.required("ops");
    const YamlNode* otherwise = map.optional("otherwise");
    const bool holds = condition != nullptr && decided(*condition).value_or(0) != 0;
    const YamlNode* chosen = holds ? ops : otherwise;
    if (chosen == nullptr) return;
    for (Op& op : read_block(*chosen)) block.push_back(std::move(op));
  }

  /// Adds to `held` what its conditions were.
  void read_member(const YamlNode& name, const ThreadMember& member,
                   const std::vector<std::uint32_t>& processes_of_it, const YamlNode& ops,
                   std::vector<ConditionSeen>& held) {
    region_suffix_ = member.of_regions;
    host_threads_ += processes_of_it.size();
    if (host_threads_ > kMostHostThreads) {
      if (!std::exchange(said_many_, true)) {
        problems().error(name, fmt::format("more than {} host threads in all processes together",
                                           kMostHostThreads));
      }
      return;
    }
    thread_name_ = name.text + member.of_thread;
    const std::size_t errors = problems().error_count();
    Decisions decisions{reader_, ops, processes_of_it};
    decisions_ = &decisions;
    for (const std::vector<std::uint32_t>& processes : decisions.groups()) {
      reader_.domain = {processes, {}};
      turns_.clear();
      reader_.program.threads.push_back({thread_name_, processes, read_block(ops)});
      if (problems().error_count() > errors) break;  // the others would say the same
    }
    decisions.add_to(held);
    decisions_ = nullptr;
  }

  Program& program() { return reader_.program; }
  Problems& problems() { return reader_.problems; }

  std::vector<std::uint32_t> all_processes() {
    std::vector<std::uint32_t> all(program().processes);
    std::iota(all.begin(), all.end(), 0U);
    return all;
  }

  std::vector<std::uint32_t> read_processes(MapReader& map) {
    const YamlNode* one = map.optional("process");
    const YamlNode* several = map.optional("processes");
    const std::int64_t last = std::int64_t{program().processes} - 1;
    reader_.domain = {{0}, {}};
    const auto read = [&](const YamlNode& node) {
      return static_cast<std::uint32_t>(read_constant(reader_, node, kNumber, 0, last));
    };
    if (one != nullptr && several != nullptr) {
      problems().error(*several, "either 'process' or 'processes', not both");
    }
    if (one != nullptr) return {read(*one)};
    if (several == nullptr) return all_processes();
    if (several->kind != YamlNode::Kind::Sequence || several->items.empty()) {
      problems().error(*several, "'processes' is a list: [0, 2]");
      return {0};
    }
    std::vector<std::uint32_t> processes;
    processes.reserve(several->items.size());
    for (const YamlNode& item : several->items) processes.push_back(read(item));
    std::ranges::sort(processes);
    if (std::ranges::adjacent_find(processes) != processes.end()) {
      problems().error(*several, "a process is named twice");
    }
    return processes;
  }

  Block read_block(const YamlNode& node) {
    Block block;
    if (node.kind != YamlNode::Kind::Sequence) {
      problems().error(node, "operations are a list: '- name: {...}' in each line");
      return block;
    }
    block.reserve(node.items.size());
    for (const YamlNode& item : node.items) {
      if (item.kind == YamlNode::Kind::Map && item.entries.size() == 1) {
        read_op(item.entries.front(), block);
      } else {
        problems().error(item, "an operation is one name with its keys: 'name: {...}'");
      }
    }
    return block;
  }

  void read_op(const YamlEntry& entry, Block& block) {
    const std::string& name = entry.key.text;
    const auto found = simple_ops_.find(name);
    const auto blocks = block_ops();
    const auto lowered = lowered_ops_.find(name);
    const bool is_lowered = lowered != lowered_ops_.end();
    const bool is_block = std::ranges::find(blocks, name, &BlockSyntax::name) != blocks.end();
    if (found == simple_ops_.end() && !is_block && !is_lowered) {
      problems().error(entry.key, fmt::format("unknown operation '{}'", name), hint_for(name));
      return;
    }
    if (name == "when") {
      MapReader map{entry.value, name, problems()};
      read_when(map, block);
      return map.finish();
    }
    if (name == "repeat" || name == "for_each") return read_loop(entry, block);
    const KindFacts* facts = kind_facts(is_lowered ? lowered->second->stands_as : name);
    if (in_nccl_group_ && (facts == nullptr || !facts->can_be_grouped)) {
      problems().error(entry.key, fmt::format("'{}' cannot stand in an nccl_group", name),
                       "only NCCL operations, host operations, repeat and for_each can");
    }
    if (in_capture_ && (facts == nullptr || !facts->can_be_captured)) {
      problems().error(entry.key, fmt::format("'{}' cannot stand in a graph_capture", name),
                       "only what is queued on streams, events' records and waits, and loops can");
    }
    if (name == "device_synchronize" && is_of_all_devices(entry.value)) {
      return synchronize_all(entry, block);
    }
    MapReader map{entry.value, name, problems()};
    const YamlNode* id = map.optional("id");
    Op op{{},
          id == nullptr ? "" : read_word(reader_, *id, "an id"),
          entry.key.place().first,
          entry.key.place().second,
          HostBarrier{}};
    if (is_lowered) {
      OpFields fields{reader_, map};
      Lowering out{program(), thread_name_, std::move(op), block};
      lowered->second->read(fields, out);
    } else {
      op.id = OpId{program().op_count++};
      op.kind = is_block ? read_block_op(name, map) : read_simple_op(*found->second, map);
      block.push_back(std::move(op));
    }
    map.finish();
  }

  static bool is_of_all_devices(const YamlNode& map) {
    const YamlNode* device = value_of(map, "device");
    return device != nullptr && device->kind == YamlNode::Kind::Scalar && device->text == "all";
  }

  /// One device after the other, as a program would.
  void synchronize_all(const YamlEntry& entry, Block& block) {
    MapReader map{entry.value, entry.key.text, problems()};
    static_cast<void>(map.optional("device"));
    const YamlNode* id = map.optional("id");
    const std::string label = id == nullptr ? "" : read_word(reader_, *id, "an id");
    if (in_capture_ || in_nccl_group_) {
      problems().error(entry.key, fmt::format("'{}' cannot stand in {}", entry.key.text,
                                              in_capture_ ? "a graph_capture" : "an nccl_group"));
    }
    for (std::uint32_t device = 0; device < program().devices; ++device) {
      const auto [line, column] = entry.key.place();
      block.push_back({OpId{program().op_count++}, label, line, column,
                       DeviceSynchronize{Expr{std::int64_t{device}}}});
    }
    map.finish();
  }

  OpKind read_simple_op(const OpSyntax& syntax, MapReader& map) {
    OpFields fields{reader_, map};
    return syntax.read(fields);
  }

  OpKind read_block_op(std::string_view name, MapReader& map) {
    if (name == "region") return read_region(map);
    if (name == "graph_capture") return read_graph_capture(map);
    return read_nccl_group(map);
  }

  Block read_ops(MapReader& map) {
    const YamlNode* ops = map.required("ops");
    return ops == nullptr ? Block{} : read_block(*ops);
  }

  /// One Repeat, or one for each run of turns in which the same is decided.
  void read_loop(const YamlEntry& entry, Block& block) {
    MapReader map{entry.value, entry.key.text, problems()};
    const YamlNode* id = map.optional("id");
    const std::string label = id == nullptr ? "" : read_word(reader_, *id, "an id");
    const VariableDomain::Loop loop = read_turns(map, entry.key.text == "repeat" ? "times" : "in");
    const YamlNode* ops = map.required("ops");
    const std::vector<std::int64_t> runs =
        decisions_->runs(entry.value, reader_.domain.processes.front(), turns_, loop.times);
    const std::size_t errors = problems().error_count();
    std::int64_t first = 0;
    for (const std::int64_t times : runs) {
      const auto [line, column] = entry.key.place();
      block.push_back({OpId{program().op_count++}, label, line, column, HostBarrier{}});
      reader_.domain.loops.push_back({loop.name, times, first, runs.size() > 1});
      turns_.push_back(first);
      Repeat repeat{static_cast<std::uint64_t>(times), {}};
      if (ops != nullptr) repeat.ops = read_block(*ops);
      block.back().kind = std::move(repeat);
      turns_.pop_back();
      reader_.domain.loops.pop_back();
      first += times;
      if (problems().error_count() > errors) break;  // the others would say the same
      if (runs.size() == 1 || program().op_count < kMostWritten) continue;
      problems().error(entry.key,
                       fmt::format("a loop whose turns differ reads as one loop for each run of "
                                   "turns that are alike: more than {} operations",
                                   kMostWritten));
      break;
    }
    map.finish();
  }

  VariableDomain::Loop read_turns(MapReader& map, std::string_view times_key) {
    VariableDomain::Loop loop{{}, 1};
    if (const YamlNode* index = map.optional("index")) loop.name = read_index_name(*index);
    const YamlNode* times = map.required(times_key);
    if (times == nullptr) return loop;
    const std::optional<std::int64_t> length = decided(*times);
    loop.times = length ? *length : read_constant(reader_, *times, kNumber, 0, kMostInstances);
    std::int64_t instances = loop.times;
    for (const auto& outer : reader_.domain.loops) {
      if (__builtin_mul_overflow(instances, outer.times, &instances) ||
          instances > kMostInstances) {
        problems().error(*times, "the loops run more than 2^62 times together");
        loop.times = 1;
        break;
      }
    }
    return loop;
  }

  std::string read_index_name(const YamlNode& node) {
    const auto& loops = reader_.domain.loops;
    const bool is_taken =
        node.text == "process" || reader_.constants.contains(node.text) ||
        std::ranges::find(loops, node.text, &VariableDomain::Loop::name) != loops.end();
    if (!is_name(node.text)) {
      problems().error(node, fmt::format("'{}' cannot be an index's name", node.text));
    } else if (is_taken) {
      problems().error(node, fmt::format("'{}' has a meaning here already", node.text));
    }
    return node.text;
  }

  Region read_region(MapReader& map) {
    Region region;
    if (const YamlNode* name = map.required("name")) {
      region.name = read_word(reader_, *name, "a region's name") + region_suffix_;
    }
    if (const YamlNode* per = map.optional("per")) {
      region.per = static_cast<std::uint64_t>(read_constant(reader_, *per, kNumber, 1, kNoLimit));
    }
    if (const YamlNode* issue_only = map.optional("issue_only")) {
      region.issue_only = read_flag(reader_, *issue_only, "issue_only");
    }
    region.ops = read_ops(map);
    return region;
  }

  NcclGroup read_nccl_group(MapReader& map) {
    const bool outer = std::exchange(in_nccl_group_, true);
    NcclGroup group{read_ops(map)};
    in_nccl_group_ = outer;
    return group;
  }

  GraphCapture read_graph_capture(MapReader& map) {
    OpFields fields{reader_, map};
    GraphCapture capture{fields.graph(), fields.stream(), {}};
    if (program().streams[capture.stream.first.value].kind == StreamKind::LegacyDefault) {
      problems().error(fields.where("stream"), "CUDA cannot capture the legacy default stream",
                       "declare a stream");
    }
    in_capture_ = true;
    capture.ops = read_ops(map);
    in_capture_ = false;
    return capture;
  }

  std::string hint_for(const std::string& name) const {
    const std::string hint = suggest(name, all_names());
    return hint.empty() ? "'foretrace list ops --keys' prints all of them" : hint;
  }

  std::vector<std::string> all_names() const {
    std::vector<std::string> names;
    names.reserve(simple_ops_.size() + lowered_ops_.size() + block_ops().size());
    for (const auto& [name, op] : simple_ops_) names.emplace_back(name);
    for (const auto& [name, op] : lowered_ops_) names.emplace_back(name);
    for (const BlockSyntax& op : block_ops()) names.emplace_back(op.name);
    return names;
  }

  Reader& reader_;
  const std::map<std::string_view, const OpSyntax*>& simple_ops_ = simple_ops();
  std::map<std::string_view, const LoweredSyntax*> lowered_ops_;
  std::string thread_name_;
  std::string region_suffix_;
  Decisions* decisions_ = nullptr;  ///< of the thread that is read
  Turns turns_;                     ///< of the loops around: of each run the first
  std::size_t host_threads_ = 0;    ///< of all processes
  bool said_many_ = false;
  bool in_nccl_group_ = false;
  bool in_capture_ = false;
};

constexpr std::array kBlocks{
    BlockSyntax{"repeat", "[index] times ops", "runs its operations several times"},
    BlockSyntax{"for_each", "index in ops", "the same for each index below a number: in: devices"},
    BlockSyntax{"when", "condition ops [otherwise]",
                "only in processes and turns for which it holds: condition: process == 0"},
    BlockSyntax{"include", "file [with]",
                "in its place the operations of another file, with values for its parameters"},
    BlockSyntax{"region", "name [per] [issue_only] ops",
                "a named, measured interval of the host thread"},
    BlockSyntax{"nccl_group", "ops", "ncclGroupStart ... ncclGroupEnd"},
    BlockSyntax{"graph_capture", "graph stream ops", "what is queued inside becomes a CUDA graph"},
};

}  // namespace

std::span<const BlockSyntax> block_ops() { return kBlocks; }

void read_threads(Reader& reader, const YamlNode* node) {
  if (node == nullptr) return;
  MapReader map{*node, "threads", reader.problems};
  ThreadReader threads{reader};
  reader.in_operations = true;
  for (const YamlEntry& entry : node->entries) {
    if (!is_name(entry.key.text)) {
      reader.problems.error(entry.key, fmt::format("'{}' cannot be a name", entry.key.text),
                            "a letter, then letters, digits and '_'");
    }
    threads.read_thread(entry.key, entry.value);
  }
  reader.in_operations = false;
  reader.domain = {{0}, {}};
}

}  // namespace foretrace
