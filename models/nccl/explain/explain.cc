#include "models/nccl/explain/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "models/nccl/explain/explain_time.h"
#include "models/nccl/rules/rccl.h"
#include "models/nccl/rules/registration.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::nccl {
namespace {

std::string graph_text(std::string_view name, const SearchGraph& graph, bool several) {
  if (graph.channels == 0) return fmt::format("no {}", name);
  std::string text = fmt::format("{} {} x {:g} GB/s", name, graph.channels, graph.intra_gbps);
  if (several) text += fmt::format(" inside, {:g} between nodes", graph.inter_gbps);
  return text;
}

/// `name`: the link's own, where it is known.
std::string link_text(Link link, const std::string& name) {
  switch (link) {
    case Link::NvSwitch:
      return name.empty() || name == "NVLink" ? "NVSwitch" : name + ", NVSwitch";
    case Link::NvLinkMesh:
      return fmt::format("{} between all pairs", name.empty() ? "NVLink" : name);
    case Link::NvLinkBridge:
      return "NVLink bridges between pairs";
    case Link::PciSwitch:
      return fmt::format("{} through switches", name.empty() ? "PCIe" : name);
    case Link::PciHost:
      break;
  }
  return fmt::format("{} through the host", name.empty() ? "PCIe" : name);
}

/// "Hopper"; of others than NVIDIA's their own name.
std::string gpu_text(const Tuning& tuning, const Given& given) {
  if (!given.gpu.empty()) return given.gpu;
  return tuning.constants->is_rccl ? "MI300X" : std::string{name_of(tuning.topology.generation)};
}

}  // namespace

