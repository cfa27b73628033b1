#include <fmt/format.h>

#include <algorithm>

#include "scenarios/training_step/read.h"

namespace foretrace::training {
namespace {

/// "4, 8, 16": degrees up to 64 that divide all of these.
std::string degrees_for(std::initializer_list<std::int64_t> sizes) {
  constexpr std::int64_t kMost = 64;
  std::string text;
  for (std::int64_t degree = 1; degree <= kMost; ++degree) {
    if (std::ranges::any_of(sizes, [&](std::int64_t size) { return size % degree != 0; })) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(degree);
  }
  return text;
}

class Checker {
 public:
  Checker(Reader& reader, const TrainingStep& step, const YamlNode& node)
      : reader_{reader}, step_{step}, model_{step.model}, node_{node} {}

  void run() {
    if (const auto problem = what_is_too_large(step_)) {
      return error(*problem, "is a size in another unit than it should be?");
    }
    splits("heads", model_.heads);
    if (model_.kv_heads < model_.heads || model_.heads % step_.tensor == 0) {
      splits("key and value heads", model_.kv_heads);
    }
    splits("the feed-forward width", model_.ffn);
    splits("the vocabulary", model_.vocab);
    if (model_.heads % model_.kv_heads != 0) {
      error(fmt::format("{} heads do not share {} key and value heads evenly", model_.heads,
                        model_.kv_heads),
            "'kv_heads' divides 'heads'");
    }
    pipeline();
    if (step_.sequence_parallel && step_.sequence % step_.tensor != 0) {
      error(fmt::format("sequences of {} tokens cannot be split over {} tensor parallel ranks",
                        step_.sequence, step_.tensor),
            fmt::format("'sequence' as a multiple of {}", step_.tensor));
    }
    if (step_.tensor > 1 && step_.autocasts()) {
      error("tensor parallel is expanded for bfloat16 parameters only",
            "'precision: {parameters: bfloat16}', or 'sharding: fsdp' beside it");
    }
    if (step_.sharding == Sharding::Fsdp && step_.pipeline > 1) {
      error("'fsdp' gathers parameters for every micro-batch of a pipeline: not expanded",
            "'sharding: zero1' or 'pipeline: 1'");
    }
  }

 private:
  void error(const std::string& message, const std::string& hint) {
    reader_.problems.error(node_, message, hint);
  }
  void splits(const char* what, std::int64_t size) {
    if (size % step_.tensor == 0) return;
    error(fmt::format("{} {} cannot be split over {} tensor parallel ranks", size, what,
                      step_.tensor),
          "'tensor' may be " +
              degrees_for({model_.heads, model_.kv_heads, model_.ffn, model_.vocab}));
  }
  void pipeline() {
    if (model_.layers % step_.pipeline != 0) {
      error(fmt::format("{} layers do not fill {} pipeline stages evenly", model_.layers,
                        step_.pipeline),
            "'pipeline' may be " + degrees_for({model_.layers}));
    }
    if (step_.pipeline > 1 && step_.passes < step_.pipeline) {
      error(fmt::format("{} micro-batches leave stages of a pipeline of {} idle", step_.passes,
                        step_.pipeline),
            fmt::format("'passes' of at least {}", step_.pipeline));
    }
  }

  Reader& reader_;
  const TrainingStep& step_;
  const Architecture& model_;
  const YamlNode& node_;
};

}  // namespace

void check(Reader& reader, const TrainingStep& step, const YamlNode& node) {
  Checker{reader, step, node}.run();
}

}  // namespace foretrace::training
