#include "scenarios/captured/calls_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string_view>
#include <utility>

#include "scenarios/captured/kernel_name.h"
#include "scenarios/captured/work.h"
#include "scenarios/text/errors.h"

namespace foretrace::captured {
namespace {

std::string stream_name(const Call& call) {
  return call.stream == 0 ? "default(0)" : fmt::format("s{}", call.stream);
}

std::string_view product_type(const std::string& type) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kTypes{{
      {"bf16", "bfloat16"}, {"f16", "float16"}, {"f32", "float32"}, {"f64", "float64"}}};
  for (const auto& [ours, language] : kTypes) {
    if (type == ours) return language;
  }
  return {};
}

std::string_view collective_type(const std::string& type) {
  if (const auto found = product_type(type); !found.empty()) return found;
  const std::int64_t bytes = bytes_of_type(type);
  return bytes == 8 ? "int64" : bytes == 4 ? "int32" : bytes == 2 ? "bfloat16" : "int8";
}

/// Calls that PyTorch asks CUDA for its device before.
bool asks(const Call& call) {
  const std::string& kind = call.kind;
  return kind == "launch" || kind == "gemm" || kind == "lib" || kind == "copy" || kind == "memset";
}

std::string numbers_of(const CapturedShape& shape) {
  std::string text;
  if (shape.grid > 0) text += fmt::format(", grid: {}, block: {}", shape.grid, shape.block);
  if (shape.inner > 0) text += fmt::format(", inner: {}", shape.inner);
  if (shape.joined > 0) text += fmt::format(", joined: {}", shape.joined);
  if (shape.channels > 0) text += fmt::format(", channels: {}", shape.channels);
  return text;
}

}  // namespace

void CallsText::line(const std::string& text) { text_ += margin_ + "- " + text + "\n"; }

/// Inside a group NCCL's calls begin at its end: what else is called there comes before them.
void CallsText::nccl_line(const std::string& text) {
  if (groups_open_ == 0) return line(text);
  grouped_ += margin_ + "    - " + text + "\n";
}

void CallsText::group(const Call& call) {
  if (!call.ends) {
    ++groups_open_;
    return;
  }
  if (groups_open_ > 0) --groups_open_;
  if (groups_open_ > 0 || grouped_.empty()) return;
  text_ += fmt::format("{0}- nccl_group:\n{0}    ops:\n{1}", margin_, grouped_);
  grouped_.clear();
}

/// Host work since the last call, in millionths of the capture's own reference loop.
void CallsText::host_work(std::int64_t until) {
  const double loop = record_.torch_loop_ns > 0 ? record_.torch_loop_ns : record_.python_loop_ns;
  if (until <= at_ || loop <= 0) return;
  const double own = static_cast<double>(until - at_) * record_.own_share;
  const auto count = std::llround(own / loop * 1e6);
  if (count < 1) return;
  const auto queries = std::llround(std::floor(queries_));
  queries_ -= static_cast<double>(queries);
  constexpr long long kMostOfACall = 4'000'000'000;
  std::string asked = queries > 0 ? fmt::format(", queries: {}", queries) : "";
  for (auto left = count; left > 0; left -= std::min(left, kMostOfACall)) {
    line(fmt::format("framework_call: {{work: captured, count: {}{}}}", std::min(left, kMostOfACall), std::exchange(asked, {})));
  }
  at_ = until;
}

const Signature* CallsText::signature(const Call& call) const {
  if (!call.operation) return nullptr;
  return &record_.signatures[record_.operations[*call.operation].signature];
}

std::string CallsText::label(const Call& call) const {
  const Signature* made_by = signature(call);
  return made_by != nullptr ? operation_word(made_by->name) : call.kind;
}

std::string CallsText::on(const Call& call) {
  if (call.stream == 0) return {};
  const auto known = record_.streams.find(call.stream);
  named_.streams[call.stream] = known == record_.streams.end() ? 0 : known->second.priority;
  return fmt::format(", stream: s{}", call.stream);
}

CallsText::CallsText(const Party& party, Named& named)
    : party_{party}, record_{*party.record}, named_{named} {
  for (const Call& call : record_.calls) {
    if (call.kind == "launch" && call.operation) blocks_[{*call.operation, call.name}] += call.grid;
    if (asks(call)) ++asking_;
  }
}

double CallsText::share_of(const Call& call) const {
  if (!call.operation) return 1;
  const std::uint64_t all = blocks_.at({*call.operation, call.name});
  return all == 0 ? 1 : static_cast<double>(call.grid) / static_cast<double>(all);
}

void CallsText::launch(const Call& call) {
  Work work;
  const Signature* made_by = signature(call);
  if (made_by != nullptr) work = work_of(*made_by, call.grid * call.block);
  work.shape.name = kernel_word(record_.names[call.name]);
  work.shape.grid = call.grid;
  work.shape.block = call.block;
  if (family_of(work.shape.name) == "multi_tensor_apply_kernel") {
    work.bytes = std::llround(static_cast<double>(work.bytes) * share_of(call));
    work.shape.inner = work.shape.joined = work.shape.channels = 0;
  }
  kernel(call, work);
}

