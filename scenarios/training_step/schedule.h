// The order of a step's micro-batches on one pipeline stage.
#pragma once

#include <string_view>
#include <vector>

#include "scenarios/training_step/layouts.h"

namespace foretrace::training {

struct StageRole {
  std::int64_t stage = 0, stages = 1;
  std::int64_t distance = 1;  ///< processes from a stage to the next
};

/// Bytes of a micro-batch's activations between two stages.
std::int64_t bytes_between(const TrainingStep& step, const Decoder& decoder);

/// Megatron-LM sends each tensor parallel rank's part of the activations, which are the same on
/// all.
void join_parts(const TrainingStep& step, std::int64_t bytes, Writer& out);

/// What torch.distributed.pipelining does around a stage's pass.
void call_of_stage(const TrainingStep& step, Writer& out);

/// Megatron waits for the reduced gradients behind a step's last transfer (Megatron-Core's
/// finalize_model_grads, DeepSpeed's _exec_reduce_grads): the stage before need not wait for them.
/// DistributedDataParallel waits at the end of the backward pass, before its gradient is sent.
bool reduces_behind(const TrainingStep& step);
void reduce_behind(const TrainingStep& step, Layout& layout);

/// One tensor to the process that is so far behind or before, or from it; `distance` 0: none.
struct Transfer {
  bool sends = false;
  std::int64_t distance = 0;
  std::string_view buffer = {};
};
/// One batch of all that there are, `bytes` each, waited for by `work`. Returns whether there is
/// one.
bool write_transfers(const std::vector<Transfer>& all, std::int64_t bytes, std::string_view work,
                     Writer& out);

/// The passes of a stage of several chunks (interleaved.cc).
void write_interleaved(const TrainingStep& step, const StageRole& role, Decoder& decoder,
                       Layout& layout, Writer& out);

/// All passes of a step, up to complete gradients.
void write_passes(const TrainingStep& step, const StageRole& role, Decoder& decoder, Layout& layout,
                  Writer& out);

}  // namespace foretrace::training
