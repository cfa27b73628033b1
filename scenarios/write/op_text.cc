#include "scenarios/write/op_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "scenarios/program/product_type.h"
#include "scenarios/read/nccl_fields.h"

namespace foretrace {
namespace {

std::string text_of(const Expr& expr) {
  if (expr.is_constant()) return std::to_string(expr.constant());
  std::vector<std::string> stack;
  for (const auto& [op, value] : expr.code()) {
    if (op == Expr::Op::Constant) {
      stack.push_back(std::to_string(value));
    } else if (op == Expr::Op::Variable && value == 0) {
      stack.emplace_back("process");
    } else if ((op == Expr::Op::Add || op == Expr::Op::Sub) && stack.size() == 2) {
      const std::string right = std::move(stack.back());
      stack.pop_back();
      stack.back() += (op == Expr::Op::Add ? " + " : " - ") + right;
    } else {
      throw std::logic_error{"an expression that no expansion has: " + expr.to_string()};
    }
  }
  return stack.front();
}

template <class Objects, class Tag>
const std::string& name_in(const Objects& objects, const Ref<Tag>& ref) {
  return objects.at(ref.first.value + static_cast<std::size_t>(ref.index.constant())).name;
}

class BlockText {
 public:
  BlockText(const Program& program, std::string& text, std::size_t margin)
      : program_{program}, text_{text}, margin_(margin, ' ') {}

  void append(const Block& block) {
    for (std::size_t i = 0; i < block.size();) i += append(block, i);
  }

 private:
  /// Returns how many operations of the block the line stands for.
  std::size_t append(const Block& block, std::size_t at) {
    const Op& op = block[at];
    if (op.lowered) return append_lowered(block, at);
    if (const Block* inner = block_of(op.kind)) {
      append_block(op, *inner);
      return 1;
    }
    begin(kind_name(op.kind), op.label);
    std::visit([this](const auto& kind) { keys(kind); }, op.kind);
    end();
    return 1;
  }

  void append_block(const Op& op, const Block& inner) {
    text_ += fmt::format("{}- {}:\n", margin_, kind_name(op.kind));
    const auto key = [this](std::string_view name, const auto& value) {
      text_ += fmt::format("{}    {}: {}\n", margin_, name, value);
    };
    if (const auto* repeat = std::get_if<Repeat>(&op.kind)) key("times", repeat->times);
    if (const auto* region = std::get_if<Region>(&op.kind)) {
      key("name", region->name);
      if (region->per != 1) key("per", region->per);
    }
    if (const auto* capture = std::get_if<GraphCapture>(&op.kind)) {
      key("graph", name_in(program_.graphs, capture->graph));
      key("stream", name_in(program_.streams, capture->stream));
    }
    text_ += fmt::format("{}    ops:\n", margin_);
    append_ops(text_, program_, inner, margin_.size() + 4);
  }

  // ---- a line -----------------------------------------------------------------------------------

  void begin(std::string_view name, std::string_view id) {
    text_ += fmt::format("{}- ", margin_);
    begin_map(name, id);
  }
  void begin_map(std::string_view name, std::string_view id) {
    text_ += fmt::format("{}: {{", name);
    is_first_ = true;
    if (!id.empty()) key("id", id);
  }
  void end() { text_ += "}\n"; }

  void key(std::string_view name, std::string_view value) {
    text_ += fmt::format("{}{}: {}", is_first_ ? "" : ", ", name, value);
    is_first_ = false;
  }
  void key(std::string_view name, const Expr& value) { key(name, text_of(value)); }
  void bytes(const BytesExpr& size) { key("size", text_of(size.expr) + "B"); }
  void number(std::string_view name, std::uint64_t value, std::uint64_t otherwise) {
    if (value != otherwise) key(name, std::to_string(value));
  }
  void number(std::string_view name, const Expr& value, std::int64_t otherwise) {
    if (value != Expr{otherwise}) key(name, value);
  }
  void stream(const StreamRef& ref) {
    if (ref != StreamRef{}) key("stream", name_in(program_.streams, ref));
  }
  void buffer(std::string_view name, const BufferRef& ref) {
    key(name, name_in(program_.buffers, ref));
  }
  void event(const EventRef& ref) { key("event", name_in(program_.events, ref)); }
  void type(DataType type) { key("type", type_word(type)); }
  void reduction(RedOp op) {
    if (op != RedOp::Sum) key("op", operator_word(op));
  }
  const std::string& communicator(const CommRef& ref) const {
    return program_.communicators.at(program_.comms.at(ref.first.value).communicator).name;
  }

