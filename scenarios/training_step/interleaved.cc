// Interleaved 1F1B, as Megatron's forward_backward_pipelining_with_interleaving
// (megatron/core/pipeline_parallel/schedules.py) with its overlap of transfers: a stage has several
// chunks of layers, and `stages` micro-batches go through each in turn, forward from the first
// chunk on, backward from the last. The last stage's output of a chunk is the first stage's input
// of the next. Outputs are sent, and the next inputs received, while the pass of the other
// direction runs. The bubble is (stages - 1) / chunks micro-batches.
#include <algorithm>

#include "scenarios/training_step/schedule.h"

namespace foretrace::training {
namespace {

class InterleavedStage {
 public:
  InterleavedStage(const TrainingStep& step, const StageRole& role, Decoder& decoder,
                   Layout& layout, Writer& out)
      : step_{step},
        role_{role},
        decoder_{decoder},
        layout_{layout},
        out_{out},
        bytes_{bytes_between(step, decoder)},
        turn_{role.stages * step.chunks},
        all_{step.passes * step.chunks} {}

  void run() {
    const std::int64_t ahead =
        std::min(all_, 2 * (role_.stages - 1 - role_.stage) + (step_.chunks - 1) * role_.stages);
    start({}, first_input(true), "activations", forward_waits_);
    for (std::int64_t i = 0; i < ahead; ++i) forward();
    start({}, first_input(false), "gradients", backward_waits_);
    const std::int64_t both = all_ - ahead;
    alternate(std::min(both, turn_));
    // The loop ends before the last passes of any chunk, behind which gradients are reduced.
    const std::int64_t turns = std::min((both - 1) / turn_, step_.passes / role_.stages - 1) - 1;
    if (turns > 1) {
      // All but the last turn are skipped, as those of a stage of one chunk (schedule.cc).
      forwards_ += (turns - 1) * turn_;
      backwards_ += (turns - 1) * turn_;
      decoder_.skip((turns - 1) * role_.stages);
      out_.repeat(turns, 1, [this] { alternate(turn_); });
    }
    alternate(all_ - forwards_);
    while (backwards_ < all_) backward();
    reduce_behind(step_, layout_);
  }

 private:
  bool is_first() const { return role_.stage == 0; }
  bool is_last() const { return role_.stage + 1 == role_.stages; }
  /// Of the i-th pass of a chunk in one direction: its place in the order of this direction's
  /// chunks.
  std::int64_t chunk(std::int64_t i) const { return i % turn_ / role_.stages; }
  std::int64_t micro_batch(std::int64_t i) const {
    return i / turn_ * role_.stages + i % role_.stages;
  }
  /// Whether a pass's input comes from another stage: not the model's first or, backward, last.
  bool receives(std::int64_t i, bool is_forward) const {
    return i < all_ && !((is_forward ? is_first() : is_last()) && chunk(i) == 0);
  }
  bool sends(std::int64_t i, bool is_forward) const {
    return !((is_forward ? is_last() : is_first()) && chunk(i) + 1 == step_.chunks);
  }
  /// Processes to the stage behind, or with -1 before this one; the last is before the first.
  std::int64_t towards(std::int64_t direction) const {
    const bool wraps = direction > 0 ? is_last() : is_first();
    return direction * role_.distance * (wraps ? 1 - role_.stages : 1);
  }
  Transfer send(std::int64_t distance) const {
    out_.needs_own("outgoing", bytes_);
    return {true, distance, "outgoing"};
  }
  Transfer receive(std::int64_t distance) const {
    out_.needs_own("incoming", bytes_);
    return {false, distance, "incoming"};
  }
  Transfer first_input(bool is_forward) const {
    return receives(0, is_forward) ? receive(towards(is_forward ? -1 : 1)) : Transfer{};
  }

  void start(const Transfer& sent, const Transfer& received, const char* work, bool& waits) {
    waits = write_transfers({sent, received}, bytes_, work, out_);
  }
  void wait(const char* work, bool& waits) {
    if (waits) out_.wait(work);
    waits = false;
  }
  /// Sends what the i-th pass made, and receives what the next one needs.
  void hand_on(std::int64_t i, bool is_forward, const char* work, bool& waits) {
    const std::int64_t to = towards(is_forward ? 1 : -1), from = towards(is_forward ? -1 : 1);
    start(sends(i, is_forward) ? send(to) : Transfer{},
          receives(i + 1, is_forward) ? receive(from) : Transfer{}, work, waits);
  }

  void forward() {
    wait("activations", forward_waits_);
    call_of_stage(step_, out_);
    if (receives(forwards_, true)) join_parts(step_, bytes_, out_);
    decoder_.forward(micro_batch(forwards_), chunk(forwards_));
    hand_on(forwards_++, true, "activations", forward_waits_);
  }
  void backward() {
    wait("gradients", backward_waits_);
    call_of_stage(step_, out_);
    if (receives(backwards_, false)) join_parts(step_, bytes_, out_);
    const std::int64_t pass = micro_batch(backwards_);
    layout_.begin_pass(pass == 0, pass + 1 == step_.passes);
    decoder_.backward(pass, pass == 0, step_.chunks - 1 - chunk(backwards_));
    const bool waits = step_.reduce_every_pass || backwards_ + 1 == all_;
    if (waits && !reduces_behind(step_)) layout_.end_pass();
    hand_on(backwards_++, false, "gradients", backward_waits_);
  }
  void alternate(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      forward();
      backward();
    }
  }

  const TrainingStep& step_;
  const StageRole& role_;
  Decoder& decoder_;
  Layout& layout_;
  Writer& out_;
  std::int64_t bytes_;
  std::int64_t turn_;  ///< passes of chunks until the same chunk begins again
  std::int64_t all_;   ///< passes of chunks in one direction
  std::int64_t forwards_ = 0, backwards_ = 0;
  bool forward_waits_ = false, backward_waits_ = false;
};

}  // namespace

void write_interleaved(const TrainingStep& step, const StageRole& role, Decoder& decoder,
                       Layout& layout, Writer& out) {
  InterleavedStage{step, role, decoder, layout, out}.run();
}

}  // namespace foretrace::training
