#include "scenarios/training_step/description.h"

#include <fmt/format.h>

#include <algorithm>

namespace foretrace::training {
namespace {

std::int64_t norm_parameters(const Architecture& model) {
  return model.hidden * (model.rms_norm ? 1 : 2);
}

/// Weights of a layer's products, with so many experts of it.
std::int64_t block_products(const Architecture& model, std::int64_t experts) {
  const std::int64_t attention = model.hidden * (2 * model.q_width() + 2 * model.kv_width());
  if (model.experts == 0) return attention + model.gates() * model.hidden * model.ffn;
  return attention + model.hidden * model.experts +
         model.gates() * model.hidden * (experts * model.ffn + model.shared_ffn);
}

constexpr std::int64_t kMostLayers = 4096;  // each is written out
constexpr double kMostElements = 1LL
                                 << 50;    // of a tensor: bytes and sums of a few fit into 64 bits
constexpr double kMostTokens = 1LL << 50;  // of a step, over all processes

}  // namespace

std::optional<std::string> what_is_too_large(const TrainingStep& step) {
  const Architecture& model = step.model;
  if (model.layers > kMostLayers) {
    return fmt::format("{} layers; at most {} are expanded", model.layers, kMostLayers);
  }
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const double heads = number(std::max(model.heads, model.kv_heads)) * number(model.head_dim);
  const double widest = std::max({number(model.hidden), 2 * number(model.ffn), 3 * heads});
  const double tokens = number(step.sequence) * number(step.micro_batch);
  const double rows = std::max({tokens, number(model.vocab), number(model.positions)});
  const double largest = std::max({rows * widest, widest * widest, tokens * number(model.vocab),
                                   tokens * number(step.sequence) * number(model.heads),
                                   number(model.layers) * number(model.hidden) * widest});
  if (largest > kMostElements) return fmt::format("a tensor of {:.3g} elements", largest);
  const double all = tokens * number(step.passes) * number(step.data);
  if (all > kMostTokens) return fmt::format("{:.3g} tokens in a step", all);
  return std::nullopt;
}

std::int64_t parameter_count(const Architecture& model) {
  std::int64_t block = block_products(model, model.experts) + 2 * norm_parameters(model);
  if (model.biases) {
    block += model.q_width() + 2 * model.kv_width() + model.hidden;
    block += model.ffn * (model.gated ? 2 : 1) + model.hidden;
  }
  const std::int64_t ends = model.vocab * model.hidden * (model.tied ? 1 : 2) +
                            model.positions * model.hidden + norm_parameters(model);
  return model.layers * block + ends;
}

double model_flops(const TrainingStep& step) {
  const Architecture& model = step.model;
  const auto tokens = static_cast<double>(step.tokens() * step.passes * step.replicas());
  const auto products = static_cast<double>(model.layers * block_products(model, model.top_k) +
                                            model.vocab * model.hidden);
  const auto attention = 2.0 * static_cast<double>(model.layers * model.q_width()) *
                         static_cast<double>(step.sequence);
  return 3 * tokens * (2 * products + attention);
}

}  // namespace foretrace::training