void CallsText::kernel(const Call& call, const Work& work) {
  const std::string flops = work.flops > 0 ? fmt::format("flops: {}, ", work.flops) : "";
  line(fmt::format("library_kernel: {{id: {}, kernel: captured, {}size: {}B, name: {}{}{}}}", label(call), flops, std::max<std::int64_t>(work.bytes, 1),
                   work.shape.name, numbers_of(work.shape), on(call)));
}

void CallsText::closed(const Call& call) {
  const Signature* made_by = signature(call);
  if (made_by == nullptr) {
    ++named_.left_out["calls of closed libraries outside of operations"];
    return;
  }
  line("framework_call: {work: captured_library}");
  if (!closed_.insert(*call.operation).second) return;  // its first call stands for all of it
  kernel(call, closed_work_of(*made_by));
}

/// The language has no product in TF32: a captured kernel, whose table has some.
void CallsText::tf32_product(const Call& call) {
  constexpr std::int64_t kFloat = 4;
  const std::int64_t bytes = kFloat * call.batch * (call.m * call.k + call.k * call.n + call.m * call.n);
  const CapturedShape shape{.name = fmt::format("product.tf32_{}{}", call.transposes_a ? 't' : 'n', call.transposes_b ? 't' : 'n'),
                            .grid = static_cast<std::uint64_t>(call.m * call.batch),
                            .block = 0,
                            .inner = static_cast<std::uint64_t>(call.k),
                            .joined = 0,
                            .channels = static_cast<std::uint64_t>(call.n)};
  line(fmt::format("library_kernel: {{id: {}, kernel: captured, flops: {}, size: {}B, name: {}{}{}}}", label(call),
                   2 * call.batch * call.m * call.n * call.k, bytes, shape.name, numbers_of(shape), on(call)));
}

void CallsText::gemm(const Call& call) {
  const std::string_view type = product_type(call.type);
  if (type.empty()) {
    ++named_.left_out[fmt::format("products of {}", call.type)];
    return;
  }
  line("framework_call: {work: captured_product}");
  if (call.compute == "tf32") return tf32_product(call);
  const std::int64_t width = bytes_of_type(call.type);
  const std::int64_t largest = std::max({call.m * call.k, call.k * call.n, call.m * call.n}) * call.batch * width;
  named_.operand = std::max(named_.operand, largest);
  line(fmt::format("gemm: {{id: {}, m: {}, n: {}, k: {}{}{}{}{}, type: {}, a: operand_a, b: operand_b, c: result{}}}", label(call),
                   call.m, call.n, call.k, call.batch > 1 ? fmt::format(", batch: {}", call.batch) : "",
                   call.transposes_a ? ", transpose_a: true" : "", call.transposes_b ? ", transpose_b: true" : "",
                   call.adds ? ", beta: 1" : "", type, on(call)));
}

void CallsText::copy(const Call& call) {
  const auto bytes = std::max<std::int64_t>(1, static_cast<std::int64_t>(call.count));
  const bool to_host = call.function == "d2h", from_host = call.function == "h2d";
  if (call.function == "h2h" || call.function == "p2p") {
    ++named_.left_out[call.function + " copies"];
    return;
  }
  const std::string host = call.pinned ? "pinned" : "pageable";
  std::string from = "copied", to = "copy";
  if (to_host || from_host) {
    named_.host = std::max(named_.host, bytes);
    (to_host ? to : from) = host;
  }
  named_.device = std::max(named_.device, bytes);
  line(fmt::format("memcpy_async: {{id: {}, src: {}, dst: {}, size: {}B{}}}", label(call), from, to, bytes, on(call)));
  if (!call.asynchronous && call.function != "d2d") {
    line(fmt::format("stream_synchronize: {{stream: {}}}", stream_name(call)));
  }
}