  // ---- operations -------------------------------------------------------------------------------

  void keys(const Gemm& op) {
    key("m", op.m);
    key("n", op.n);
    key("k", op.k);
    number("batch", op.batch, 1);
    if (op.transpose_a) key("transpose_a", "true");
    if (op.transpose_b) key("transpose_b", "true");
    if (op.adds_to_c) key("beta", "1");
    type(op.type);
    if (op.tf32) key("compute", "tf32");
    if (op.scales != Scales::Tensor) key("scales", scales_word(op.scales));
    if (op.result) key("result", type_word(*op.result));
    buffer("a", op.a);
    buffer("b", op.b);
    buffer("c", op.c);
    stream(op.stream);
  }
  void keys(const LibraryKernel& op) {
    key("kernel", kernel_kind_name(op.kernel));
    number("flops", op.flops, 0);
    bytes(op.bytes);
    number("width", op.width, 0);
    if (op.kernel == KernelKind::Captured) shape(op.captured);
    stream(op.stream);
  }
  void shape(const CapturedShape& shape) {
    key("name", shape.name);
    if (shape.grid > 0) {
      key("grid", std::to_string(shape.grid));
      key("block", std::to_string(shape.block));
    }
    number("inner", shape.inner, 0);
    number("joined", shape.joined, 0);
    number("channels", shape.channels, 0);
  }
  void keys(const FrameworkCall& op) {
    key("work", framework_work_name(op.work));
    number("count", std::uint64_t{op.count}, 1);
    number("queries", std::uint64_t{op.queries}, 0);
    number("loop_us", std::uint64_t{op.loop_us}, 0);
  }
  void keys(const HostBarrier& op) {
    const std::string& name = program_.barriers.at(op.barrier.value).name;
    if (!name.empty()) key("name", name);
  }
  void keys(const DeviceSynchronize& op) { number("device", op.device, 0); }
  void keys(const MemcpyAsync& op) {
    buffer("src", op.src);
    buffer("dst", op.dst);
    bytes(op.size);
    stream(op.stream);
  }
  void keys(const MemsetAsync& op) {
    buffer("dst", op.dst);
    bytes(op.size);
    stream(op.stream);
  }
  void keys(const EventRecord& op) {
    event(op.event);
    stream(op.stream);
  }
  void keys(const StreamWaitEvent& op) {
    event(op.event);
    stream(op.stream);
  }
  void keys(const EventSynchronize& op) { event(op.event); }
  void keys(const EventQuery& op) { event(op.event); }
  void keys(const StreamSynchronize& op) { key("stream", name_in(program_.streams, op.stream)); }
  void keys(const StreamQuery& op) { key("stream", name_in(program_.streams, op.stream)); }
  void keys(const GraphLaunch& op) {
    key("graph", name_in(program_.graphs, op.graph));
    stream(op.stream);
  }
  void keys(const NcclCollective& op) {
    key("comm", communicator(op.comm));
    collective(op, "send_buffer", "recv_buffer");
    stream(op.stream);
  }
  void collective(const NcclCollective& op, std::string_view send, std::string_view recv) {
    if (op.send == op.recv) {
      buffer("buffer", op.send);
    } else {
      buffer(send, op.send);
      buffer(recv, op.recv);
    }
    bytes(op.size);
    type(op.type);
    reduction(op.op);
    if (has_root(op.kind)) key("root", op.root);
  }
  void keys(const NcclSend& op) { transfer(op); }
  void keys(const NcclRecv& op) { transfer(op); }
  template <class Transfer>
  void transfer(const Transfer& op) {
    key("comm", communicator(op.comm));
    key("peer", op.peer);
    buffer("buffer", op.buffer);
    bytes(op.size);
    type(op.type);
    stream(op.stream);
  }
  template <class Other>
  void keys(const Other& other) {
    throw std::logic_error{"an operation that no expansion has: " + kind_name(OpKind{other})};
  }

