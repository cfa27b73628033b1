// What PyTorch's libraries do on a device (LibraryKernel) and on the host (FrameworkCall), by kind.
#pragma once

#include <cstddef>
#include <cstdint>

namespace foretrace {

/// What a LibraryKernel does. Attention is one fused kernel (cuDNN, FlashAttention), causal, beside
/// the small ones that its backward pass needs.
enum class KernelKind : std::uint8_t {
  AttentionForward,
  AttentionBackward,
  Pointwise,    ///< elements side by side: residual, activation, fill
  Narrow,       ///< float32 to bfloat16
  Widen,        ///< bfloat16 to float32
  Mixed,        ///< adds bfloat16 to float32
  Strided,      ///< pointwise, but over views that are not contiguous (rope as PyTorch has it)
  Concatenate,  ///< joins views that are not contiguous
  LayerNorm,    ///< float32 statistics, mean and deviation
  LayerNormBackward,  ///< the gradient of its input
  LayerNormWeights,   ///< the gradients of its weight and bias
  RmsNorm,
  RmsNormBackward,
  RmsNormWeights,
  ColumnSum,  ///< over the tokens: the gradient of a bias
  Softmax,    ///< log-softmax over the vocabulary
  SoftmaxBackward,
  Gather,          ///< rows of an embedding
  GatherBackward,  ///< adds rows into an embedding's gradient, after sorting the tokens
  Optimizer,       ///< fused AdamW over many tensors
  OptimizerHalf,   ///< the same where all of them are bfloat16
  ShardCopy,       ///< FSDP2: shards of many tensors in or out of one buffer
  Captured         ///< a kernel that a capture saw, known by its name (CapturedShape)
};
/// "attention_forward"
const char* kernel_kind_name(KernelKind kind);
inline constexpr std::size_t kKernelKinds = static_cast<std::size_t>(KernelKind::Captured) + 1;

/// What a FrameworkCall is: the framework's own work on the host around the calls into CUDA.
enum class FrameworkWork : std::uint8_t {
  Forward,            ///< an operation in the forward pass: Python, dispatcher, autograd's graph
  Linear,             ///< a linear layer there, its module included
  Attention,          ///< scaled_dot_product_attention there
  Autocast,           ///< a cast that autocast puts in
  Backward,           ///< a node of autograd with one kernel, and each further operation of a node
  Product,            ///< the products of a linear layer's node of autograd
  AttentionBackward,  ///< the node of attention
  Accumulate,         ///< a gradient is ready: autograd gives it to its parameter
  Reducer,            ///< DistributedDataParallel's hook of a parameter
  Collective,         ///< a call of torch.distributed, beside its calls into CUDA and NCCL
  Shard,              ///< FSDP2: a group's hooks of one pass
  DTensor,            ///< tensor parallel: a redistribution, beside its collective
  Stage,              ///< a pipeline's micro-batch in one direction
  Recompute,          ///< a checkpointed block
  Optimizer,          ///< a call of the optimizer
  Parameter,          ///< the optimizer's work for each parameter
  Step,               ///< what a step has once
  Captured,           ///< what a capture's host did between two calls: millionths of its reference loop
  CapturedProduct,    ///< a captured call of cuBLAS, beside its launch
  CapturedLibrary     ///< a captured call of cuDNN or another closed library, beside its launch
};
/// "forward"
const char* framework_work_name(FrameworkWork work);
inline constexpr std::size_t kFrameworkWorks = static_cast<std::size_t>(FrameworkWork::CapturedLibrary) + 1;

}  // namespace foretrace