namespace words {

std::string size_text(std::uint64_t bytes) {
  static constexpr std::array kUnits{"B", "KiB", "MiB", "GiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return fmt::format("{:.4g} {}", value, kUnits[unit]);
}

std::string machine_text(const Tuning& tuning, const Given& given) {
  const Topology& topology = tuning.topology;
  const bool rccl = tuning.constants->is_rccl;
  std::string text =
      fmt::format(" on {} rank{}, {} {}\n", tuning.ranks(), tuning.ranks() == 1 ? "" : "s",
                  rccl ? "RCCL" : "NCCL", text_of(tuning.version));
  text += fmt::format("{} node{} x {} {} GPU{}, {}\n", topology.nodes,
                      topology.nodes == 1 ? "" : "s", topology.gpus_per_node,
                      gpu_text(tuning, given), topology.gpus_per_node == 1 ? "" : "s",
                      rccl ? "xGMI between all pairs" : link_text(topology.link, given.link));
  const bool several = topology.nodes > 1;
  const Graphs& graphs = tuning.graphs;
  text += fmt::format("graphs: {}; {}; {}\n", graph_text("rings", graphs.ring, several),
                      graph_text("trees", graphs.tree, several),
                      graph_text("NVLS", graphs.nvls, several));
  if (rccl) {
    return text + fmt::format("channels: {}\nby RCCL's own rules; nothing of it was measured\n\n",
                              tuning.channels);
  }
  text += fmt::format("channels: {} for collectives, {} for NVLS, {} for send/recv ({} per peer)\n",
                      tuning.channels, tuning.nvls_channels, tuning.p2p_channels,
                      tuning.p2p_channels_per_peer);
  if (given.no_nvls) text += "NVLS is off on this machine (its parameter nccl.nvls)\n";
  if (!given.environment.empty()) {
    text += fmt::format("settings: {}\n", fmt::join(given.environment, " "));
  }
  return text + "\n";
}

}  // namespace words

namespace {

using Json = nlohmann::ordered_json;
using words::machine_text;
using words::size_text;

std::string call_text(const Question& q) {
  const bool reduces = q.kind == CollectiveKind::AllReduce || q.kind == CollectiveKind::Reduce ||
                       q.kind == CollectiveKind::ReduceScatter;
  return fmt::format("{} of {} ({}{})", q.op, size_text(q.size.count), q.type_name,
                     reduces ? ", " + q.red_op_name : "");
}

std::string heading(const Explanation& e) {
  return call_text(e.question) + (e.question.registered ? ", registered buffers" : "") +
         machine_text(e.tuning, e.given);
}

bool won(const Explanation& e, const Candidate& candidate) {
  return e.plan && candidate.out.empty() && candidate.algorithm == e.plan->algorithm &&
         candidate.protocol == e.plan->protocol;
}

std::string table(const Explanation& e) {
  std::vector<std::array<std::string, 6>> rows{
      {"algorithm", "protocol", "latency us", "GB/s", "price us", ""}};
  for (const Candidate& c : e.candidates) {
    // Algorithms that can never do this are one line.
    const auto same = [&](const Candidate& other) {
      return other.algorithm == c.algorithm && other.out == c.out;
    };
    const bool alike = std::ranges::count_if(e.candidates, same) == kProtocols && !c.out.empty();
    if (alike && c.protocol != Protocol::LL) continue;
    const bool priced = c.price_us > 0;
    rows.push_back({std::string{name_of(c.algorithm)},
                    alike ? "all" : std::string{name_of(c.protocol)},
                    priced ? fmt::format("{:.2f}", c.latency_us) : "-",
                    priced ? fmt::format("{:.2f}", c.bandwidth_gbps) : "-",
                    priced ? fmt::format("{:.2f}", c.price_us) : "-",
                    won(e, c)       ? "taken"
                    : c.out.empty() ? ""
                                    : "out: " + c.out});
  }
  std::array<std::size_t, 6> widths{};
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto& row = rows[r];
    text += fmt::format("| {:<{}} | {:<{}} | {:>{}} | {:>{}} | {:>{}} | {:<{}} |\n", row[0],
                        widths[0], row[1], widths[1], row[2], widths[2], row[3], widths[3], row[4],
                        widths[4], row[5], widths[5]);
    if (r > 0) continue;
    text +=
        fmt::format("|:{0:-<{1}}-|:{0:-<{2}}-|-{0:-<{3}}:|-{0:-<{4}}:|-{0:-<{5}}:|:{0:-<{6}}-|\n",
                    "", widths[0], widths[1], widths[2], widths[3], widths[4], widths[5]);
  }
  return text + "\n";
}

std::string verdict(const Explanation& e) {
  const Plan& plan = *e.plan;
  std::string text = fmt::format("{} {} is the cheapest: {:.2f} us", name_of(plan.algorithm),
                                 name_of(plan.protocol), plan.price_us);
  const Candidate* second = nullptr;
  for (const Candidate& c : e.candidates) {
    if (!c.out.empty() || won(e, c)) continue;
    if (second == nullptr || c.price_us < second->price_us) second = &c;
  }
  if (second == nullptr) return text + ", and there is no other\n";
  return text + fmt::format("; next {} {} at {:.2f} us, {:.1f} % more\n",
                            name_of(second->algorithm), name_of(second->protocol), second->price_us,
                            100 * (second->price_us / static_cast<double>(plan.price_us) - 1));
}

std::string share_text(std::string_view which, const ChannelShare& share) {
  return fmt::format("{}: {}, in chunks of {} and slices of {}, {} pass{} and {} steps\n", which,
                     size_text(share.bytes), size_text(share.chunk_bytes),
                     size_text(share.slice_bytes), share.loops, share.loops == 1 ? "" : "es",
                     share.steps);
}

std::string plan_text(const Explanation& e) {
  const Plan& plan = *e.plan;
  std::string text = verdict(e);
  text += fmt::format("kernel: {} CTAs of {} threads (at least {} bytes per thread allow {})\n",
                      e.kernel_channels, e.kernel_threads,
                      e.tuning.bytes_per_thread[index_of(plan.algorithm)][index_of(plan.protocol)],
                      plan.max_channels);
  if (e.question.registered) {
    text += plan.direct ? "ranks write straight into the receive buffers\n"
                        : "the data go through NCCL's buffers, registered or not\n";
  }
  if (e.tuning.constants->is_rccl) {
    const Request request{function_of(*e.question.kind), e.question.size, e.question.type,
                          e.question.red_op};
    return text + fmt::format("each channel: {}\n", size_text(plan.low.bytes)) +
           msccl_instead(request);
  }
  text += share_text(plan.channels == 1 ? "the channel" : "first channel", plan.low);
  if (plan.middle.bytes > 0) text += share_text("each between", plan.middle);
  if (plan.high.bytes > 0) text += share_text("last channel", plan.high);
  return text;
}

std::string transfer_text(const Explanation& e) {
  const Transfer& t = *e.transfer;
  std::string text = "NCCL prices no sends and receives: size and number of ranks decide.\n";
  text +=
      fmt::format("each transfer: {}, {} channels of {}, in chunks of {}\n", name_of(t.protocol),
                  t.channels, size_text(t.part_bytes), size_text(t.chunk_bytes));
  return text + fmt::format("kernel: {} CTAs of {} threads\n", e.kernel_channels, e.kernel_threads);
}

Json share_json(const ChannelShare& share) {
  return {{"bytes", share.bytes},
          {"chunk_bytes", share.chunk_bytes},
          {"slice_bytes", share.slice_bytes},
          {"passes", share.loops},
          {"steps", share.steps}};
}

}  // namespace

const std::vector<std::pair<std::string, std::optional<CollectiveKind>>>& operations() {
  using enum CollectiveKind;
  static const std::vector<std::pair<std::string, std::optional<CollectiveKind>>> kAll{
      {"all_reduce", AllReduce}, {"all_gather", AllGather}, {"reduce_scatter", ReduceScatter},
      {"broadcast", Broadcast},  {"reduce", Reduce},        {"all_to_all", AllToAll},
      {"gather", Gather},        {"scatter", Scatter},      {"send_recv", std::nullopt}};
  return kAll;
}

