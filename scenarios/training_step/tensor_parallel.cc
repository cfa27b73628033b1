// Tensor parallel's collectives, and what PyTorch's DTensor copies around them.
#include <string_view>

#include "scenarios/training_step/decoder.h"

namespace foretrace::training {

/// The calls of a synchronous collective over the tensor parallel ranks, in bfloat16.
void Decoder::collective(const char* name, std::int64_t bytes, const char* work, bool joins) {
  call_of_dtensor();
  if (!uses_dtensor() || !joins) {
    out_.collective(name, "tensor_parallel", bytes, work);
    return;
  }
  // torch.distributed._functional_collectives sum into a copy, and gather and scatter along the
  // first dimension: what lies along another one is put together again behind an all_gather, and
  // before a reduce_scatter. A leading dimension of 1 needs none behind (PyTorch 2.11).
  const std::string_view what{name};
  const std::int64_t moved = 2 * bytes * (what == "all_reduce" ? 1 : step_.tensor);
  const bool batches = step_.micro_batch > 1;
  const bool copies = what != "all_gather" || batches;
  const Memory::Id copy = memory_.allocate(Part::Temporary, copies ? moved / 2 : 0);
  if (what == "all_reduce") out_.kernel("copy_to_sum", KernelKind::Pointwise, moved);
  if (what == "reduce_scatter") {
    out_.kernel("join_parts", batches ? KernelKind::Concatenate : KernelKind::Pointwise, moved);
  }
  out_.collective(name, "tensor_parallel", bytes, work);
  if (what == "all_gather" && batches) out_.kernel("join_parts", KernelKind::Pointwise, moved);
  memory_.free(copy);
}

void Decoder::call_of_dtensor() {
  if (uses_dtensor() && !step_.compiled) out_.host(FrameworkWork::DTensor);
}

/// Overlapped as Transformer Engine's user buffers are: of a product's tiles the first need no more
/// than the first part, so both begin at once. A gradient's sum, `reduce_scatter_behind`, is ready
/// before the other product begins.
void Decoder::beside(const char* name, std::int64_t bytes, bool may_overlap,
                     const std::function<void()>& product) {
  const std::string what{name};
  const bool gathers = what == "all_gather";
  const char* const call = gathers ? "all_gather" : "reduce_scatter";
  if (may_overlap) {
    collective(call, bytes, "beside");
    product();
    out_.wait("beside");
    return;
  }
  if (gathers) collective(call, bytes);
  product();
  if (!gathers) collective(call, bytes);
}

void Decoder::enter_tensor_parallel(std::int64_t linears) {
  if (step_.tensor == 1 || splits_in_layers()) return;
  const std::int64_t bytes = tokens_ * model_.hidden * kBf16;
  if (step_.sequence_parallel) {
    const std::int64_t times = step_.gathers_each ? linears : 1;
    for (std::int64_t i = 0; i < times; ++i) collective("all_gather", bytes / step_.tensor);
    const Memory::Id whole = save(bytes);
    on_backward([this, bytes, whole, times] {
      memory_.free(whole);
      for (std::int64_t i = 0; i < times; ++i) collective("reduce_scatter", bytes / step_.tensor);
    });
    return;
  }
  on_backward([this, bytes, linears] {
    for (std::int64_t i = 0; i < linears; ++i) collective("all_reduce", bytes);
  });
}

void Decoder::leave_tensor_parallel(bool is_linear) {
  if (step_.tensor == 1 || (is_linear && splits_in_layers())) return;
  const std::int64_t bytes = tokens_ * model_.hidden * kBf16;
  if (!step_.sequence_parallel) {
    collective("all_reduce", bytes);
    return;
  }
  collective("reduce_scatter", bytes / step_.tensor);
  on_backward([this, bytes] { collective("all_gather", bytes / step_.tensor); });
}

/// Along the last dimension; the backward pass takes this rank's columns out again.
void Decoder::gather_logits() {
  const std::int64_t bytes = tokens_ * vocab_ * kBf16;
  call_of_dtensor();
  out_.collective("all_gather", "tensor_parallel", bytes);
  if (!uses_dtensor()) return;
  const Memory::Id gathered = memory_.allocate(Part::Temporary, bytes * step_.tensor);
  const Memory::Id joined = memory_.allocate(Part::Temporary, bytes * step_.tensor);
  out_.kernel("join_logits", KernelKind::Pointwise, 2 * bytes * step_.tensor);
  memory_.free(gathered);
  memory_.free(joined);
  on_backward([this, bytes] { out_.kernel("own_logits", KernelKind::Strided, 2 * bytes); });
}

}  // namespace foretrace::training
