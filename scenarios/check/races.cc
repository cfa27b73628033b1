// Two accesses to one buffer, one of them a write, that nothing puts in order. Each buffer
// remembers who touched it last from each lane; an access is held against those that have not ended
// for certain when it begins. Only what is unordered even in the likely order is called a race.
//
// What is allocated again is other memory, or the pool hands it out when that is safe: uses of two
// allocations are no race. malloc_async and free_async are held against the uses of their own,
// which must come after the one and before the other.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "scenarios/check/check.h"
#include "scenarios/program/op_facts.h"

namespace foretrace {
namespace {

constexpr std::size_t kMostRemembered =
    64;  // of an operation in a lane: further ranges are forgotten

struct Access {
  const Op* op{};
  std::uint32_t node{};
  std::uint64_t begin{}, end{};  ///< bytes of the buffer
  bool writes = false;
};

using Spot = std::pair<int, int>;  // line, column

struct Race {
  Access at, other;  ///< the later one in the file, and the other
  std::string buffer;
  std::size_t more = 0;  ///< pairs of operations in the same two places
};

/// cudaMallocAsync and cudaFreeAsync: at their place in the stream.
bool is_of_pool(const OpKind& kind) {
  return std::holds_alternative<MallocAsync>(kind) || std::holds_alternative<FreeAsync>(kind);
}

bool overlap(const Access& a, const Access& b) { return a.begin < b.end && b.begin < a.end; }

class RaceFinder {
 public:
  RaceFinder(const Program& program, const HappensBefore& order)
      : program_{program}, index_{index_ops(program)}, order_{order} {}

  void find(Problems& problems) {
    for (std::uint32_t node = 0; node < order_.nodes.size(); ++node) {
      for_each_executed(node, [&](const ExecutedOp& executed) { note_allocation(node, executed); });
    }
    for (const std::uint32_t node : order_.sequence) {
      for_each_executed(node, [&](const ExecutedOp& executed) { look_at(node, executed); });
    }
    for (const auto& [places, race] : races_) warn(race, problems);
  }

 private:
  using LaneAccesses = std::map<std::uint32_t, std::vector<Access>>;
  using OpAccesses = std::map<OpId, LaneAccesses>;

  /// The call of a host thread, or what an entry of a stream does.
  template <class Visit>
  void for_each_executed(std::uint32_t node, const Visit& visit) const {
    const OrderNode& entry = order_.nodes[node];
    if (!order_.is_device(node)) visit(entry.call);
    for (std::uint32_t i = 0; i < entry.work_count; ++i) visit(order_.work[entry.first_work + i]);
  }

  /// By the host's call; inside a graph by its launch.
  void note_allocation(std::uint32_t node, const ExecutedOp& executed) {
    const OpKind& kind = executed.op->kind;
    if (!allocates(kind)) return;
    const bool is_call = order_.nodes[node].call.op == executed.op;
    if (is_call && order_.is_device(node)) return;
    const std::uint32_t process = order_.nodes[node].process;
    const auto variables = variables_of(index_, executed, process);
    const std::uint32_t buffer = op_facts(kind).memory->resolve(variables).value;
    allocations_[{process, buffer}].push_back(node);
  }

  /// How many allocations of the buffer are called before.
  std::size_t allocation_at(std::uint32_t node, std::uint32_t process, std::uint32_t buffer) const {
    const auto found = allocations_.find({process, buffer});
    if (found == allocations_.end()) return 0;
    return static_cast<std::size_t>(std::ranges::upper_bound(found->second, node) -
                                    found->second.begin());
  }

  void look_at(std::uint32_t node, const ExecutedOp& executed) {
    const OpFacts facts = op_facts(executed.op->kind);
    if (is_of_pool(executed.op->kind) && order_.is_device(node)) {
      const std::uint32_t process = order_.nodes[node].process;
      const auto variables = variables_of(index_, executed, process);
      const std::uint32_t buffer = facts.memory->resolve(variables).value;
      look_at({executed.op, node, 0, program_.buffers[buffer].size.count, true}, buffer);
    }
    if (facts.accesses.empty()) return;
    const std::uint32_t process = order_.nodes[node].process;
    const auto variables = variables_of(index_, executed, process);
    for (const BufferAccess& ref : facts.accesses) {
      if (is_hosts_part(facts, ref, variables) == order_.is_device(node)) continue;
      if (!takes_part(executed.op->kind, ref, variables)) continue;
      const std::uint32_t buffer = ref.buffer->resolve(variables).value;
      Access access{executed.op, node, 0, program_.buffers[buffer].size.count, ref.writes};
      cut_to_range(access, ref, variables);
      look_at(access, buffer);
    }
  }

  void look_at(const Access& access, std::uint32_t buffer) {
    const std::uint32_t process = order_.nodes[access.node].process;
    OpAccesses& by_op = accesses_[{process, buffer, allocation_at(access.node, process, buffer)}];
    for (const auto& [op, lanes] : by_op) compare(access, lanes, program_.buffers[buffer].name);
    remember(access, by_op[access.op->id][order_.nodes[access.node].lane]);
  }

  const Buffer& buffer(const BufferRef& ref, Variables v) const {
    return program_.buffers[ref.resolve(v).value];
  }

  /// What the call itself does before it returns: host copies, and reading pageable memory.
  bool is_hosts_part(const OpFacts& facts, const BufferAccess& access, Variables v) const {
    if (facts.acts == HostActs::Itself) return true;
    if (facts.work != StreamWork::Copy) return false;
    const auto memory = [&](const BufferAccess& of) { return buffer(*of.buffer, v).memory; };
    const bool by_device = std::ranges::any_of(
        facts.accesses, [&](const BufferAccess& of) { return memory(of) == MemoryKind::Device; });
    if (!by_device) return true;
    return !access.writes && memory(access) != MemoryKind::Device &&
           memory(access) != MemoryKind::Pinned;
  }