void CallsText::collective(const Call& call) {
  const std::int64_t bytes = std::max<std::int64_t>(1, static_cast<std::int64_t>(call.count)) * bytes_of_type(call.type);
  const Communicator& comm = record_.comms.at(call.comm);
  const std::string& name = party_.comm_names.at(call.comm);
  const std::string stream = on(call);
  const std::string_view type = collective_type(call.type);
  if (call.function == "send" || call.function == "recv") {
    if (party_.stands_for_others) {
      throw UsageError{fmt::format(
          "{}:{}: error: a {} has one peer, and this record stands for other ranks too\n  hint: capture "
          "every rank that sends or receives (--ranks)",
          record_.file, call.line, call.function)};
    }
    named_.part = std::max(named_.part, bytes);
    nccl_line(fmt::format("nccl_{}: {{id: {}, comm: {}, peer: {}, buffer: part, size: {}B, type: {}{}}}", call.function, label(call), name,
                     call.peer.value_or(0), bytes, type, stream));
    return;
  }
  named_.part = std::max(named_.part, bytes);
  named_.whole = std::max(named_.whole, bytes * comm.size);
  const bool gives_whole = call.function == "reduce_scatter" || call.function == "scatter";
  const bool gets_whole = call.function == "all_gather" || call.function == "gather";
  const bool both_whole = call.function == "all_to_all";
  const bool reduces = call.function.find("reduce") != std::string::npos;
  const bool is_scaled = call.reduction == "premulsum";
  if (is_scaled) ++named_.left_out["factors of reductions (premulsum): simulated as sums"];
  const std::string op = is_scaled ? "sum" : call.reduction;
  nccl_line(fmt::format("nccl_{}: {{id: {}, comm: {}, send_buffer: {}, recv_buffer: {}, size: {}B, type: {}{}{}{}}}", call.function, label(call), name,
                   gives_whole || both_whole ? "whole" : "part", gets_whole ? "gathered" : both_whole ? "gathered" : "own", bytes, type,
                   reduces ? ", op: " + op : "", call.root ? fmt::format(", root: {}", *call.root) : "", stream));
}

void CallsText::synchronize(const Call& call) {
  const std::string& what = call.function;
  if (what == "device") return line("device_synchronize: {}");
  if (what == "event") {
    named_.events.insert(call.event);
    return line(fmt::format("event_synchronize: {{event: e{}}}", call.event));
  }
  static_cast<void>(on(call));
  line(fmt::format("stream_synchronize: {{stream: {}}}", stream_name(call)));
}

void CallsText::write(const Call& call) {
  const std::string& kind = call.kind;
  if (kind == "launch") return launch(call);
  if (kind == "gemm") return gemm(call);
  if (kind == "lib") return closed(call);
  if (kind == "copy") return copy(call);
  if (kind == "coll") return collective(call);
  if (kind == "sync") return synchronize(call);
  if (kind == "memset") {
    const auto bytes = std::max<std::int64_t>(1, static_cast<std::int64_t>(call.count));
    named_.device = std::max(named_.device, bytes);
    return line(fmt::format("memset_async: {{id: {}, dst: copy, size: {}B{}}}", label(call), bytes, on(call)));
  }
  if (kind == "record" || kind == "wait") {
    named_.events.insert(call.event);
    return line(fmt::format("{}: {{event: e{}{}}}", kind == "record" ? "event_record" : "stream_wait_event", call.event, on(call)));
  }
  if (kind == "query" && call.function == "event") {
    named_.events.insert(call.event);
    return line(fmt::format("event_query: {{event: e{}}}", call.event));
  }
  if (kind == "graph_launch") {
    named_.graphs.insert(call.graph);
    return line(fmt::format("graph_launch: {{graph: g{}{}}}", call.graph, on(call)));
  }
  if (kind == "query") {
    static_cast<void>(on(call));
    return line(fmt::format("stream_query: {{stream: {}}}", stream_name(call)));
  }
  if (kind == "group") return group(call);
  // What the host read is among the record's assumptions; graphs are written before the region.
  const bool is_said = kind == "begin" || kind == "end" || kind == "host_read" || kind == "graph";
  if (!is_said) ++named_.left_out[kind == "call" ? "calls of CUDA without work for the GPU" : kind];
}

std::string CallsText::step(int indent) {
  margin_.assign(static_cast<std::size_t>(indent), ' ');
  text_.clear();
  at_ = 0;
  for (const Call& call : record_.calls) {
    if (call.at < 0 || call.in_graph) {
      if (call.kind != "graph_launch" || call.at < 0) continue;
    }
    if (asks(call)) queries_ += static_cast<double>(record_.queries) / static_cast<double>(asking_);
    host_work(call.at);
    write(call);
  }
  return std::move(text_);
}

std::string CallsText::graphs(int indent) {
  std::map<std::uint32_t, std::vector<const Call*>> captured;
  for (const Call& call : record_.calls) {
    if (call.in_graph && call.kind != "graph" && call.kind != "graph_launch") captured[call.graph].push_back(&call);
  }
  std::string all;
  for (const auto& [graph, calls] : captured) {
    named_.graphs.insert(graph);
    const std::uint32_t origin = calls.front()->stream;
    margin_.assign(static_cast<std::size_t>(indent), ' ');
    text_.clear();
    static_cast<void>(on(*calls.front()));
    all += margin_ + fmt::format("- graph_capture:\n{0}    graph: g{1}\n{0}    stream: {2}\n{0}    ops:\n", margin_, graph,
                                 origin == 0 ? "default(0)" : fmt::format("s{}", origin));
    margin_ += "      ";
    for (const Call* call : calls) write(*call);
    all += text_;
  }
  return all;
}

}  // namespace foretrace::captured
