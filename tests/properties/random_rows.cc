#include "tests/properties/random_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "tests/properties/program_text.h"

namespace foretrace::test {
namespace {

constexpr std::uint64_t kBuffer = std::uint64_t{256} << 20;  // bytes of each

struct Rank {
  std::uint32_t process, device;
};
struct Communicator {
  std::string name;
  std::vector<Rank> ranks;
};
/// One call: of one rank of a communicator, on one device of a process.
struct Call {
  std::uint32_t process;
  std::string text;
};
using Calls = std::vector<Call>;

struct CollectiveName {
  const char* name;
  bool reduces, has_root, in_place;
};
constexpr std::array kCollectives{CollectiveName{"all_reduce", true, false, true},
                                  CollectiveName{"broadcast", false, true, true},
                                  CollectiveName{"reduce", true, true, true},
                                  CollectiveName{"all_gather", false, false, false},
                                  CollectiveName{"reduce_scatter", true, false, false},
                                  CollectiveName{"all_to_all", false, false, false},
                                  CollectiveName{"gather", false, true, false},
                                  CollectiveName{"scatter", false, true, false}};

class Rows {
 public:
  Rows(Choices choices, const RowsShape& shape) : choices_{std::move(choices)}, shape_{shape} {
    constexpr std::array kProcesses{2, 3, 4, 8, 1, 1, 2, 1, 5, 6, 1, 2};
    constexpr std::array kDevices{1, 1, 1, 1, 2, 4, 2, 1, 1, 1, 8, 4};
    const std::uint32_t place = choices_.below(kProcesses.size());
    processes_ = static_cast<std::uint32_t>(kProcesses[place]);
    devices_ = static_cast<std::uint32_t>(kDevices[place]);
    nodes_ = processes_ % 2 == 0 && choices_.one_in(4) ? 2 : 1;
    is_warm_ = choices_.below(2) == 0;
    blocks_ = choices_.one_in(8) && devices_ == 1;
    threads_.resize(processes_);
    make_communicators();
    if (choices_.one_in(3)) capture_graphs();
  }

  std::string text(const std::string& name) {
    for (std::uint32_t row = 0; row < shape_.rows; ++row) {
      const std::uint32_t steps = 1 + choices_.below(6);
      for (std::uint32_t s = 0; s < steps; ++s) step();
      if (choices_.below(3) != 0) wait_for_all();
    }
    wait_for_all();
    return head(name) + threads_text(threads_);
  }

 private:
  // ---- what there is
  void make_communicators() {
    std::vector<Rank> all;
    for (std::uint32_t p = 0; p < processes_; ++p) {
      for (std::uint32_t d = 0; d < devices_; ++d) all.push_back({p, d});
    }
    comms_.push_back({"world", all});
    comms_.push_back({"again", all});
    std::vector<Rank> some;
    for (const Rank& rank : all) {
      if (choices_.below(2) == 0) some.push_back(rank);
    }
    if (choices_.one_in(2)) std::ranges::reverse(some);
    if (!some.empty()) comms_.push_back({"some", some});
  }

  /// Graphs of a collective or two, one in every process.
  void capture_graphs() {
    graphs_ = 1 + choices_.below(2);
    for (std::uint32_t g = 0; g < graphs_; ++g) {
      graph_stream_.push_back(choices_.below(kStreams));
      Calls calls;
      const std::uint32_t count = 1 + choices_.below(2);
      const bool grouped = choices_.one_in(2);
      for (std::uint32_t i = 0; i < count; ++i) {
        for (Call& call : collective(comms_[i], graph_stream_[g])) calls.push_back(std::move(call));
      }
      for (std::uint32_t p = 0; p < processes_; ++p) {
        std::vector<std::string> ops = of_process(calls, p);
        if (grouped || devices_ > 1) ops = {group(ops)};
        if (devices_ > 1) ops = joined_by_all(devices_, graph_stream_[g], ops);
        add(p, fmt::format("graph_capture: {{graph: g{}, stream: s{}(0), ops: [{{{}}}]}}", g,
                           graph_stream_[g], fmt::join(ops, "}, {")));
      }
      if (devices_ > 1) break;  // one capture is of one device's streams
    }
  }

