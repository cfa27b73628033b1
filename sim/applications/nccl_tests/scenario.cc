// nccl-tests' benchmark loop, written as a scenario: what is predicted can be measured as well.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/applications/nccl_tests/plan.h"

namespace foretrace {
namespace {

class Writer {
 public:
  Writer(const NcclTestsPlan& plan, const std::vector<NcclTestsLoop>& loops)
      : plan_{plan}, loops_{loops}, type_{parse_nccl_tests_type(plan.type)} {}

  std::string text() {
    header();
    line(0, "threads:");
    for (thread_ = 0; thread_ < plan_.threads; ++thread_) {
      line(1, plan_.threads == 1 ? "main:" : fmt::format("thread_{}:", thread_));
      if (plan_.local_register == 1) register_buffers();
      std::size_t region = 0;
      for (const NcclTestsSize& size : plan_.sizes) {
        for (const NcclTestsLoop& loop : loops_) measure(size, loop, region++);
      }
    }
    return std::move(text_);
  }

 private:
  void line(int indent, const std::string& what) {
    text_ += std::string(static_cast<std::size_t>(indent) * 2, ' ') + what + '\n';
  }
  void step(const std::string& what) { line(2, "- " + what); }

  void header() {
    const auto& name = info(plan_.op).name;
    line(0, fmt::format("# nccl-tests' loop: {}, {} process(es) with {} GPU(s) each.", name,
                        plan_.processes, plan_.gpus_per_process()));
    line(0, "schema_version: 1");
    line(0, fmt::format("name: nccl_tests_{}", name));
    if (plan_.nodes > 1) line(0, fmt::format("nodes: {}", plan_.nodes));
    line(0, fmt::format("processes: {}", plan_.processes));
    line(0, fmt::format("devices: {}", plan_.gpus_per_process()));
    if (!plan_.environment.empty()) {
      line(0, "environment:");
      for (const auto& [variable, value] : plan_.environment) {
        line(1, fmt::format("{}: {}", variable, nlohmann::json(value).dump()));
      }
    }
    const std::string each = plan_.gpus_per_process() > 1 ? "each: device, " : "";
    line(0, fmt::format("streams: {{s: {{{}flags: non_blocking}}}}", each));
    std::uint64_t largest = 0;
    for (const NcclTestsSize& size : plan_.sizes) largest = std::max(largest, size.bytes);
    line(0, "buffers:");
    for (const char* buffer : {"send", "recv"}) {
      line(1, fmt::format("{}: {{{}memory: nccl, size: {}B}}", buffer, each, largest));
    }
    line(0, "communicators: {world: {members: all_devices}}");
    if (plan_.graph_launches == 0) return;
    line(0, fmt::format("graphs: {{g: {{count: {}}}}}",
                        plan_.threads * plan_.sizes.size() * loops_.size()));
    if (plan_.gpus == 1) return;
    line(0, fmt::format("events: {{fork: {{count: {}}}, join: {{each: device}}}}", plan_.threads));
  }

  void register_buffers() {
    for (const char* buffer : {"send", "recv"}) {
      const auto one = [&](const std::string& device) {
        return fmt::format("nccl_comm_register: {{comm: {}, buffer: {}}}", of("world", device),
                           of(buffer, device));
      };
      const bool is_alone = plan_.gpus == 1;
      step(is_alone ? one(device("0")) : for_each_gpu(one(device("d")), plan_.gpus));
    }
  }

  /// A member of a family that has one object per device.
  std::string of(std::string_view family, const std::string& device) const {
    return plan_.gpus_per_process() == 1 ? std::string{family}
                                         : fmt::format("{}({})", family, device);
  }

  /// The thread's device number `number`, or its loop index d.
  std::string device(const std::string& number) const {
    const std::uint32_t first = thread_ * plan_.gpus;
    return first == 0 ? number : fmt::format("{} + {}", number, first);
  }

  /// One rank's call on `device`.
  std::string rank_call(const NcclTestsSize& size, const std::string& device) const {
    const std::string where =
        fmt::format("comm: {}, stream: {}", of("world", device), of("s", device));
    const std::string data =
        fmt::format("size: {}B, type: {}", size.count * type_.element.count, type_.scenario);
    if (plan_.op == NcclTestsOp::SendRecv) return neighbours(where, data, device);
    const NcclTestsOpInfo& op = info(plan_.op);
    std::string call = fmt::format("{}: {{{}, send_buffer: {}, recv_buffer: {}, {}", op.scenario,
                                   where, of("send", device), of("recv", device), data);
    if (op.reduces) call += fmt::format(", op: {}", plan_.redop);
    if (op.has_root) call += fmt::format(", root: {}", plan_.root);
    return call + "}";
  }

