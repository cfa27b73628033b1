// What `training_step:` says: a decoder, and how a step of its training is spread over GPUs. Plain
// values; reading and judging them is read.cc's and check.cc's, what follows from them expand.cc's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "scenarios/architecture/architecture.h"

namespace foretrace::training {

enum class Sharding : std::uint8_t { None, Ddp, Zero1, Zero2, Fsdp };
/// How context parallel neighbours come by each other's keys and values: all at once, or a part
/// from one neighbour while attention to the part before runs.
enum class ContextExchange : std::uint8_t { AllGather, SendRecv };
/// Selective: attention. Products: all but attention and every second matrix product of a layer
/// (torchtitan's selective checkpointing by operators).
enum class Recompute : std::uint8_t { None, Selective, Products, Full };
/// Whose calls: PyTorch's eager ones, Megatron-LM's of 2021, the same under DeepSpeed's pipeline
/// engine and optimizers, or Megatron-Core's with Transformer Engine's fused kernels.
enum class Framework : std::uint8_t { PyTorch, Megatron, MegatronDeepSpeed, MegatronCore };
enum class Schedule : std::uint8_t { OneForwardOneBackward, GPipe };
/// Of a process's experts: one kernel for all of them, or one product after the other.
enum class ExpertProducts : std::uint8_t { Grouped, Loop };
enum class OptimizerKernel : std::uint8_t { Fused, Foreach };
/// What linear layers multiply below 16 bits: float8 with a scale for each tensor, which a kernel
/// finds, or which follows from the steps before (Transformer Engine's delayed scaling); with one
/// for each row; MX float8; NV float4.
enum class Narrow : std::uint8_t { None, Float8, Delayed, Rows, Mx8, Nv4 };

/// LoRA: products of this rank beside some layers'; all other parameters are frozen.
struct Adapters {
  std::int64_t rank = 0;  ///< 0: there are none
  bool queries = true;    ///< beside queries, keys and values
  bool output = false;    ///< behind attention
  bool mlp = false;
};

/// What a recomputed layer keeps all the same, as JAX's checkpoint policies name it.
struct Kept {
  bool queries = false;    ///< queries, keys and values, as their products gave them
  bool attention = false;  ///< its result
  bool output = false;     ///< of the product behind attention
  bool up = false;         ///< gate and up
  bool down = false;
  bool any() const { return queries || attention || output || up || down; }
};

struct TrainingStep {
  Architecture model;
  std::string code;    ///< whose (styles/); empty: foretrace's own
  bool clips = false;  ///< gradients, before the optimizer
  std::int64_t sequence = 0;
  std::int64_t micro_batch = 1;  ///< sequences of one process in one pass
  std::int64_t passes = 1;       ///< micro-batches of a process in a step
  std::int64_t tensor = 1, pipeline = 1;
  std::int64_t data = 1;     ///< that have different sequences
  std::int64_t context = 1;  ///< neighbours that split each sequence
  ContextExchange exchange = ContextExchange::AllGather;
  std::int64_t chunks = 1;  ///< of a pipeline stage: virtual stages, interleaved
  std::int64_t expert = 1;  ///< neighbours of replicas() that share the experts of a layer
  std::int64_t nodes = 1;
  bool sequence_parallel = false;
  bool loss_parallel = false;
  Framework framework = Framework::PyTorch;
  bool overlaps_tensor = false;  ///< Megatron: tensor parallel's collectives beside products
  Sharding sharding = Sharding::None;
  std::int64_t shard = 0;        ///< FSDP: neighbours that share parameters; 0: all replicas
  bool flat_parameters = false;  ///< FSDP1: a group is one tensor, gathered where it is used
  bool fused_loss = false;       ///< logits stay in bfloat16, one kernel in each direction
  bool half_loss = false;        ///< of a separate one: computed in bfloat16, as the logits are
  bool reshard = true;           ///< FSDP: parameters are freed after the forward pass
  bool float32_parameters =
      false;  ///< computed in bfloat16 all the same (autocast, or FSDP's cast)
  /// Products in float16, which GPUs before 8.0 have; gradients are scaled. Else bfloat16.
  bool float16 = false;
  /// Of linear layers, whose operands are cast; not the head, attention and the router.
  Narrow narrow = Narrow::None;
  bool float32_reduce = true;  ///< FSDP's reduce-scatter; what Megatron's gradients are held in
  Recompute recompute = Recompute::None;
  Schedule schedule = Schedule::OneForwardOneBackward;
  bool return_outputs = true;   ///< a pipeline's last stage keeps all logits, PyTorch's default
  bool flash_attention = true;  ///< else two products with a softmax between them
  bool dropout = false;         ///< of attention's weights, of each branch before it is added
  OptimizerKernel optimizer = OptimizerKernel::Fused;
  std::int64_t bucket_bytes = 0;   ///< DDP's; 0: the framework's own
  bool bucket_views = false;       ///< gradients lie in the buckets
  bool reduce_every_pass = false;  ///< accumulation without no_sync, DDP and FSDP
  ExpertProducts expert_products = ExpertProducts::Grouped;
  double expert_load = 1;     ///< rows of the fullest process's experts over their even share
  bool has_capacity = false;  ///< that is what everybody pads to: the host need not know
  std::int64_t steps = 0;     ///< one after the other; 0: enough for a settled clock

