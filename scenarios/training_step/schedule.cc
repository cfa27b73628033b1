// Schedules as torch.distributed.pipelining runs them: sends of one direction and receives of the
// other are one batch, which the current stream waits for.
#include "scenarios/training_step/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>

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
        bytes_{bytes_between(step, decoder)} {}

  void one_forward_one_backward() {
    const std::int64_t ahead = std::min(step_.passes, role_.stages - role_.stage);
    out_.repeat(ahead - 1, ahead - 1, [this] {
      transfer(receives_activations(), "");
      forward();
      transfer(sends_activations(), "", false);
    });
    transfer(receives_activations(), "");
    forward();
    const auto one_of_each = [this] {
      transfer(sends_activations(), receives_gradients());
      backward();
      transfer(sends_gradients(), receives_activations());
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
    transfer(sends_gradients(), "", false);
    last_backwards(step_.passes - backwards_);
    reduce_behind(step_, layout_);
  }

  void gpipe() {
    out_.repeat(step_.passes, step_.passes, [this] {
      transfer(receives_activations(), "");
      forward();
      transfer(sends_activations(), "", false);
    });
    one_backward();
    last_backwards(step_.passes - 1);
    reduce_behind(step_, layout_);
  }

 private:
  void one_backward() {
    transfer(receives_gradients(), "");
    backward();
    transfer(sends_gradients(), "", false);
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
    layout_.begin_pass(backwards_ == 0, backwards_ + 1 == step_.passes);
    decoder_.backward(backwards_, backwards_ == 0);
    if (!reduces_behind(step_)) layout_.end_pass();
    ++backwards_;
  }

  bool is_first() const { return role_.stage == 0; }
  bool is_last() const { return role_.stage + 1 == role_.stages; }
  std::string sends_activations() const { return is_last() ? "" : send_to(role_.distance, bytes_); }
  std::string receives_activations() const {
    return is_first() ? "" : receive_from(-role_.distance, bytes_);
  }
  std::string sends_gradients() const { return is_first() ? "" : send_to(-role_.distance, bytes_); }
  std::string receives_gradients() const {
    return is_last() ? "" : receive_from(role_.distance, bytes_);
  }

  void transfer(const std::string& first, const std::string& second, bool waits = true) {
    const char* const work = waits ? "moved" : "sent";
    const bool is_any = write_transfers({first, second}, work, out_);
    if (is_any) out_.needs(bytes_, bytes_);
    if (is_any && waits) out_.line(fmt::format("work_wait: {{work: {}}}", work));
  }

  const TrainingStep& step_;
  const StageRole& role_;
  Decoder& decoder_;
  Layout& layout_;
  Writer& out_;
  std::int64_t bytes_;  ///< bytes_between()
  std::int64_t forwards_ = 0, backwards_ = 0;
};

std::string one_transfer(const char* call, std::string_view buffer, const char* peer,
                         std::int64_t distance, std::int64_t bytes) {
  return fmt::format(
      "{0}: {{id: {0}, buffer: {1}, size: {2}B, type: bfloat16, {3}: process {4} {5}}}", call,
      buffer, bytes, peer, distance < 0 ? '-' : '+', std::abs(distance));
}

}  // namespace

std::int64_t bytes_between(const TrainingStep& step, const Decoder& decoder) {
  return step.tokens() * step.model.hidden * decoder.stream_bytes() /
         (step.sequence_parallel || step.is_megatron() ? step.tensor : 1);
}

void join_parts(const TrainingStep& step, std::int64_t bytes, Writer& out) {
  if (step.is_megatron() && step.tensor > 1 && !step.sequence_parallel) {
    out.collective("all_gather", "tensor_parallel", bytes);
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

std::string send_to(std::int64_t distance, std::int64_t bytes, std::string_view buffer) {
  return one_transfer("isend", buffer, "dst", distance, bytes);
}

std::string receive_from(std::int64_t distance, std::int64_t bytes, std::string_view buffer) {
  return one_transfer("irecv", buffer, "src", distance, bytes);
}

bool write_transfers(const std::vector<std::string>& ops, std::string_view work, Writer& out) {
  std::string text;
  std::int64_t count = 0;
  for (const std::string& op : ops) {
    if (op.empty()) continue;
    text += fmt::format("{}{{{}}}", count++ > 0 ? ", " : "", op);
  }
  if (count == 0) return false;
  out.host(FrameworkWork::Collective, count);
  out.line(fmt::format("batch_isend_irecv: {{group: pipeline, work: {}, ops: [{}]}}", work, text));
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
    if (!step.is_eager()) return;  // Megatron divides the loss by the number of micro-batches
    // The sums of all micro-batches become means.
    for (std::int64_t i = 0; i < decoder.held_tensors(); ++i) out.host(FrameworkWork::Parameter);
    out.kernel("scale_gradients", KernelKind::Pointwise,
               2 * decoder.held_parameters() * (step.float32_parameters ? 4 : 2));
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