  /// To the next rank and from the one before: calls of one group.
  std::string neighbours(const std::string& where, const std::string& data,
                         const std::string& device) const {
    const std::string rank = fmt::format("process * {} + {}", plan_.gpus_per_process(), device);
    const auto transfer = [&](const char* what, const char* buffer, std::uint32_t step) {
      return fmt::format("{}: {{{}, buffer: {}, {}, peer: ({} + {}) % {}}}", what, where,
                         of(buffer, device), data, rank, step, plan_.ranks());
    };
    return transfer("nccl_send", "send", 1) + ", " +
           transfer("nccl_recv", "recv", plan_.ranks() - 1);
  }

  std::string for_each_gpu(const std::string& op, std::uint32_t count) const {
    return fmt::format("for_each: {{index: d, in: {}, ops: [{}]}}", count, op);
  }
  std::string call(const NcclTestsSize& size) const {
    const bool is_alone = plan_.gpus == 1;
    const std::string calls = is_alone ? rank_call(size, device("0"))
                                       : for_each_gpu(rank_call(size, device("d")), plan_.gpus);
    if (is_alone && plan_.op != NcclTestsOp::SendRecv) return calls;
    return fmt::format("nccl_group: {{ops: [{}]}}", calls);
  }
  std::string synchronize() const {
    if (plan_.gpus == 1) {
      return fmt::format("stream_synchronize: {{stream: {}}}", of("s", device("0")));
    }
    return for_each_gpu(fmt::format("stream_synchronize: {{stream: {}}}", of("s", device("d"))),
                        plan_.gpus);
  }
  static std::string repeat(std::uint32_t times, const std::string& ops) {
    return fmt::format("repeat: {{times: {}, ops: [{}]}}", times, ops);
  }

  void measure(const NcclTestsSize& size, const NcclTestsLoop& loop, std::size_t region) {
    step(repeat(std::max(1u, plan_.warmup), call(size)));
    step(synchronize());
    const std::string graph =
        fmt::format("g({})", thread_ * plan_.sizes.size() * loops_.size() + region);
    if (loop.launches > 0) capture(size, loop, graph);
    step("host_barrier: {}");
    const std::string name =
        fmt::format("name: {}_{}B_x{}", info(plan_.op).name, size.bytes, loop.total());
    if (plan_.blocking == 3) {  // the barrier is not timed
      step(repeat(loop.iterations, fmt::format("region: {{{}, ops: [{}, {}]}}, host_barrier: {{}}",
                                               name, call(size), synchronize())));
      return;
    }
    line(2, "- region:");
    line(4, name);
    line(4, fmt::format("per: {}", loop.total()));
    line(4, "ops:");
    line(5, "- " + timed(size, loop, graph));
    line(5, "- " + synchronize());
  }

  std::string timed(const NcclTestsSize& size, const NcclTestsLoop& loop,
                    const std::string& graph) const {
    if (loop.launches > 0) {
      return repeat(loop.launches, fmt::format("graph_launch: {{graph: {}, stream: {}}}", graph,
                                               of("s", device("0"))));
    }
    std::string ops = call(size);
    if (plan_.blocking > 0) ops += ", " + synchronize();
    if (plan_.blocking == 1) ops += ", host_barrier: {}";
    return repeat(loop.iterations, ops);
  }

  void capture(const NcclTestsSize& size, const NcclTestsLoop& loop, const std::string& graph) {
    const std::string first = of("s", device("0"));
    line(2, "- graph_capture:");
    line(4, "graph: " + graph);
    line(4, "stream: " + first);
    line(4, "ops:");
    const bool joins = plan_.gpus > 1;
    const std::string other = of("s", device("d + 1"));
    const std::string join = of("join", device("d + 1"));
    if (joins) {
      line(5, fmt::format("- event_record: {{event: fork({}), stream: {}}}", thread_, first));
      line(5, "- " + for_each_gpu(fmt::format("stream_wait_event: {{stream: {}, event: fork({})}}",
                                              other, thread_),
                                  plan_.gpus - 1));
    }
    line(5, "- " + repeat(loop.iterations, call(size)));
    if (joins) {
      line(5, "- " + for_each_gpu(fmt::format("event_record: {{event: {}, stream: {}}}, "
                                              "stream_wait_event: {{stream: {}, event: {}}}",
                                              join, other, first, join),
                                  plan_.gpus - 1));
    }
  }

  const NcclTestsPlan& plan_;
  const std::vector<NcclTestsLoop>& loops_;
  const NcclTestsType& type_;
  std::uint32_t thread_ = 0;
  std::string text_;
};

}  // namespace

std::string nccl_tests_scenario(const NcclTestsPlan& plan,
                                const std::vector<NcclTestsLoop>& loops) {
  return Writer{plan, loops}.text();
}

}  // namespace foretrace
