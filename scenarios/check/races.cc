// Two accesses to one buffer, one of them a write, that nothing puts in order. Each buffer
// remembers who touched it last from each lane; an access is held against those that have not ended
// for certain when it begins. Only what is unordered even in the likely order is called a race.
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

bool overlap(const Access& a, const Access& b) { return a.begin < b.end && b.begin < a.end; }

class RaceFinder {
 public:
  RaceFinder(const Program& program, const HappensBefore& order)
      : program_{program}, index_{index_ops(program)}, order_{order} {}

  void find(Problems& problems) {
    for (const std::uint32_t node : order_.sequence) {
      const OrderNode& entry = order_.nodes[node];
      if (!order_.is_device(node)) {
        look_at(node, entry.call, problems);
      } else {
        for (std::uint32_t i = 0; i < entry.work_count; ++i) {
          look_at(node, order_.work[entry.first_work + i], problems);
        }
      }
    }
  }

 private:
  using LaneAccesses = std::map<std::uint32_t, std::vector<Access>>;
  using OpAccesses = std::map<OpId, LaneAccesses>;

  void look_at(std::uint32_t node, const ExecutedOp& executed, Problems& problems) {
    const OpFacts facts = op_facts(executed.op->kind);
    if (facts.accesses.empty()) return;
    const std::uint32_t process = order_.nodes[node].process;
    const auto variables = variables_of(index_, executed, process);
    for (const BufferAccess& ref : facts.accesses) {
      if (is_hosts_part(facts, ref, variables) == order_.is_device(node)) continue;
      if (!takes_part(executed.op->kind, ref, variables)) continue;
      const std::uint32_t buffer = ref.buffer->resolve(variables).value;
      Access access{executed.op, node, 0, program_.buffers[buffer].size.count, ref.writes};
      cut_to_range(access, ref, variables);
      OpAccesses& by_op = accesses_[{process, buffer}];
      for (const auto& [op, lanes] : by_op) {
        compare(access, lanes, program_.buffers[buffer].name, problems);
      }
      remember(access, by_op[executed.op->id][order_.nodes[node].lane]);
    }
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
  void compare(const Access& access, const LaneAccesses& lanes, const std::string& buffer,
               Problems& problems) {
    if (warned_.contains(pair_of(*access.op, *lanes.begin()->second.front().op))) return;
    const std::uint32_t mine = order_.nodes[access.node].lane;
    for (const auto& [lane, others] : lanes) {
      if (lane == mine || is_same_stream(lane, mine)) continue;
      for (const Access& other : others) {
        if (!(access.writes || other.writes) || !overlap(access, other)) continue;
        if (order_.is_ordered(other.node, access.node)) continue;
        return warn(other, access, buffer, problems);
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

  void warn(const Access& a, const Access& b, const std::string& buffer, Problems& problems) {
    warned_.insert(pair_of(*a.op, *b.op));
    const bool a_is_later = is_later(*a.op, *b.op);
    const Access& at = a_is_later ? a : b;
    const Access& other = a_is_later ? b : a;
    const Access& first = a.node < b.node ? a : b;
    const Access& second = a.node < b.node ? b : a;
    problems.add(
        at.op->line, at.op->column, Severity::Warning,
        fmt::format("buffer '{}' is {} here on {}, and {} in line {} on {}: nothing orders the two",
                    buffer, at.writes ? "written" : "read", place(at),
                    other.writes ? "written" : "read", other.op->line, place(other)),
        order_.is_device(first.node)
            ? fmt::format("record an event after line {} and wait for it before line {}",
                          first.op->line, second.op->line)
            : fmt::format("let line {} wait until line {} is done", second.op->line,
                          first.op->line));
  }

  const Program& program_;
  std::vector<OpInfo> index_;
  const HappensBefore& order_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, OpAccesses> accesses_;
  std::set<OpPair> warned_;
};

}  // namespace

void check_races(const Program& program, const HappensBefore& order, Problems& problems) {
  RaceFinder{program, order}.find(problems);
}

}  // namespace foretrace
