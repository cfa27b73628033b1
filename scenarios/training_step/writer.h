// The operations of one host thread as a scenario's text, in the order of the calls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "scenarios/program/ops.h"
#include "scenarios/training_step/memory.h"

namespace foretrace::training {

class Writer {
 public:
  /// `tensor`: ranks of the tensor parallel group, for the sizes of its buffers.
  Writer(int indent, std::int64_t tensor)
      : margin_(static_cast<std::size_t>(indent), ' '), tensor_{tensor} {}
  /// Writes nothing: for who asks for what is allocated only.
  static Writer silent(std::int64_t tensor) {
    Writer writer{0, tensor};
    writer.is_silent_ = true;
    return writer;
  }

  /// Which operand of a product lies transposed.
  enum class Turned { Neither, A, B };
  /// c (m x n) = a (m x k) * b (k x n) in bfloat16, column-major.
  void product(std::string_view id, std::int64_t m, std::int64_t n, std::int64_t k, Turned turned);
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
  void kernel(std::string_view id, KernelKind kind, std::int64_t bytes);
  void attention(std::string_view id, KernelKind kind, std::int64_t flops, std::int64_t bytes,
                 std::int64_t width);
  /// A synchronous collective in bfloat16 on the current stream: "all_reduce" of `bytes`, or what a
  /// rank gives to an all_gather and gets from a reduce_scatter.
  /// With `work` asynchronous, between buffers of its own.
  void collective(std::string_view name, std::string_view group, std::int64_t bytes,
                  std::string_view work = {});
  void host(FrameworkWork work, std::int64_t count = 1);
  /// Any other operation, as it stands in a scenario behind "- ".
  void line(std::string_view text);
  /// From here on nothing is written, but what is said of buffers holds; or again.
  void leave_out(bool leaves) { leaves_out_ = leaves; }
  /// What `write` writes, `times` times as a loop. It is called `calls` times, at least once and at
  /// most `times`, and writes the same each time: for those who follow memory through the passes.
  void repeat(std::int64_t times, std::int64_t calls, const std::function<void()>& write);
  /// "stream" of kernels from here on; empty: the default stream.
  void on_stream(std::string_view stream) { stream_ = stream; }

  const std::string& text() const { return text_; }
  const Moment& now() const { return now_; }
  const std::vector<Section>& sections() const { return sections_; }
  /// Group names of this thread's ranks: "tensor_parallel" becomes "tensor_parallel_3".
  void set_group(std::string group, std::string name) { groups_[group] = std::move(name); }
  std::string group(std::string_view name) const;
  /// Notes that a collective needs buffers so large.
  void needs(std::int64_t input, std::int64_t output);
  std::int64_t largest_input() const { return largest_input_; }
  std::int64_t largest_output() const { return largest_output_; }
  /// What is exchanged while gradients are reduced or parameters gathered has buffers of its own.
  void needs_own(const std::string& buffer, std::int64_t bytes) {
    own_[buffer] = std::max(own_[buffer], bytes);
  }
  const std::map<std::string, std::int64_t>& own_buffers() const { return own_; }
  std::int64_t largest_operand() const { return largest_operand_; }  ///< bytes of a product's

 private:
  bool writes() const { return !is_silent_ && !leaves_out_; }
  std::string place() const;
  void begin_section(std::int64_t calls);

  std::string margin_, text_, stream_;
  bool leaves_out_ = false, is_silent_ = false;
  std::int64_t tensor_;
  Moment now_;
  std::vector<Section> sections_{{}};
  std::map<std::string, std::string, std::less<>> groups_;
  std::map<std::string, std::int64_t> own_;
  std::int64_t largest_operand_ = 2, largest_input_ = 2, largest_output_ = 2;
};

}  // namespace foretrace::training
