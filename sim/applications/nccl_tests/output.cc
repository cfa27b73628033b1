#include "sim/applications/nccl_tests/output.h"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

namespace foretrace {
namespace {

/// As nccl-tests fits a number into its column: fewer decimals, the larger it is.
std::string fitted(double value, int width) {
  for (const int decimals : {2, 1}) {
    std::string text = fmt::format("{:.{}f}", value, decimals);
    if (static_cast<int>(text.size()) <= width) return text;
  }
  return fmt::format("{:.0f}", value);
}

std::string_view blocking_line(std::uint32_t blocking) {
  switch (blocking) {
    case 1:
      return "# Blocking Enabled: wait and barrier after each inner iteration (-m) \n";
    case 2:
      return "# Blocking Enabled: wait after each inner iteration (-m), no barrier \n";
    case 3:
      return "# Blocking Enabled: wait and barrier after each outer iteration (-n); time excludes "
             "barrier \n";
    default:
      return "";
  }
}

std::string device_lines(const NcclTestsPlan& plan, const Machine& machine) {
  std::string text = "# Using devices\n";
  const std::uint32_t per_process = plan.gpus_per_process();
  const std::uint32_t per_node = plan.ranks() / plan.nodes;
  for (std::uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    text += fmt::format(
        "#  Rank {:2} Group {:2} Pid {:6} on {:>10} device {:2} [{:04x}:{:02x}:{:02x}]"
        " {}\n",
        rank, 0, rank / per_process, fmt::format("node{}", rank / per_node), rank % per_node, 0,
        rank % per_node, 0, machine.gpu_name);
  }
  return text;
}

std::string header(const NcclTestsPlan& plan, const NcclTestsRange& range, const Machine& machine) {
  const bool factor = range.step_factor > 1;
  std::string text;
  auto out = std::back_inserter(text);
  fmt::format_to(out,
                 "# foretrace {}: predicted for machine {}, NCCL {}; the in-place columns "
                 "repeat the out-of-place ones\n",
                 FORETRACE_VERSION, machine.name, machine_of(plan, machine).nccl_version);
  fmt::format_to(out, "# Collective test starting: {}_perf\n", info(plan.op).name);
  fmt::format_to(out,
                 "# nThread {} nGpus {} minBytes {} maxBytes {} step: {}({}) warmup iters: {} "
                 "iters: {} agg iters: 1 validation: 0 graph: {} unalign: 0\n",
                 plan.threads, plan.gpus, range.min_bytes, range.max_bytes,
                 factor ? range.step_factor : range.step_bytes, factor ? "factor" : "bytes",
                 plan.warmup, plan.iterations, plan.graph_launches);
  fmt::format_to(out, "{}#\n{}#\n", blocking_line(plan.blocking), device_lines(plan, machine));
  const auto heading = [&](const char* size, const char* count, const char* type, const char* redop,
                           const char* root, const char* time, const char* alg, const char* bus,
                           const char* wrong) {
    fmt::format_to(out, "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", size, count, type, redop, root);
    for (int side = 0; side < 2; ++side) {
      fmt::format_to(out, "  {:>7}  {:>6}  {:>6}  {:>6}", time, alg, bus, wrong);
    }
    text += " \n";
  };
  fmt::format_to(out,
                 "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}           out-of-place                    "
                 "   in-place          \n",
                 "", "", "", "", "");
  heading("size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong");
  heading("(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "");
  return text;
}

}  // namespace

std::string nccl_tests_text(const NcclTestsPlan& plan, const NcclTestsRange& range,
                            const Machine& machine, const std::vector<NcclTestsRow>& rows) {
  std::string text = header(plan, range, machine);
  auto out = std::back_inserter(text);
  const NcclTestsOpInfo& op = info(plan.op);
  const bool reduces = op.reduces || plan.op == NcclTestsOp::SendRecv;  // as nccl-tests prints it
  double sum = 0;
  for (const NcclTestsRow& row : rows) {
    const double algbw = algorithm_gbps(row.size.bytes, row.time_us);
    const double busbw = algbw * bus_factor(plan.op, plan.ranks());
    sum += busbw;
    fmt::format_to(out, "{:12}  {:12}  {:>8}  {:>6}  {:>6}", row.size.bytes, row.size.count,
                   plan.type, reduces ? plan.redop : "none",
                   op.has_root ? static_cast<int>(plan.root) : -1);
    for (int side = 0; side < 2; ++side) {
      fmt::format_to(out, "  {:>7}  {:>6}  {:>6}    N/A", fitted(row.time_us, 7), fitted(algbw, 6),
                     fitted(busbw, 6));
    }
    text += '\n';
  }
  fmt::format_to(out, "# {:<20} : {:g} \n#\n# Collective test concluded: {}_perf\n",
                 "Avg bus bandwidth", sum / static_cast<double>(rows.size()), op.name);
  return text;
}

std::string nccl_tests_csv(const NcclTestsPlan& plan, const std::vector<NcclTestsRow>& rows) {
  std::string text =
      "op,processes,gpus_per_process,ranks,size_bytes,time_us,algbw_gbps,busbw_gbps,algorithm,"
      "protocol,channels,low_us,high_us\n";
  for (const NcclTestsRow& row : rows) {
    const double algbw = algorithm_gbps(row.size.bytes, row.time_us);
    text +=
        fmt::format("{},{},{},{},{},{:.3f},{:.6g},{:.6g},{},{},{},{:.3f},{:.3f}\n",
                    info(plan.op).name, plan.processes, plan.gpus_per_process(), plan.ranks(),
                    row.size.bytes, row.time_us, algbw, algbw * bus_factor(plan.op, plan.ranks()),
                    row.algorithm, row.protocol, row.channels, row.low_us, row.high_us);
  }
  return text;
}

std::string nccl_tests_json(const NcclTestsPlan& plan, const Machine& machine,
                            const std::vector<NcclTestsRow>& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const NcclTestsRow& row : rows) {
    const double algbw = algorithm_gbps(row.size.bytes, row.time_us);
    list.push_back({{"op", info(plan.op).name},
                    {"processes", plan.processes},
                    {"gpus_per_process", plan.gpus_per_process()},
                    {"ranks", plan.ranks()},
                    {"size_bytes", row.size.bytes},
                    {"time_us", row.time_us},
                    {"algbw_gbps", algbw},
                    {"busbw_gbps", algbw * bus_factor(plan.op, plan.ranks())},
                    {"algorithm", row.algorithm},
                    {"protocol", row.protocol},
                    {"channels", row.channels},
                    {"low_us", row.low_us},
                    {"high_us", row.high_us}});
  }
  const nlohmann::ordered_json document{
      {"schema_version", 1}, {"machine", machine.name}, {"rows", std::move(list)}};
  return document.dump(2) + "\n";
}

}  // namespace foretrace