  // ---- calls that read as several operations ----------------------------------------------------

  std::size_t append_lowered(const Block& block, std::size_t at) {
    if (const auto* wait = std::get_if<StreamWaitEvent>(&block[at].kind)) {
      const std::string& work = name_in(program_.events, wait->event);
      begin("work_wait", block[at].label == work ? "" : block[at].label);
      key("work", work);
      stream(wait->stream);
      end();
      return 1;
    }
    if (const auto* copy = std::get_if<MemcpyAsync>(&block[at].kind)) {  // and stream_synchronize
      begin("read_scalar", block[at].label);
      buffer("src", copy->src);
      stream(copy->stream);
      end();
      return 2;
    }
    return append_group_call(block, at);
  }

  /// The group's stream waits for the current one, does its work, and records that; unless the call
  /// is asynchronous, the current stream waits for it.
  std::size_t append_group_call(const Block& block, std::size_t at) {
    const auto& ready = std::get<EventRecord>(block.at(at).kind);
    const Op& work = block.at(at + 2);
    const std::string& done =
        name_in(program_.events, std::get<EventRecord>(block.at(at + 3).kind).event);
    const bool is_async = done.find('.') == std::string::npos;
    if (const auto* batch = std::get_if<NcclGroup>(&work.kind)) {
      append_batch(*batch, done, ready.stream);
      return 4;
    }
    const auto& op = std::get<NcclCollective>(work.kind);
    begin(kind_name(work.kind).substr(std::string_view{"nccl_"}.size()), work.label);
    stream(ready.stream);
    key("group", communicator(op.comm));
    collective(op, "input", "output");
    if (is_async) {
      key("async", "true");
      key("work", done);
    }
    end();
    return is_async ? 4 : 5;
  }

  void append_batch(const NcclGroup& batch, std::string_view work, const StreamRef& current) {
    begin("batch_isend_irecv", {});
    key("group",
        std::visit([this](const auto& one) { return group_of(one); }, batch.ops.front().kind));
    key("work", work);
    stream(current);
    std::string_view separator = ", ops: [";
    for (const Op& op : batch.ops) {
      const auto* send = std::get_if<NcclSend>(&op.kind);
      text_ += separator;
      text_ += '{';
      begin_map(send != nullptr ? "isend" : "irecv", op.label);
      send != nullptr ? batched(*send) : batched(std::get<NcclRecv>(op.kind));
      text_ += "}}";
      separator = ", ";
    }
    text_ += ']';
    end();
  }
  template <class Kind>
  std::string group_of(const Kind& op) const {
    if constexpr (requires { op.comm; }) return communicator(op.comm);
    return {};
  }
  template <class Transfer>
  void batched(const Transfer& op) {
    buffer("buffer", op.buffer);
    bytes(op.size);
    type(op.type);
    constexpr bool kSends = std::is_same_v<Transfer, NcclSend>;
    const std::size_t ranks =
        program_.communicators.at(program_.comms.at(op.comm.first.value).communicator)
            .members.size();
    // The group numbers its ranks as the whole program does.
    const bool is_whole = ranks == std::size_t{program_.processes} * program_.devices;
    key(!is_whole ? "peer" : kSends ? "dst" : "src", op.peer);
  }

  const Program& program_;
  std::string& text_;
  std::string margin_;
  bool is_first_ = true;
};

}  // namespace

void append_ops(std::string& text, const Program& program, const Block& block, std::size_t margin) {
  BlockText{program, text, margin}.append(block);
}

}  // namespace foretrace
