// Schedules as torch.distributed.pipelining runs them: sends of one direction and receives of the
// other are one batch, which the current stream waits for.
#include "scenarios/training_step/schedule.h"

#include <algorithm>
#include <cstdlib>

namespace foretrace::training {
namespace {

class PipelineStage {
 public:
  PipelineStage(const TrainingStep& step, const StageRole& role, Decoder& decoder, Layout& layout,
                Writer& out)
      : step_{step},
        role_{role},
        decoder_{decoder},
        layout_{layout},
        out_{out},
        bytes_{bytes_between(step, decoder)},
        meta_bytes_{step.is_deepspeed() && step.tensor > 1 ? (step.tensor + 7) * 8 : 0} {}

  void one_forward_one_backward() {
    const std::int64_t ahead = std::min(step_.passes, role_.stages - role_.stage);
    out_.repeat(ahead - 1, ahead - 1, [this] {
      transfer(receives_activations(), {});
      forward();
      transfer(sends_activations(), {}, false);
    });
    transfer(receives_activations(), {});
    forward();
    const auto one_of_each = [this] {
      transfer(sends_activations(), receives_gradients());
      backward();
      exchange_with_stage_before();
      forward();
    };
    const std::int64_t steady = step_.passes - ahead;
    if (steady > 0) one_of_each();  // stores gradients, to which the others add
    // All but the last of the loop's passes are skipped: they leave no more memory behind than that
    // one, but for what decoder_ knows.
    const std::int64_t unwritten = std::max<std::int64_t>(0, steady - 2);
    forwards_ += unwritten;
    backwards_ += unwritten;
    decoder_.skip(unwritten);
    out_.repeat(steady - 1, 1, one_of_each);
    transfer(sends_activations(), receives_gradients());
    backward();
    transfer(sends_gradients(), {}, false);
    last_backwards(step_.passes - backwards_);
    reduce_behind(step_, layout_);
  }

  void gpipe() {
    out_.repeat(step_.passes, step_.passes, [this] {
      transfer(receives_activations(), {});
      forward();
      transfer(sends_activations(), {}, false);
    });
    one_backward();
    last_backwards(step_.passes - 1);
    reduce_behind(step_, layout_);
  }

 private:
  void one_backward() {
    transfer(receives_gradients(), {});
    backward();
    transfer(sends_gradients(), {}, false);
  }
  /// Alike but for the last one, behind which gradients are reduced.
  void last_backwards(std::int64_t count) {
    out_.repeat(count - 1, count - 1, [this] { one_backward(); });
    if (count > 0) one_backward();
  }
  void forward() {
    call_of_stage(step_, out_);
    if (!is_first()) join_parts(step_, bytes_, out_);
    decoder_.forward(forwards_++);
  }
  void backward() {
    call_of_stage(step_, out_);
    if (!is_last()) join_parts(step_, bytes_, out_);
    // DeepSpeed keeps this rank's part of what it sent, too.
    if (!is_last() && step_.is_deepspeed()) join_parts(step_, bytes_, out_);
    layout_.begin_pass(backwards_ == 0, backwards_ + 1 == step_.passes);
    decoder_.backward(backwards_, backwards_ == 0);
    if (!reduces_behind(step_)) layout_.end_pass();
    ++backwards_;
  }

  bool is_first() const { return role_.stage == 0; }
  bool is_last() const { return role_.stage + 1 == role_.stages; }

  std::int64_t ahead() const { return is_last() ? 0 : role_.distance; }
  std::int64_t back() const { return is_first() ? 0 : -role_.distance; }
  static Transfer send(std::int64_t distance) { return {true, distance, "part"}; }
  static Transfer receive(std::int64_t distance) { return {false, distance, "whole"}; }
  Transfer sends_activations() const { return send(ahead()); }
  Transfer receives_activations() const { return receive(back()); }
  Transfer sends_gradients() const { return send(back()); }
  Transfer receives_gradients() const { return receive(ahead()); }