std::uint64_t parts_of(const Question& question, std::uint32_t ranks) {
  const bool shared = question.kind &&
                      (is_send_recv(*question.kind) || question.kind == CollectiveKind::AllGather ||
                       question.kind == CollectiveKind::ReduceScatter);
  const std::uint64_t parts = shared ? ranks : 1;
  const std::uint64_t unit = size_of(question.type).count * parts;
  if (question.size.count == 0 || question.size.count % unit != 0) {
    throw UsageError{fmt::format(
        "{} of {} bytes: the size must be a multiple of {} bytes ({} of {}{})\n  hint: for example "
        "{} bytes",
        question.op, question.size.count, unit, question.type_name, size_of(question.type).count,
        parts > 1 ? fmt::format(", times {} ranks", parts) : "",
        std::max<std::uint64_t>((question.size.count + unit - 1) / unit, 1) * unit)};
  }
  return parts;
}

bool goes_directly(const Question& question, const Tuning& tuning) {
  constexpr Offer kRegistered{true, true};
  if (!question.registered) return false;
  if (!question.kind || is_send_recv(*question.kind)) {
    return may_transfer_directly(tuning.settings, kRegistered, false);
  }
  return may_write_directly(tuning.settings, *question.kind, false, kRegistered, kRegistered,
                            false);
}

Explanation explain(const Question& question, Tuning tuning, const Given& given) {
  Explanation e{question, std::move(tuning), given, {}, {}, {}, 1, kP2pThreads, {}};
  const std::uint64_t parts = parts_of(question, e.tuning.ranks());
  if (question.kind && !is_send_recv(*question.kind)) {
    const Request request{
        function_of(*question.kind),      question.size, question.type, question.red_op, 1,
        goes_directly(question, e.tuning)};
    e.candidates = priced_candidates(e.tuning, request);
    e.plan = plan_of(e.tuning, request);
    e.kernel_channels = e.plan->channels;
    e.kernel_threads = e.plan->threads;
    return e;
  }
  const Bytes each{question.size.count / parts};
  e.transfer = transfer_of(e.tuning, each);
  e.kernel_channels = question.kind ? exchange_channels(e.tuning, each) : e.transfer->channels;
  return e;
}

std::string explain_text(const Explanation& e) {
  const std::string time = e.time ? time_text(*e.time) : "";
  if (!e.plan) return heading(e) + transfer_text(e) + time;
  return heading(e) + table(e) + plan_text(e) + time;
}

std::string explain_json(const Explanation& e) {
  Json json{
      {"op", e.question.op},
      {"size_bytes", e.question.size.count},
      {"type", e.question.type_name},
      {"ranks", e.tuning.ranks()},
      {"nodes", e.tuning.topology.nodes},
      {e.tuning.constants->is_rccl ? "rccl_version" : "nccl_version", text_of(e.tuning.version)},
      {"environment", e.given.environment},
      {"nvls_off", e.given.no_nvls},
      {"candidates", Json::array()},
      {"kernel", {{"channels", e.kernel_channels}, {"threads", e.kernel_threads}}}};
  for (const Candidate& c : e.candidates) {
    Json row{{"algorithm", name_of(c.algorithm)}, {"protocol", name_of(c.protocol)}};
    if (c.price_us > 0) {
      row["latency_us"] = c.latency_us;
      row["bandwidth_gbps"] = c.bandwidth_gbps;
      row["price_us"] = c.price_us;
    }
    row["taken"] = won(e, c);
    if (!c.out.empty()) row["out"] = c.out;
    json["candidates"].push_back(std::move(row));
  }
  if (e.plan) {
    json["algorithm"] = name_of(e.plan->algorithm);
    json["protocol"] = name_of(e.plan->protocol);
    json["price_us"] = e.plan->price_us;
    json["shares"] = {{"first", share_json(e.plan->low)},
                      {"between", share_json(e.plan->middle)},
                      {"last", share_json(e.plan->high)}};
  } else {
    json["protocol"] = name_of(e.transfer->protocol);
    json["transfer"] = {{"channels", e.transfer->channels},
                        {"part_bytes", e.transfer->part_bytes},
                        {"chunk_bytes", e.transfer->chunk_bytes}};
  }
  if (e.time) json["time"] = time_json(*e.time);
  return json.dump(2) + "\n";
}

std::string explain_csv(const Explanation& e) {
  std::string text =
      "op,size_bytes,ranks,algorithm,protocol,latency_us,bandwidth_gbps,price_us,"
      "taken,channels,threads,out\n";
  const std::string common =
      fmt::format("{},{},{}", e.question.op, e.question.size.count, e.tuning.ranks());
  for (const Candidate& c : e.candidates) {
    const bool taken = won(e, c);
    const std::string prices = c.price_us > 0 ? fmt::format("{:.9g},{:.9g},{:.9g}", c.latency_us,
                                                            c.bandwidth_gbps, c.price_us)
                                              : ",,";
    text +=
        fmt::format("{},{},{},{},{},{},{}\n", common, name_of(c.algorithm), name_of(c.protocol),
                    prices, taken ? "yes" : "no",
                    taken ? fmt::format("{},{}", e.kernel_channels, e.kernel_threads) : ",", c.out);
  }
  if (!e.plan) {
    text += fmt::format("{},,{},,,,yes,{},{},\n", common, name_of(e.transfer->protocol),
                        e.kernel_channels, e.kernel_threads);
  }
  return text;
}

}  // namespace foretrace::nccl
