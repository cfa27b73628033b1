#include "scenarios/training_step/description.h"

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

}  // namespace

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
  const auto tokens = static_cast<double>(step.tokens() * step.passes * step.data);
  const auto products = static_cast<double>(model.layers * block_products(model, model.top_k) +
                                            model.vocab * model.hidden);
  const auto attention = 2.0 * static_cast<double>(model.layers * model.q_width()) *
                         static_cast<double>(step.sequence);
  return 3 * tokens * (2 * products + attention);
}

}  // namespace foretrace::training