  void step() {
    const std::uint32_t kinds = shape_.only_nccl ? 8 : 13;
    switch (choices_.below(kinds)) {
      case 0:
      case 1:
        return issue(collective(comm(), stream()), devices_ > 1);
      case 2:
        return issue(transfer(comm()), false);
      case 3:
        return issue(several(), true);
      case 4:
        return issue(ring(), true);
      case 5:
        return launch_graph();
      case 6:
        return add(process(), fmt::format("host_compute: {{duration: {}us}}", delay()));
      case 7:
        return add(process(), fmt::format("stream_synchronize: {{stream: {}}}", on(stream())));
      case 8:
        return add(process(), fmt::format("spin: {{stream: {}, duration: {}us, blocks: {}}}",
                                          on(stream()), delay(), 1 + choices_.below(200)));
      case 9:
        return copy();
      case 10:
        return event();
      case 11:
        return allocate();
      default:
        return add(process(),
                   fmt::format("host_func: {{stream: {}, duration: {}us}}", on(stream()), delay()));
    }
  }

  Calls collective(const Communicator& comm, std::uint32_t stream) {
    const CollectiveName& kind = kCollectives[choices_.below(kCollectives.size())];
    std::string more;
    if (kind.has_root) more += fmt::format(", root: {}", choices_.below(comm.ranks.size()));
    if (kind.reduces) more += fmt::format(", op: {}", choices_.below(2) == 0 ? "sum" : "max");
    more += sized();
    const bool in_place = kind.in_place && choices_.one_in(3);
    Calls calls;
    for (const auto& [process, device] : comm.ranks) {
      const std::string buffers =
          in_place ? fmt::format("buffer: x({})", device)
                   : fmt::format("send_buffer: x({}), recv_buffer: y({})", device, device);
      calls.push_back(
          {process, fmt::format("nccl_{}: {{comm: {}({}), stream: s{}({}), {}{}}}", kind.name,
                                comm.name, device, stream, device, buffers, more)});
    }
    return calls;
  }

  Call one_way(const Communicator& comm, bool sends, std::uint32_t rank, std::uint32_t peer,
               std::uint32_t stream, const std::string& size) {
    const auto& [process, device] = comm.ranks[rank];
    return {process, fmt::format("nccl_{}: {{comm: {}({}), stream: s{}({}), buffer: {}({}), peer: "
                                 "{}{}}}",
                                 sends ? "send" : "recv", comm.name, device, stream, device,
                                 sends ? 'x' : 'y', device, peer, size)};
  }

  Calls transfer(const Communicator& between) {
    const std::uint32_t from = choices_.below(between.ranks.size());
    const std::uint32_t to = choices_.below(between.ranks.size());
    const std::uint32_t on = stream();
    const std::string size = sized();
    return {one_way(between, true, from, to, on, size),
            one_way(between, false, to, from, on, size)};
  }

  /// Of one communicator; or collectives of two that have the same ranks. A group's kernels come in
  /// the order of its first calls, which must not depend on the rank.
  Calls several() {
    Calls calls;
    const std::uint32_t count = 1 + choices_.below(4);
    const Communicator& only = comm();
    const bool of_two = choices_.one_in(3);
    for (std::uint32_t i = 0; i < count; ++i) {
      const bool is_transfer = !of_two && choices_.below(2) == 0;
      const Communicator& one = of_two ? comms_[choices_.below(2)] : only;
      for (Call& call : is_transfer ? transfer(one) : collective(one, stream())) {
        calls.push_back(std::move(call));
      }
    }
    return calls;
  }

  /// Everybody sends to the one so far behind it.
  Calls ring() {
    const Communicator& around = comm();
    const auto ranks = static_cast<std::uint32_t>(around.ranks.size());
    const std::uint32_t far = choices_.below(ranks);
    const std::uint32_t on = stream();
    const std::string size = sized();
    Calls calls;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      calls.push_back(one_way(around, true, rank, (rank + far) % ranks, on, size));
      calls.push_back(one_way(around, false, rank, (rank + ranks - far) % ranks, on, size));
    }
    return calls;
  }

