// Schedules as torch.distributed.pipelining runs them: sends of one direction and receives of the
// other are one batch, which the current stream waits for.
#include "scenarios/training_step/schedule.h"

#include <fmt/format.h>

#include <algorithm>
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
        bytes_{step.tokens() * step.model.hidden * decoder.stream_bytes() /
               (step.sequence_parallel ? step.tensor : 1)} {}

  void one_forward_one_backward() {
    const std::int64_t ahead = std::min(step_.passes, role_.stages - role_.stage);
    for (; forwards_ < ahead; ++forwards_) {
      transfer(receives_activations(), "");
      forward();
      if (forwards_ + 1 < ahead) transfer(sends_activations(), "", false);
    }
    while (true) {
      transfer(sends_activations(), receives_gradients());
      backward();
      if (forwards_ == step_.passes) break;
      transfer(sends_gradients(), receives_activations());
      forward();
      ++forwards_;
    }
    transfer(sends_gradients(), "", false);
    while (backwards_ < step_.passes) {
      transfer(receives_gradients(), "");
      backward();
      transfer(sends_gradients(), "", false);
    }
  }

  void gpipe() {
    for (; forwards_ < step_.passes; ++forwards_) {
      transfer(receives_activations(), "");
      forward();
      transfer(sends_activations(), "", false);
    }
    while (backwards_ < step_.passes) {
      transfer(receives_gradients(), "");
      backward();
      transfer(sends_gradients(), "", false);
    }
  }

 private:
  void forward() {
    out_.host(FrameworkWork::Stage);
    decoder_.forward(forwards_);
  }
  void backward() {
    out_.host(FrameworkWork::Stage);
    layout_.begin_pass(backwards_ == 0, backwards_ + 1 == step_.passes);
    decoder_.backward(backwards_, backwards_ == 0);
    layout_.end_pass();
    ++backwards_;
  }

  std::string one(const char* call, const char* buffer, const char* peer, char sign) const {
    return fmt::format(
        "{0}: {{id: {0}, buffer: {1}, size: {2}B, type: bfloat16, {3}: process {4} {5}}}", call,
        buffer, bytes_, peer, sign, role_.distance);
  }
  bool is_first() const { return role_.stage == 0; }
  bool is_last() const { return role_.stage + 1 == role_.stages; }
  std::string sends_activations() const {
    return is_last() ? "" : one("isend", "part", "dst", '+');
  }
  std::string receives_activations() const {
    return is_first() ? "" : one("irecv", "whole", "src", '-');
  }
  std::string sends_gradients() const { return is_first() ? "" : one("isend", "part", "dst", '-'); }
  std::string receives_gradients() const {
    return is_last() ? "" : one("irecv", "whole", "src", '+');
  }

  void transfer(const std::string& first, const std::string& second, bool waits = true) {
    if (first.empty() && second.empty()) return;
    const bool both = !first.empty() && !second.empty();
    const std::string work = waits ? "moved" : "sent";
    out_.needs(bytes_, bytes_);
    out_.host(FrameworkWork::Collective, both ? 2 : 1);
    out_.line(fmt::format("batch_isend_irecv: {{group: pipeline, work: {}, ops: [{{{}}}{}]}}", work,
                          first.empty() ? second : first, both ? ", {" + second + "}" : ""));
    if (waits) out_.line(fmt::format("work_wait: {{work: {}}}", work));
  }

  const TrainingStep& step_;
  const StageRole& role_;
  Decoder& decoder_;
  Layout& layout_;
  Writer& out_;
  std::int64_t bytes_;  ///< of the activations between two stages
  std::int64_t forwards_ = 0, backwards_ = 0;
};

}  // namespace

void write_passes(const TrainingStep& step, const StageRole& role, Decoder& decoder, Layout& layout,
                  Writer& out) {
  if (role.stages > 1) {
    PipelineStage stage{step, role, decoder, layout, out};
    step.schedule == Schedule::GPipe ? stage.gpipe() : stage.one_forward_one_backward();
    // The sums of all micro-batches become means.
    for (std::int64_t i = 0; i < decoder.held_tensors(); ++i) out.host(FrameworkWork::Parameter);
    out.kernel("scale_gradients", KernelKind::Pointwise,
               2 * decoder.held_parameters() * (step.float32_parameters ? 4 : 2));
    return;
  }
  for (std::int64_t pass = 0; pass < step.passes; ++pass) {
    layout.begin_pass(pass == 0, pass + 1 == step.passes);
    decoder.forward(pass);
    decoder.backward(pass, pass == 0);
    layout.end_pass();
  }
}

}  // namespace foretrace::training
