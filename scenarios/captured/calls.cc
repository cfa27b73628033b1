#include "scenarios/captured/calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "scenarios/base/text/errors.h"
#include "scenarios/captured/kernel_name.h"
#include "scenarios/captured/work.h"
#include "scenarios/program/product_type.h"

namespace foretrace::captured {
namespace {

std::optional<DataType> product_type(const std::string& type) {
  constexpr std::array<std::pair<std::string_view, DataType>, 8> kTypes{
      {{"bf16", DataType::BFloat16},
       {"f16", DataType::Float16},
       {"f32", DataType::Float32},
       {"f64", DataType::Float64},
       {"i8", DataType::Int8},
       {"f8e4m3", DataType::Float8E4M3},
       {"f8e5m2", DataType::Float8E5M2},
       {"f4e2m1", DataType::Float4E2M1}}};
  for (const auto& [ours, language] : kTypes) {
    if (type == ours) return language;
  }
  return std::nullopt;
}

DataType collective_type(const std::string& type) {
  const auto found = product_type(type);
  if (found && !is_narrow(*found)) return *found;
  const std::int64_t bytes = bytes_of_type(type);
  return bytes == 8   ? DataType::Int64
         : bytes == 4 ? DataType::Int32
         : bytes == 2 ? DataType::BFloat16
                      : DataType::Int8;
}

CollectiveKind collective_kind(const std::string& function) {
  using enum CollectiveKind;
  constexpr std::array<std::pair<std::string_view, CollectiveKind>, 8> kKinds{
      {{"all_reduce", AllReduce},
       {"broadcast", Broadcast},
       {"reduce", Reduce},
       {"all_gather", AllGather},
       {"reduce_scatter", ReduceScatter},
       {"all_to_all", AllToAll},
       {"gather", Gather},
       {"scatter", Scatter}}};
  const auto found = std::ranges::find(kKinds, function, [](const auto& one) { return one.first; });
  FORETRACE_CHECK(found != kKinds.end(), "the record's reader knows NCCL's collectives");
  return found->second;
}

RedOp reduction_of(const std::string& word) {
  return word == "prod"  ? RedOp::Prod
         : word == "min" ? RedOp::Min
         : word == "max" ? RedOp::Max
         : word == "avg" ? RedOp::Avg
                         : RedOp::Sum;
}

/// Calls that PyTorch asks CUDA for its device before.
bool asks(const Call& call) {
  const std::string& kind = call.kind;
  return kind == "launch" || kind == "gemm" || kind == "lib" || kind == "copy" || kind == "memset";
}

}  // namespace

void Calls::add(OpKind kind, std::string label) {
  objects_.add(*block_, std::move(kind), std::move(label));
}

/// Inside a group NCCL's calls begin at its end: what else is called there comes before them.
void Calls::add_nccl(OpKind kind, std::string label) {
  if (groups_open_ == 0) return add(std::move(kind), std::move(label));
  grouped_.emplace_back(std::move(kind), std::move(label));
}

void Calls::group(const Call& call) {
  if (!call.ends) {
    ++groups_open_;
    return;
  }
  if (groups_open_ > 0) --groups_open_;
  if (groups_open_ > 0 || grouped_.empty()) return;
  Block& inner = std::get<NcclGroup>(objects_.add(*block_, NcclGroup{}).kind).ops;
  for (auto& [kind, label] : grouped_) objects_.add(inner, std::move(kind), std::move(label));
  grouped_.clear();
}

/// Host work since the last call, in millionths of the capture's own reference loop.
void Calls::host_work(std::int64_t until) {
  const double loop = record_.torch_loop_ns > 0 ? record_.torch_loop_ns : record_.python_loop_ns;
  if (until <= at_ || loop <= 0) return;
  const double own = static_cast<double>(until - at_) * record_.own_share;
  const std::int64_t count = std::llround(own / loop * 1e6);
  if (count < 1) return;
  auto asked = static_cast<std::uint32_t>(std::llround(std::floor(queries_)));
  queries_ -= static_cast<double>(asked);
  constexpr std::int64_t kMostOfACall = 4'000'000'000;
  constexpr double kMostOfALoop = 4e9;  // us
  const auto loop_us = static_cast<std::uint32_t>(
      std::clamp(record_.torch_loop_ns / 1e3, 0.0, kMostOfALoop));  // the machine's is that loop
  for (std::int64_t left = count; left > 0; left -= std::min(left, kMostOfACall)) {
    add(FrameworkCall{FrameworkWork::Captured,
                      static_cast<std::uint32_t>(std::min(left, kMostOfACall)),
                      std::exchange(asked, 0), loop_us});
  }
  at_ = until;
}

const Signature* Calls::signature(const Call& call) const {
  if (!call.operation) return nullptr;
  return &record_.signatures[record_.operations[*call.operation].signature];
}

std::string Calls::label(const Call& call) const {
  const Signature* made_by = signature(call);
  return made_by != nullptr ? operation_word(made_by->name) : call.kind;
}

StreamRef Calls::stream_of(const Call& call) {
  const auto known = record_.streams.find(call.stream);
  const std::int64_t priority = known == record_.streams.end() ? 0 : known->second.priority;
  return objects_.stream(call.stream, static_cast<int>(priority));
}

Calls::Calls(const Party& party, Objects& objects)
    : party_{party}, record_{*party.record}, objects_{objects} {
  for (const Call& call : record_.calls) {
    if (call.kind == "launch" && call.operation) blocks_[{*call.operation, call.name}] += call.grid;
    if (asks(call)) ++asking_;
  }
}

double Calls::share_of(const Call& call) const {
  if (!call.operation) return 1;
  const std::uint64_t all = blocks_.at({*call.operation, call.name});
  return all == 0 ? 1 : static_cast<double>(call.grid) / static_cast<double>(all);
}

void Calls::launch(const Call& call) {
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

void Calls::kernel(const Call& call, const Work& work) {
  add(LibraryKernel{stream_of(call),
                    KernelKind::Captured,
                    work.flops,
                    {std::max<std::int64_t>(work.bytes, 1)},
                    {},
                    work.shape},
      label(call));
}

void Calls::closed(const Call& call) {
  const Signature* made_by = signature(call);
  if (made_by == nullptr) {
    ++objects_.left_out["calls of closed libraries outside of operations"];
    return;
  }
  add(FrameworkCall{FrameworkWork::CapturedLibrary});
  if (!closed_.insert(*call.operation).second) return;  // its first call stands for all of it
  kernel(call, closed_work_of(*made_by));
}

/// The language has no product in TF32: a captured kernel, whose table has some.
void Calls::tf32_product(const Call& call) {
  constexpr std::int64_t kFloat = 4;
  const std::int64_t bytes =
      kFloat * call.batch * (call.m * call.k + call.k * call.n + call.m * call.n);
  const CapturedShape shape{.name = fmt::format("product.tf32_{}{}", call.transposes_a ? 't' : 'n',
                                                call.transposes_b ? 't' : 'n'),
                            .grid = static_cast<std::uint64_t>(call.m * call.batch),
                            .block = 0,
                            .inner = static_cast<std::uint64_t>(call.k),
                            .joined = 0,
                            .channels = static_cast<std::uint64_t>(call.n)};
  add(LibraryKernel{stream_of(call),
                    KernelKind::Captured,
                    2 * call.batch * call.m * call.n * call.k,
                    {bytes},
                    {},
                    shape},
      label(call));
}

void Calls::gemm(const Call& call) {
  const std::optional<DataType> type = product_type(call.type);
  if (!type) {
    ++objects_.left_out[fmt::format("products of {}", call.type)];
    return;
  }
  add(FrameworkCall{FrameworkWork::CapturedProduct});
  if (call.compute == "tf32") return tf32_product(call);
  const DataType result = product_type(call.result).value_or(result_of(*type));
  const auto width =
      static_cast<std::int64_t>(std::max(size_of(*type).count, size_of(result).count));
  const std::int64_t largest =
      std::max({call.m * call.k, call.k * call.n, call.m * call.n}) * call.batch * width;
  objects_.operand = std::max(objects_.operand, largest);
  add(Gemm{.stream = stream_of(call),
           .m = call.m,
           .n = call.n,
           .k = call.k,
           .type = *type,
           .a = objects_.buffer("operand_a"),
           .b = objects_.buffer("operand_b"),
           .c = objects_.buffer("result"),
           .transpose_a = call.transposes_a,
           .transpose_b = call.transposes_b,
           .batch = std::max<std::int64_t>(1, call.batch),
           .adds_to_c = call.adds,
           .result = result != result_of(*type) && makes(*type, result) ? std::optional{result}
                                                                        : std::nullopt,
           .scales = *type == DataType::Float4E2M1 ? Scales::Nv : Scales::Tensor},
      label(call));
}

void Calls::copy(const Call& call) {
  const auto bytes = std::max<std::int64_t>(1, static_cast<std::int64_t>(call.count));
  const bool to_host = call.function == "d2h", from_host = call.function == "h2d";
  if (call.function == "h2h" || call.function == "p2p") {
    ++objects_.left_out[call.function + " copies"];
    return;
  }
  const std::string host = call.pinned ? "pinned" : "pageable";
  std::string from = "copied", to = "copy";
  if (to_host || from_host) {
    objects_.host = std::max(objects_.host, bytes);
    (to_host ? to : from) = host;
  }
  objects_.device = std::max(objects_.device, bytes);
  const StreamRef stream = stream_of(call);
  add(MemcpyAsync{stream, objects_.buffer(from), objects_.buffer(to), {}, {}, {bytes}},
      label(call));
  if (!call.asynchronous && call.function != "d2d") add(StreamSynchronize{stream});
}

void Calls::collective(const Call& call) {
  const std::int64_t bytes =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(call.count)) * bytes_of_type(call.type);
  const Communicator& comm = record_.comms.at(call.comm);
  const std::string& name = party_.comm_names.at(call.comm);
  const StreamRef stream = stream_of(call);
  const DataType type = collective_type(call.type);
  if (call.function == "send" || call.function == "recv") {
    if (party_.stands_for_others) {
      throw UsageError{
          fmt::format("{}:{}: error: a {} has one peer, and this record stands for other ranks "
                      "too\n  hint: capture "
                      "every rank that sends or receives (--ranks)",
                      record_.file, call.line, call.function)};
    }
    objects_.part = std::max(objects_.part, bytes);
    const auto add_one = [&]<class Transfer>(Transfer transfer) {
      transfer = {objects_.comm(name),  stream, objects_.buffer("part"), {bytes}, type,
                  call.peer.value_or(0)};
      add_nccl(std::move(transfer), label(call));
    };
    return call.function == "send" ? add_one(NcclSend{}) : add_one(NcclRecv{});
  }
  objects_.part = std::max(objects_.part, bytes);
  objects_.whole = std::max(objects_.whole, bytes * comm.size);
  const bool gives_whole = call.function == "reduce_scatter" || call.function == "scatter";
  const bool gets_whole = call.function == "all_gather" || call.function == "gather";
  const bool both_whole = call.function == "all_to_all";
  const bool reduces = call.function.find("reduce") != std::string::npos;
  const bool is_scaled = call.reduction == "premulsum";
  if (is_scaled) ++objects_.left_out["factors of reductions (premulsum): simulated as sums"];
  add_nccl(NcclCollective{.kind = collective_kind(call.function),
                          .comm = objects_.comm(name),
                          .stream = stream,
                          .send = objects_.buffer(gives_whole || both_whole ? "whole" : "part"),
                          .recv = objects_.buffer(gets_whole || both_whole ? "gathered" : "own"),
                          .size = {bytes},
                          .type = type,
                          .op = reduces && !is_scaled ? reduction_of(call.reduction) : RedOp::Sum,
                          .root = call.root.value_or(0)},
           label(call));
}

void Calls::synchronize(const Call& call) {
  const std::string& what = call.function;
  if (what == "device") return add(DeviceSynchronize{});
  if (what == "event") return add(EventSynchronize{objects_.event(call.event)});
  add(StreamSynchronize{stream_of(call)});
}

void Calls::write(const Call& call) {
  const std::string& kind = call.kind;
  if (kind == "launch") return launch(call);
  if (kind == "gemm") return gemm(call);
  if (kind == "lib") return closed(call);
  if (kind == "copy") return copy(call);
  if (kind == "coll") return collective(call);
  if (kind == "sync") return synchronize(call);
  if (kind == "memset") {
    const auto bytes = std::max<std::int64_t>(1, static_cast<std::int64_t>(call.count));
    objects_.device = std::max(objects_.device, bytes);
    return add(MemsetAsync{stream_of(call), objects_.buffer("copy"), {bytes}}, label(call));
  }
  if (kind == "record") return add(EventRecord{objects_.event(call.event), stream_of(call)});
  if (kind == "wait") return add(StreamWaitEvent{stream_of(call), objects_.event(call.event)});
  if (kind == "query" && call.function == "event") {
    return add(EventQuery{objects_.event(call.event)});
  }
  if (kind == "graph_launch") return add(GraphLaunch{objects_.graph(call.graph), stream_of(call)});
  if (kind == "query") return add(StreamQuery{stream_of(call)});
  if (kind == "group") return group(call);
  // What the host read is among the record's assumptions; graphs are written before the region.
  const bool is_said = kind == "begin" || kind == "end" || kind == "host_read" || kind == "graph";
  if (!is_said)
    ++objects_.left_out[kind == "call" ? "calls of CUDA without work for the GPU" : kind];
}

void Calls::step(Block& block) {
  block_ = &block;
  at_ = 0;
  for (const Call& call : record_.calls) {
    if (call.at < 0 || call.in_graph) {
      if (call.kind != "graph_launch" || call.at < 0) continue;
    }
    if (asks(call)) queries_ += static_cast<double>(record_.queries) / static_cast<double>(asking_);
    host_work(call.at);
    write(call);
  }
}

void Calls::graphs(Block& block) {
  std::map<std::uint32_t, std::vector<const Call*>> captured;
  for (const Call& call : record_.calls) {
    if (call.in_graph && call.kind != "graph" && call.kind != "graph_launch") {
      captured[call.graph].push_back(&call);
    }
  }
  for (const auto& [graph, calls] : captured) {
    GraphCapture capture{objects_.graph(graph), stream_of(*calls.front()), {}};
    block_ = &std::get<GraphCapture>(objects_.add(block, std::move(capture)).kind).ops;
    for (const Call* call : calls) write(*call);
  }
}

}  // namespace foretrace::captured