  void launch_graph() {
    if (graphs_ == 0) return issue(ring(), true);
    const std::uint32_t graph = choices_.below(devices_ > 1 ? 1 : graphs_);
    const std::uint32_t on = stream();
    for (std::uint32_t p = 0; p < processes_; ++p) {
      add(p, fmt::format("graph_launch: {{graph: g{}, stream: s{}(0)}}", graph, on));
    }
  }

  void copy() {
    constexpr std::array kWays{std::pair{"x", "y"}, std::pair{"p", "x"}, std::pair{"y", "p"}};
    const auto& [from, to] = kWays[choices_.below(kWays.size())];
    const std::uint32_t device = choices_.below(devices_);
    const auto buffer = [&](std::string_view name) {
      return name == "p" ? std::string{name} : fmt::format("{}({})", name, device);
    };
    add(process(), fmt::format("memcpy_async: {{stream: s{}({}), src: {}, dst: {}, size: {}B}}",
                               stream(), device, buffer(from), buffer(to), bytes(1)));
  }

  void event() {
    const std::uint32_t p = process();
    const std::uint32_t device = choices_.below(devices_);
    add(p,
        fmt::format("event_record: {{stream: s{}({}), event: e({})}}", stream(), device, device));
    add(p, fmt::format("stream_wait_event: {{stream: s{}({}), event: e({})}}", stream(),
                       choices_.below(devices_), device));
  }

  void allocate() {
    const std::uint32_t p = process();
    const std::string of = on(stream());
    add(p, fmt::format("malloc_async: {{stream: {}, buffer: m({})}}", of, of.substr(3, 1)));
    add(p, fmt::format("free_async: {{stream: {}, buffer: m({})}}", of, of.substr(3, 1)));
  }

  // ---- who makes which calls
  static std::vector<std::string> of_process(const Calls& calls, std::uint32_t process) {
    std::vector<std::string> ops;
    for (const Call& call : calls) {
      if (call.process == process) ops.push_back(call.text);
    }
    return ops;
  }
  static std::string group(const std::vector<std::string>& ops) {
    return fmt::format("nccl_group: {{ops: [{{{}}}]}}", fmt::join(ops, "}, {"));
  }

  /// Where a process makes several, they wait for each other unless they are grouped.
  void issue(Calls calls, bool grouped) {
    const bool differs = shape_.differ && choices_.one_in(4);
    if (differs) differ(calls);
    for (std::uint32_t p = 0; p < processes_; ++p) {
      const std::vector<std::string> ops = of_process(calls, p);
      if (ops.empty()) continue;
      const bool needs_group = ops.size() > 1 && !(differs && choices_.one_in(4));
      if (grouped || needs_group) {
        add(p, group(ops));
      } else {
        for (const std::string& op : ops) add(p, op);
      }
    }
    if (differs) put_later();
  }

  void differ(Calls& calls) {
    Call& one = calls[choices_.below(calls.size())];
    const auto replace = [&](const std::string& key, const std::string& value) {
      const auto at = one.text.find(key + ": ");
      if (at == std::string::npos) return;
      const auto end = one.text.find_first_of(",}", at);
      one.text.replace(at, end - at, key + ": " + value);
    };
    switch (choices_.below(4)) {
      case 0:
        calls.erase(calls.begin() + (&one - calls.data()));
        return;
      case 1:
        return replace("root", "0");
      case 2:
        return replace("size", "64B");
      default:
        return replace("stream",
                       fmt::format("s{}({})", stream(), one.text[one.text.find("(") + 1]));
    }
  }

  /// One process makes its last call before the one that it made before.
  void put_later() {
    if (!choices_.one_in(3)) return;
    auto& ops = threads_[process()];
    if (ops.size() >= 2) std::swap(ops[ops.size() - 1], ops[ops.size() - 2]);
  }

  void wait_for_all() {
    for (std::uint32_t p = 0; p < processes_; ++p) {
      for (std::uint32_t d = 0; d < devices_; ++d) {
        add(p, fmt::format("device_synchronize: {{device: {}}}", d));
      }
    }
  }

