// library_kernel: kernels of our own on memory of the harness; attention by cuBLAS and a softmax
// over the whole square of scores, which no fused kernel writes: it says so by its kernels' names.
#include <cstddef>

#include "hw/cuda/cuda_check.h"
#include "hw/execute/execute.h"
#include "hw/library/library_kernels.h"

namespace foretrace::hw {
namespace {

/// Pieces of one memory, one after the other.
class Pieces {
 public:
  explicit Pieces(void* memory) : at_{static_cast<std::byte*>(memory)} {}
  void* take(std::size_t bytes) {
    std::byte* const taken = at_;
    at_ += bytes;
    return taken;
  }

 private:
  std::byte* at_;
};

/// Matrices of a head in row-major order are transposed ones in cuBLAS's: keys are width x
/// sequence, scores keys x queries.
void attend(const LibraryKernel& op, const AttentionShape& shape, const Stream& stream,
            const GemmHandle& gemm, void* memory) {
  const auto s = static_cast<std::int64_t>(shape.sequence);
  const auto d = static_cast<std::int64_t>(shape.width);
  const auto heads = static_cast<std::int64_t>(shape.heads);
  const std::size_t rows = shape.heads * shape.sequence;
  const CublasProduct scores{.m = s, .n = s, .k = d, .transposes_a = true, .batch = heads};
  const CublasProduct of_keys{.m = d, .n = s, .k = s, .batch = heads};
  const CublasProduct of_queries{.m = d, .n = s, .k = s, .transposes_b = true, .batch = heads};
  const auto multiply = [&gemm](const CublasProduct& product, void* a, void* b, void* c) {
    gemm.multiply(product, GemmTypes::plain(DataType::BFloat16), a, b, c);
  };
  Pieces pieces{memory};
  const auto operand = [&] { return pieces.take(shape.operand_bytes()); };
  void *query = operand(), *key = operand(), *value = operand(), *out = operand();
  void* probabilities = pieces.take(shape.score_bytes());
  multiply(scores, key, query, probabilities);
  cuda_check(launch_score_softmax(stream.use(), probabilities, rows, shape.sequence));
  if (op.kernel == KernelKind::AttentionForward) {
    multiply(of_keys, value, probabilities, out);
    return;
  }
  void *query_gradient = operand(), *key_gradient = operand(), *value_gradient = operand();
  void* score_gradient = pieces.take(shape.score_bytes());
  multiply(of_queries, out, probabilities, value_gradient);
  multiply(scores, value, out, score_gradient);
  cuda_check(
      launch_score_gradient(stream.use(), score_gradient, probabilities, rows, shape.sequence));
  multiply(of_keys, key, score_gradient, query_gradient);
  multiply(of_queries, query, score_gradient, key_gradient);
}

bool is_attention(KernelKind kind) {
  return kind == KernelKind::AttentionForward || kind == KernelKind::AttentionBackward;
}

AttentionShape shape_of(const LibraryKernel& op, Variables v) {
  return attention_shape(op.kernel, static_cast<double>(op.flops.eval(v)),
                         static_cast<double>(op.bytes.eval(v).count),
                         static_cast<double>(op.width.eval(v)));
}

}  // namespace

void* library_memory(const LibraryKernel& op, Context& context) {
  const Variables v = context.variables;
  std::size_t bytes = 0;
  if (is_attention(op.kernel)) {
    const AttentionShape shape = shape_of(op, v);
    bytes = 7 * shape.operand_bytes() + 2 * shape.score_bytes();
  } else {
    bytes = layout_of(op.kernel, op.bytes.eval(v).count).scratch_bytes;
  }
  const int ordinal = context.objects.stream(op.stream.resolve(v)).ordinal();
  return context.objects.kernel_memory().at(ordinal, bytes);
}

void execute(const LibraryKernel& op, Context& context) {
  const Variables v = context.variables;
  const StreamId id = op.stream.resolve(v);
  Objects& objects = context.objects;
  const Stream& stream = objects.stream(id);
  void* memory = library_memory(op, context);
  if (is_attention(op.kernel)) {
    attend(op, shape_of(op, v), stream, objects.gemms().at(context.thread, id, stream), memory);
    return;
  }
  cuda_check(launch_library_kernel(stream.use(), op.kernel,
                                   layout_of(op.kernel, op.bytes.eval(v).count), memory));
}

}  // namespace foretrace::hw
