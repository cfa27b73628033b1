#include "scenarios/training_step/description.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/architecture/counts.h"

namespace foretrace::training {
namespace {

constexpr std::int64_t kMostLayers = 4096;            // each is written out
constexpr std::int64_t kMostLoopedExperts = 100'000;  // of all layers, a few lines each
constexpr double kMostElements = 1LL
                                 << 50;    // of a tensor: bytes and sums of a few fit into 64 bits
constexpr double kMostTokens = 1LL << 50;  // of a step, over all processes

}  // namespace

std::optional<std::string> what_is_too_large(const TrainingStep& step) {
  const Architecture& model = step.model;
  if (model.layers > kMostLayers) {
    return fmt::format("{} layers; at most {} are expanded", model.layers, kMostLayers);
  }
  if (auto problem = what_is_too_large(model)) return problem;
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const double written = number(model.layers) * number(model.experts) / number(step.expert);
  if (step.expert_products == ExpertProducts::Loop && written > kMostLoopedExperts) {
    return fmt::format("{:.3g} experts one after the other; at most {} are expanded", written,
                       kMostLoopedExperts);
  }
  const double heads = number(std::max(model.heads, model.kv_heads)) *
                       number(std::max(model.head_dim, model.value_width()));
  const double widest =
      std::max({number(model.hidden), 2 * number(model.ffn), 2 * number(model.dense_ffn),
                2 * number(model.shared_ffn), 3 * heads, number(model.latent.queries),
                number(model.latent.keys) + number(model.latent.rotary)});
  const double tokens = number(step.sequence) * number(step.micro_batch);
  const double sent = tokens * std::max({1.0, number(model.top_k), number(model.experts)});
  const double rows = std::max({sent, number(model.vocab), number(model.positions)});
  const double largest = std::max({rows * widest, widest * widest, tokens * number(model.vocab),
                                   tokens * number(step.sequence) * number(model.heads),
                                   number(model.layers) * number(model.hidden) * widest});
  if (largest > kMostElements) return fmt::format("a tensor of {:.3g} elements", largest);
  const double all = tokens * number(step.passes) * number(step.data);
  if (all > kMostTokens) return fmt::format("{:.3g} tokens in a step", all);
  return std::nullopt;
}

std::optional<std::string> what_is_no_narrow_size(const TrainingStep& step) {
  if (!step.is_narrow()) return std::nullopt;
  constexpr std::int64_t kMultiple = 16;  // cuBLAS; gemm's m and k in a file, too
  const Architecture& model = step.model;
  const bool is_latent = model.latent.keys > 0;
  const std::int64_t keys_up =
      model.heads * (model.head_dim - model.latent.rotary + model.value_width());
  const std::int64_t joined = model.q_width() + 2 * model.kv_width();
  const bool joins = step.is_megatron_core() && !is_latent;
  for (const std::int64_t width :
       {model.hidden, model.q_width() / step.tensor,
        model.heads * model.value_width() / step.tensor,
        is_latent ? keys_up : (joins ? joined : model.kv_width()) / step.tensor,
        model.ffn / step.tensor, model.dense_ffn / step.tensor, model.shared_ffn / step.tensor,
        model.latent.queries, is_latent ? model.latent.keys : 0,
        is_latent ? model.latent.keys + model.latent.rotary : 0, step.tokens()}) {
    if (width % kMultiple == 0) continue;
    return fmt::format("{} is no multiple of {}: cuBLAS multiplies no others in less than 16 bits",
                       width, kMultiple);
  }
  return std::nullopt;
}

double model_flops(const TrainingStep& step) {
  const Architecture& model = step.model;
  const auto tokens = static_cast<double>(step.tokens() * step.passes * step.replicas());
  const auto sequences = tokens / static_cast<double>(step.sequence);
  const auto widths = static_cast<double>(model.heads * (model.head_dim + model.value_width()));
  double products = static_cast<double>(model.vocab * model.hidden), attention = 0;
  for (std::int64_t i = 0; i < model.layers; ++i) {
    const Layer layer = model.layer(i);
    const LayerParameters parameters = layer_parameters(model, layer, 1, model.top_k);
    products += static_cast<double>(parameters.products + parameters.expert_products);
    attention += 2 * widths * attended(layer, step.sequence);
  }
  return 3 * (2 * tokens * products + sequences * attention);
}

}  // namespace foretrace::training