  /// Only the root sends a broadcast or receives a reduction.
  bool takes_part(const OpKind& kind, const BufferAccess& access, Variables v) const {
    if (!is_of_the_root_alone(kind, access)) return true;
    const auto* op = std::get_if<NcclCollective>(&kind);
    const CommHandle& handle = program_.comms[op->comm.resolve(v).value];
    const auto& members = program_.communicators[handle.communicator].members;
    const auto root = static_cast<std::size_t>(op->root.eval(v));
    return root < members.size() &&
           members[root] == RankPlace{static_cast<std::uint32_t>(v[0]), handle.device};
  }

  static void cut_to_range(Access& access, const BufferAccess& ref, Variables v) {
    if (ref.offset != nullptr) access.begin = ref.offset->eval(v).count;
    if (ref.size != nullptr) access.end = access.begin + ref.size->eval(v).count;
    if (ref.bytes) access.end = access.begin + ref.bytes->count;
  }

  /// With those of one operation: one race of two operations is told, and no further looked for.
  void compare(const Access& access, const LaneAccesses& lanes, const std::string& buffer) {
    if (found_.contains(pair_of(*access.op, *lanes.begin()->second.front().op))) return;
    const std::uint32_t mine = order_.nodes[access.node].lane;
    for (const auto& [lane, others] : lanes) {
      if (lane == mine || is_same_stream(lane, mine)) continue;
      for (const Access& other : others) {
        if (!(access.writes || other.writes) || !overlap(access, other)) continue;
        if (order_.is_ordered(other.node, access.node)) continue;
        return note(other, access, buffer);
      }
    }
  }

  /// Two threads queue on it, in an order that is not known; the entries do not overlap.
  bool is_same_stream(std::uint32_t a, std::uint32_t b) const {
    const auto stream = order_.lanes[a].stream;
    return stream && stream == order_.lanes[b].stream &&
           program_.streams[*stream].kind != StreamKind::PerThreadDefault;
  }

  /// In a lane, whatever follows an access follows all before it too: the last of each operation
  /// and range is enough.
  static void remember(const Access& access, std::vector<Access>& mine) {
    const auto same = std::ranges::find_if(mine, [&](const Access& a) {
      return a.begin == access.begin && a.end == access.end && a.writes == access.writes;
    });
    if (same != mine.end()) mine.erase(same);
    if (mine.size() == kMostRemembered) mine.erase(mine.begin());
    mine.push_back(access);
  }

  using OpPair = std::pair<const Op*, const Op*>;
  static bool is_later(const Op& a, const Op& b) {
    return std::tie(a.line, a.id) > std::tie(b.line, b.id);
  }
  /// The later one in the file, and the other.
  static OpPair pair_of(const Op& a, const Op& b) {
    return is_later(a, b) ? OpPair{&a, &b} : OpPair{&b, &a};
  }

  std::string place(const Access& access) const {
    const OrderLane& lane = order_.lanes[order_.nodes[access.node].lane];
    return lane.stream ? fmt::format("stream '{}'", program_.streams[*lane.stream].name)
                       : fmt::format("host thread '{}'", program_.threads[lane.thread].name);
  }

  static std::string what(const Access& access) {
    if (is_of_pool(access.op->kind)) return allocates(access.op->kind) ? "allocated" : "freed";
    return access.writes ? "written" : "read";
  }

  /// Those of two lines are told together: a loop over GPUs is read as many operations.
  void note(const Access& a, const Access& b, const std::string& buffer) {
    found_.insert(pair_of(*a.op, *b.op));
    const bool a_is_later = is_later(*a.op, *b.op);
    const Race race{a_is_later ? a : b, a_is_later ? b : a, buffer};
    const auto spot = [](const Access& of) { return Spot{of.op->line, of.op->column}; };
    const auto [at, is_new] = races_.emplace(std::pair{spot(race.at), spot(race.other)}, race);
    if (!is_new) ++at->second.more;
  }

  void warn(const Race& race, Problems& problems) const {
    const auto& [at, other, buffer, more] = race;
    const Access& first = at.node < other.node ? at : other;
    const Access& second = at.node < other.node ? other : at;
    problems.add(
        at.op->line, at.op->column, Severity::Warning,
        fmt::format(
            "buffer '{}' is {} here on {}, and {} in {} on {}: nothing orders the two{}", buffer,
            what(at), place(at), what(other), place_of(*other.op, *at.op), place(other),
            more == 0 ? "" : fmt::format(", nor {} more such pair{}", more, more == 1 ? "" : "s")),
        order_.is_device(first.node)
            ? fmt::format("record an event after {} and wait for it before {}",
                          place_of(*first.op, *second.op), place_of(*second.op, *first.op))
            : fmt::format("let {} wait until {} is done", place_of(*second.op, *first.op),
                          place_of(*first.op, *second.op)));
  }

  const Program& program_;
  std::vector<OpInfo> index_;
  const HappensBefore& order_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>>
      allocations_;  ///< by process and buffer: nodes, ascending
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::size_t>, OpAccesses>
      accesses_;  ///< by process, buffer and allocation
  std::set<OpPair> found_;
  std::map<std::pair<Spot, Spot>, Race> races_;
};

}  // namespace

void check_races(const Program& program, const HappensBefore& order, Problems& problems) {
  RaceFinder{program, order}.find(problems);
}

}  // namespace foretrace
