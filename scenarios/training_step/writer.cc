#include "scenarios/training_step/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace foretrace::training {

void Writer::add(OpKind kind, std::string_view label) {
  if (!writes()) return;
  program_->add(*block_, std::move(kind), std::string{label});
  note();
}

void Writer::begin_section(std::int64_t calls) {
  ++now_.group;
  sections_.push_back({now_.op, now_.group, calls});
}

void Writer::inside(OpKind kind, const std::function<void()>& write) {
  if (!writes()) return write();
  Block* const outer = block_;
  Op& op = program_->add(*block_, std::move(kind));
  block_ = const_cast<Block*>(block_of(op.kind));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  note();
  write();
  block_ = outer;
}

void Writer::repeat(std::int64_t times, std::int64_t calls, const std::function<void()>& write) {
  if (times < 1) return;
  const auto body = [&] {
    if (calls > 1) begin_section(calls);
    const std::int64_t first = now_.op;
    write();
    for (std::int64_t call = 1; call < calls; ++call) write_again(first, write);
    if (calls > 1) begin_section(1);
  };
  if (times == 1) return body();
  inside(Repeat{static_cast<std::uint64_t>(times), {}}, body);
}

/// Operations that are there already, from `first` on: memory is followed through them anew.
void Writer::write_again(std::int64_t first, const std::function<void()>& write) {
  Block nobody;
  Block* const kept = std::exchange(block_, &nobody);
  ++now_.group;
  if (program_ != nullptr) {
    program_->program().op_count = static_cast<std::uint32_t>(first);
    note();
  }
  write();
  block_ = kept;
}

void Writer::product(std::string_view id, std::int64_t m, std::int64_t n, std::int64_t k,
                     Turned turned) {
  constexpr std::int64_t kBytes = 2;
  largest_operand_ = std::max({largest_operand_, kBytes * m * k, kBytes * k * n, kBytes * m * n});
  if (!writes()) return;
  add(Gemm{.stream = program_->stream(stream_),
           .m = m,
           .n = n,
           .k = k,
           .type = type_,
           .a = program_->buffer("operand_a"),
           .b = program_->buffer("operand_b"),
           .c = program_->buffer("result"),
           .transpose_a = turned == Turned::A,
           .transpose_b = turned == Turned::B,
           .scales = scales_},
      id);
}

void Writer::attention(std::string_view id, KernelKind kind, std::int64_t flops, std::int64_t bytes,
                       std::int64_t width) {
  if (!writes()) return;
  add(LibraryKernel{program_->stream(stream_), kind, flops, {bytes}, width}, id);
}

void Writer::host(FrameworkWork work, std::int64_t count) {
  if (count > 0) add(FrameworkCall{work, static_cast<std::uint32_t>(count)});
}

std::string Writer::group(std::string_view name) const {
  const auto found = groups_.find(name);
  return found == groups_.end() ? std::string{name} : found->second;
}

void Writer::needs(std::int64_t input, std::int64_t output) {
  largest_input_ = std::max(largest_input_, input);
  largest_output_ = std::max(largest_output_, output);
}

void Writer::collective(const GroupCollective& one) {
  if (!writes()) return;
  GroupCall call = program_->call(one.group, name_, one.stream);
  const BufferRef input = program_->buffer(one.input), output = program_->buffer(one.output);
  if (!one.work.empty()) {
    call.is_async = true;
    call.done = program_->work(one.work);
  }
  Lowering out = program_->lowering(*block_, name_, std::string{one.id});
  begin_call(false, call, out);
  out.add(NcclCollective{.kind = one.kind,
                         .comm = call.comm,
                         .stream = call.internal,
                         .send = input,
                         .recv = output,
                         .size = {one.bytes},
                         .type = one.type,
                         .op = one.op,
                         .root = {}},
          out.label());
  end_call(call, out);
  note();
}

void Writer::collective(std::string_view name, std::string_view group, std::int64_t bytes,
                        std::string_view work) {
  host(FrameworkWork::Collective);
  const std::string id = fmt::format("{}_{}", group, name), own = this->group(group);
  GroupCollective call{.id = id, .group = own, .input = "part", .output = "part", .bytes = bytes};
  if (name == "all_reduce") {
    needs(bytes, 0);
    return collective(call);
  }
  const bool gathers = name == "all_gather";
  std::string_view part = "part", whole = "whole";
  if (work.empty()) {
    needs(bytes, bytes * tensor_);
  } else {
    part = "tensor_part";
    whole = "tensor_whole";
    needs_own("tensor_part", bytes);
    needs_own("tensor_whole", bytes * tensor_);
  }
  call.kind = gathers ? CollectiveKind::AllGather : CollectiveKind::ReduceScatter;
  call.input = gathers ? part : whole;
  call.output = gathers ? whole : part;
  call.work = work;
  collective(call);
}

void Writer::transfers(std::string_view group, std::string_view work,
                       const std::vector<BatchedTransfer>& all) {
  if (!writes()) return;
  GroupCall call = program_->call(group, name_, {});
  call.is_async = true;
  call.done = program_->work(work);
  Lowering out = program_->lowering(*block_, name_, {});
  begin_call(false, call, out);
  Lowering inner = out.inside(out.add_nccl_group());
  for (const BatchedTransfer& one : all) {
    const BufferRef buffer = program_->buffer(one.buffer);
    const auto add_one = [&]<class Transfer>(Transfer transfer) {
      transfer.comm = call.comm;
      transfer.stream = call.internal;
      transfer.buffer = buffer;
      transfer.size = {one.bytes};
      transfer.type = DataType::BFloat16;
      transfer.peer = one.peer;
      inner.add(std::move(transfer), std::string{one.id});
    };
    one.sends ? add_one(NcclSend{}) : add_one(NcclRecv{});
  }
  end_call(call, out);
  note();
}

void Writer::wait(std::string_view work) {
  if (!writes()) return;
  Lowering out = program_->lowering(*block_, name_, {});
  out.add(StreamWaitEvent{{}, program_->work(work)}, std::string{work});
  note();
}

void Writer::read_scalar(std::string_view buffer) {
  if (!writes()) return;
  program_->read_scalar(*block_, name_, buffer);
  note();
}

void Writer::synchronize() { add(DeviceSynchronize{}); }

void Writer::barrier() { add(HostBarrier{}); }

}  // namespace foretrace::training