  // ---- text
  std::string head(const std::string& name) {
    std::string text = fmt::format(
        "# Random rows of operations: generated.\nschema_version: 1\nname: {}\nwarmup: {}\n"
        "processes: {}\ndevices: {}\n",
        name, is_warm_ ? 1 : 0, processes_, devices_);
    if (nodes_ > 1) text += fmt::format("nodes: {}\n", nodes_);
    text += fmt::format("environment: {{{}}}\n", environment());
    text += "streams:\n";
    for (std::uint32_t s = 0; s < kStreams; ++s) {
      text += fmt::format("  s{}: {{each: device, flags: {}}}\n", s,
                          s == 2 ? "blocking" : "non_blocking");
    }
    text += "events: {e: {each: device, timing: false}}\nbuffers:\n";
    for (const char buffer : {'x', 'y', 'm'}) {
      text += fmt::format("  {}: {{each: device, memory: device, size: {}B}}\n", buffer, kBuffer);
    }
    text += fmt::format("  p: {{memory: pinned, size: {}B}}\ncommunicators:\n", kBuffer);
    for (const Communicator& comm : comms_) {
      std::vector<std::string> members;
      for (const auto& [process, device] : comm.ranks) {
        members.push_back(fmt::format("[{}, {}]", process, device));
      }
      text += fmt::format("  {}: {{members: [{}]}}\n", comm.name, fmt::join(members, ", "));
    }
    if (graphs_ > 0) text += "graphs:\n";
    for (std::uint32_t g = 0; g < graphs_; ++g) text += fmt::format("  g{}: {{}}\n", g);
    return text;
  }

  std::string environment() {
    constexpr std::array kSettings{"",
                                   "NCCL_PROTO: LL",
                                   "NCCL_PROTO: Simple",
                                   "NCCL_ALGO: Ring",
                                   "NCCL_ALGO: Tree",
                                   "NCCL_BUFFSIZE: 65536",
                                   "NCCL_MAX_CTAS: 1",
                                   "NCCL_P2P_NVL_CHUNKSIZE: 4096"};
    std::string text = kSettings[choices_.below(kSettings.size())];
    if (blocks_) text += std::string{text.empty() ? "" : ", "} + "CUDA_LAUNCH_BLOCKING: 1";
    return text;
  }

  // ---- choosing
  const Communicator& comm() { return comms_[choices_.below(comms_.size())]; }
  std::uint32_t process() { return choices_.below(processes_); }
  std::uint32_t stream() { return choices_.below(kStreams); }
  std::string on(std::uint32_t stream) {
    return fmt::format("s{}({})", stream, choices_.below(devices_));
  }
  std::uint32_t delay() {
    constexpr std::array kDelays{0, 1, 7, 20, 100, 1000};
    return static_cast<std::uint32_t>(kDelays[choices_.below(kDelays.size())]);
  }
  /// Of what each rank sends; a multiple of an element.
  std::uint64_t bytes(std::uint64_t element) {
    constexpr std::array<std::uint64_t, 12> kSizes{
        4, 1, 0, 3, 100, 4096, 65537, 300'000, 1 << 20, 5000 << 10, 8 << 20, (16 << 20) - 24};
    const std::uint64_t size = kSizes[choices_.below(kSizes.size())] + choices_.below(3);
    return std::max<std::uint64_t>(size == 0 ? 0 : element, size / element * element);
  }
  std::string sized() {
    constexpr std::array<std::pair<const char*, std::uint64_t>, 4> kTypes{
        {{"float32", 4}, {"int8", 1}, {"bfloat16", 2}, {"float64", 8}}};
    const auto& [type, element] = kTypes[choices_.below(kTypes.size())];
    return fmt::format(", size: {}B, type: {}", bytes(element), type);
  }
  void add(std::uint32_t process, const std::string& op) { threads_[process].push_back(op); }

  static constexpr std::uint32_t kStreams = 3;
  Choices choices_;
  RowsShape shape_;
  std::uint32_t processes_ = 1, devices_ = 1, nodes_ = 1;
  bool is_warm_ = true, blocks_ = false;
  std::vector<Communicator> comms_;
  std::uint32_t graphs_ = 0;
  std::vector<std::uint32_t> graph_stream_;
  std::vector<std::vector<std::string>> threads_;
};

}  // namespace

std::string random_rows(Choices choices, const RowsShape& shape, const std::string& name) {
  return Rows{std::move(choices), shape}.text(name);
}

}  // namespace foretrace::test