  /// Processes that hold the same parameters: gradients are reduced over them.
  std::int64_t replicas() const { return data * context; }
  std::int64_t processes() const { return tensor * pipeline * replicas(); }
  std::int64_t expert_data() const { return replicas() / expert; }  ///< with the same experts
  /// Hybrid sharding: several whole copies, whose gradients are added.
  bool is_hybrid() const { return sharding == Sharding::Fsdp && shard > 0 && shard < replicas(); }
  /// Of replicas(): those that share experts, or with hybrid sharding a copy of all parameters.
  std::int64_t neighbours() const { return is_hybrid() ? shard : expert; }
  bool is_megatron_core() const { return framework == Framework::MegatronCore; }
  Adapters adapters;
  Kept keeps;                        ///< with Recompute::Full
  std::int64_t recompute_every = 1;  ///< with Recompute::Full: each so-manieth layer of a stage
  /// PyTorch: whether tensors of split layers are DTensors, and whether each linear layer gathers
  /// the input that it shares with others (ColwiseParallel with an input that is split).
  bool dtensor = true, gathers_each = false;
  /// torch.compile, XLA: pointwise operations of a layer are fused, DTensors take no host time.
  bool compiled = false;
  bool is_frozen() const { return adapters.rank > 0; }
  bool is_narrow() const { return narrow != Narrow::None; }
  /// Transformer Engine's modules hold what they save, and gather, in those bits.
  bool holds_narrow() const { return is_narrow() && is_megatron_core(); }
  bool autocasts() const { return float32_parameters && sharding != Sharding::Fsdp; }
  bool is_eager() const { return framework == Framework::PyTorch; }
  /// torch.distributed.pipelining's schedules hand out what the last stage made of all
  /// micro-batches, which stays in memory until then (PyTorch issue 159251). Megatron's last stage
  /// makes losses only.
  bool hands_out_outputs() const { return is_eager() && pipeline > 1 && return_outputs; }
  bool is_deepspeed() const { return framework == Framework::MegatronDeepSpeed; }
  bool is_megatron() const { return framework == Framework::Megatron || is_deepspeed(); }
  /// DeepSpeed's BF16_Optimizer: every micro-batch's gradients are added to float32 ones.
  bool adds_wide_gradients() const { return is_deepspeed() && float32_reduce; }
  /// Whether the embedding and the loss fill a layer's place each, since layers alone do not fill
  /// the chunks of all stages: Megatron's account_for_embedding_in_pipeline_split and its twin for
  /// the loss, DeepSpeed's partition by `type:transformer|embedding`, torchtitan's input_weight and
  /// output_weight of 1.
  bool ends_are_layers() const {
    const std::int64_t places = pipeline * chunks;
    return places > 1 && model.layers % places != 0 && (model.layers + 2) % places == 0;
  }
  std::int64_t part() const { return sequence / context; }  ///< of a sequence, on a process
  std::int64_t tokens() const { return part() * micro_batch; }
};

/// "a tensor of 1e+20 elements", where a step is larger than anything that can be counted in 64
/// bits or written down; empty for all others. What else must be right is check()'s (read.h).
std::optional<std::string> what_is_too_large(const TrainingStep& step);

/// "200 is no multiple of 16: ...", where a width on one process, or the tokens, is none that
/// products of less than 16 bits have; empty for all others, and for steps without such products.
std::optional<std::string> what_is_no_narrow_size(const TrainingStep& step);

/// Arithmetic of a step's products and attention over all GPUs, forward and backward, without what
/// is recomputed; of experts those that a token goes to; causal attention counts half of the
/// square. What MFU is counted with.
double model_flops(const TrainingStep& step);

}  // namespace foretrace::training