  void transfer(const Transfer& first, const Transfer& second, bool waits = true) {
    if (step_.is_deepspeed()) {
      one_by_one(first);
      one_by_one(second);
      return;
    }
    const char* const work = waits ? "moved" : "sent";
    const bool is_any = write_transfers({first, second}, bytes_, work, out_);
    if (is_any) out_.needs(bytes_, bytes_);
    if (is_any && waits) out_.wait(work);
  }
  /// DeepSpeed's engine (8eef742f, runtime/pipe/engine.py, p2p.py) sends and receives tensor by
  /// tensor, and waits: of what PartitionedTensor split its sizes, then this rank's part.
  void one_by_one(const Transfer& one) {
    if (one.distance == 0) return;
    for (const std::int64_t bytes : {meta_bytes_, bytes_}) {
      if (bytes == 0) continue;
      write_transfers({one}, bytes, "moved", out_);
      out_.needs(bytes, bytes);
      out_.wait("moved");
    }
  }
  /// One batch; DeepSpeed's schedule (runtime/pipe/schedule.py) has activations before gradients.
  void exchange_with_stage_before() {
    const Transfer gradients = sends_gradients(), activations = receives_activations();
    step_.is_deepspeed() ? transfer(activations, gradients) : transfer(gradients, activations);
  }

  const TrainingStep& step_;
  const StageRole& role_;
  Decoder& decoder_;
  Layout& layout_;
  Writer& out_;
  std::int64_t bytes_;       ///< bytes_between()
  std::int64_t meta_bytes_;  ///< of what goes ahead of each tensor
  std::int64_t forwards_ = 0, backwards_ = 0;
};

/// "process + distance"
Expr process_at_distance(std::int64_t distance) {
  using enum Expr::Op;
  return Expr::from_postfix(
             {{Variable, 0}, {Constant, std::abs(distance)}, {distance < 0 ? Sub : Add}})
      .value_or(Expr{});
}

}  // namespace

std::int64_t bytes_between(const TrainingStep& step, const Decoder& decoder) {
  return step.tokens() * step.model.hidden * decoder.stream_bytes() /
         (step.sequence_parallel || step.is_megatron() ? step.tensor : 1);
}

void join_parts(const TrainingStep& step, std::int64_t bytes, Writer& out) {
  if (step.is_megatron() && step.tensor > 1 && !step.sequence_parallel) {
    out.collective("all_gather", "tensor_parallel", bytes);
    if (!step.is_deepspeed()) return;
    // PartitionedTensor.full (DeepSpeed 8eef742f, runtime/utils.py): a cleared buffer, all parts
    // copied into it, the whole cloned.
    out.host(FrameworkWork::Forward, 3);
    out.kernel("restore_parts", KernelKind::Pointwise, 5 * bytes * step.tensor);
  }
}

void call_of_stage(const TrainingStep& step, Writer& out) {
  if (step.is_eager()) out.host(FrameworkWork::Stage);
}

bool reduces_behind(const TrainingStep& step) {
  return !step.is_eager() && !step.reduce_every_pass;
}

void reduce_behind(const TrainingStep& step, Layout& layout) {
  if (reduces_behind(step)) layout.end_pass();
}

bool write_transfers(const std::vector<Transfer>& all, std::int64_t bytes, std::string_view work,
                     Writer& out) {
  std::vector<BatchedTransfer> batch;
  for (const Transfer& one : all) {
    if (one.distance == 0) continue;
    batch.push_back({one.sends, one.sends ? "isend" : "irecv", one.buffer, bytes,
                     process_at_distance(one.distance)});
  }
  if (batch.empty()) return false;
  out.host(FrameworkWork::Collective, static_cast<std::int64_t>(batch.size()));
  out.transfers("pipeline", work, batch);
  return true;
}

void write_passes(const TrainingStep& step, const StageRole& role, Decoder& decoder, Layout& layout,
                  Writer& out) {
  if (role.stages > 1) {
    if (step.chunks > 1) {
      write_interleaved(step, role, decoder, layout, out);
    } else {
      PipelineStage stage{step, role, decoder, layout, out};
      step.schedule == Schedule::GPipe ? stage.gpipe() : stage.one_forward_one_backward();
    }
    decoder.join_outputs();
    if (!step.is_eager()) return;  // Megatron divides the loss by the number of micro-batches
    // The sums of all micro-batches become means.
    for (std::int64_t i = 0; i < decoder.held_tensors(); ++i) out.host(FrameworkWork::Parameter);
    out.kernel("scale_gradients", KernelKind::Pointwise,
               2 * decoder.trained_parameters() * (step.float32_parameters ? 4 : 2));
    return;
  }
  const auto pass = [&](bool is_first, bool is_last) {
    layout.begin_pass(is_first, is_last);
    decoder.forward(0);
    decoder.backward(0, is_first);
    layout.end_pass();
  };
  pass(true, step.passes == 1);
  out.repeat(step.passes - 2, 1, [&] { pass(false, false); });
  if (step.passes > 1) pass(false, true);
}

}  // namespace foretrace::training
