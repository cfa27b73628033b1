// How gradients and parameters travel between data parallel ranks: what each framework puts
// between the calls of a forward and a backward pass. One class for each; its source is named
// there.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "scenarios/training_step/decoder.h"

namespace foretrace::training {

/// Hooks, and what is called once in a step.
class Layout : public Hooks {
 public:
  /// Before a backward pass; of several chunks the first or last one of each.
  virtual void begin_pass(bool /*is_first*/, bool /*is_last*/) {}
  /// Behind a backward pass; behind the last one gradients are complete for the optimizer.
  virtual void end_pass() {}
  /// Behind the optimizer.
  virtual void after_update() {}
  /// What lives outside of the passes: shards or whole parameters and moments.
  virtual void allocate(const Decoder& decoder) = 0;
};

std::unique_ptr<Layout> make_layout(const TrainingStep& step, Writer& out, Memory& memory);
std::unique_ptr<Layout> make_fsdp(const TrainingStep& step, Writer& out, Memory& memory);

}  // namespace foretrace::training
