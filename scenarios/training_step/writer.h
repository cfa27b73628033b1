// The operations of one host thread of a step, in the order of the calls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/training_step/memory.h"
#include "scenarios/training_step/step_program.h"

namespace foretrace::training {

/// One of torch.distributed in bfloat16 on the current stream.
struct GroupCollective {
  CollectiveKind kind = CollectiveKind::AllReduce;
  std::string_view id, group;      ///< the group as Writer::group names it
  std::string_view input, output;  ///< buffers; the same: in place
  std::int64_t bytes = 0;      ///< what a rank gives to an all_gather, gets from a reduce_scatter
  std::string_view work = {};  ///< empty: synchronous
  DataType type = DataType::BFloat16;
  RedOp op = RedOp::Sum;
  std::string_view stream = {};  ///< empty: the default stream
};

/// Of a batch, in bfloat16.
struct BatchedTransfer {
  bool sends = false;
  std::string_view id, buffer;
  std::int64_t bytes = 0;
  Expr peer;  ///< of the group
};

class Writer {
 public:
  /// Of the thread `name`. `tensor`: ranks of the tensor parallel group, for the sizes of its
  /// buffers.
  Writer(StepProgram& program, std::string name, std::int64_t tensor)
      : program_{&program}, name_{std::move(name)}, tensor_{tensor} {}
  /// Writes nothing: for who asks for what is allocated only.
  static Writer silent(std::int64_t tensor) { return Writer{tensor}; }

  /// Which operand of a product lies transposed.
  enum class Turned { Neither, A, B };
  /// c (m x n) = a (m x k) * b (k x n) in computes_in's type, column-major.
  void product(std::string_view id, std::int64_t m, std::int64_t n, std::int64_t k, Turned turned);
  /// Bfloat16, or what is said last.
  void computes_in(DataType type, Scales scales = Scales::Tensor) {
    type_ = type;
    scales_ = scales;
  }
  /// The three of a linear layer y = x W^T as PyTorch and Megatron call them: x is rows x inputs
  /// and W outputs x inputs, row-major.
  void forward_product(std::string_view id, std::int64_t inputs, std::int64_t outputs,
                       std::int64_t rows) {
    product(id, outputs, rows, inputs, Turned::A);
  }
  void inputs_product(std::string_view id, std::int64_t inputs, std::int64_t outputs,
                      std::int64_t rows) {
    product(id, inputs, rows, outputs, Turned::Neither);
  }
  void weights_product(std::string_view id, std::int64_t inputs, std::int64_t outputs,
                       std::int64_t rows) {
    product(id, inputs, outputs, rows, Turned::B);
  }
  /// A kernel that moves `bytes` of device memory.
  void kernel(std::string_view id, KernelKind kind, std::int64_t bytes) {
    attention(id, kind, 0, bytes, 0);
  }
  void attention(std::string_view id, KernelKind kind, std::int64_t flops, std::int64_t bytes,
                 std::int64_t width);
  void host(FrameworkWork work, std::int64_t count = 1);
  void collective(const GroupCollective& call);
  /// Tensor parallel's kind on the current stream, between the buffers that all share: "all_reduce"
  /// of `bytes`, "all_gather" or "reduce_scatter". With `work` asynchronous, between buffers of its
  /// own.
  void collective(std::string_view name, std::string_view group, std::int64_t bytes,
                  std::string_view work = {});
  /// batch_isend_irecv.
  void transfers(std::string_view group, std::string_view work,
                 const std::vector<BatchedTransfer>& all);
  void wait(std::string_view work);
  void read_scalar(std::string_view buffer);
  void synchronize();
  void barrier();
  /// From here on nothing is written, but what is said of buffers holds; or again.
  void leave_out(bool leaves) { leaves_out_ = leaves; }
  /// What `write` writes, `times` times as a loop. It is called `calls` times, at least once and at
  /// most `times`, and writes the same each time: for those who follow memory through the passes.
  void repeat(std::int64_t times, std::int64_t calls, const std::function<void()>& write);
  /// What `write` writes, in a block.
  void inside(OpKind block, const std::function<void()>& write);
  /// "stream" of kernels from here on; empty: the default stream.
  void on_stream(std::string_view stream) { stream_ = stream; }

  Block take() { return std::move(ops_); }
  const Moment& now() const { return now_; }
  const std::vector<Section>& sections() const { return sections_; }
  /// Group names of this thread's ranks: "tensor_parallel" becomes "tensor_parallel_3".
  void set_group(std::string group, std::string name) { groups_[group] = std::move(name); }
  std::string group(std::string_view name) const;
  /// As the group numbers it; nothing of a writer that writes nothing.
  std::int64_t rank_in(std::string_view group, std::int64_t rank) const {
    return program_ == nullptr ? 0 : program_->rank_in(group, rank);
  }
  /// Notes that a collective needs buffers so large.
  void needs(std::int64_t input, std::int64_t output);
  std::int64_t largest_input() const { return largest_input_; }
  std::int64_t largest_output() const { return largest_output_; }
  /// What is exchanged while gradients are reduced or parameters gathered has buffers of its own.
  void needs_own(const std::string& buffer, std::int64_t bytes) {
    own_[buffer] = std::max(own_[buffer], bytes);
  }
  const BufferBytes& own_buffers() const { return own_; }
  std::int64_t largest_operand() const { return largest_operand_; }  ///< bytes of a product's

 private:
  explicit Writer(std::int64_t tensor) : tensor_{tensor} {}
  bool writes() const { return program_ != nullptr && !leaves_out_ && !program_->is_full(); }
  DataType type_ = DataType::BFloat16;
  Scales scales_ = Scales::Tensor;
  void add(OpKind kind, std::string_view label = {});
  void note() { now_.op = program_->program().op_count; }
  void begin_section(std::int64_t calls);
  void write_again(std::int64_t first, const std::function<void()>& write);

  StepProgram* program_ = nullptr;  ///< null: writes nothing
  std::string name_, stream_;
  Block ops_;
  Block* block_ = &ops_;
  bool leaves_out_ = false;
  std::int64_t tensor_;
  Moment now_;
  std::vector<Section> sections_{{}};
  std::map<std::string, std::string, std::less<>> groups_;
  BufferBytes own_;
  std::int64_t largest_operand_ = 2, largest_input_ = 2, largest_output_ = 2;
};

}  // namespace foretrace::training
