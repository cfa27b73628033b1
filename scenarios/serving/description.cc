#include "scenarios/serving/description.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/architecture/counts.h"
#include "scenarios/program/product_type.h"

namespace foretrace::serving {
namespace {

constexpr std::int64_t kMillion = 1'000'000;
constexpr std::int64_t kWorkspace = 3LL << 30;  // left to activations and graphs: hw/serving's

}  // namespace

bool guesses_by_layer(const Serving& serving) {
  return serving.engine.speculative && serving.engine.speculative->by_layer;
}

const char* engine_name(EngineKind kind) {
  switch (kind) {
    case EngineKind::Foretrace:
      return "foretrace";
    case EngineKind::Vllm:
      return "vllm";
    case EngineKind::Sglang:
      return "sglang";
    case EngineKind::TensorRtLlm:
      return "tensorrt-llm";
  }
  return "";
}

DataType product_type(Precision precision) {
  switch (precision) {
    case Precision::BFloat16:
      return DataType::BFloat16;
    case Precision::Float8:
      return DataType::Float8E4M3;
    case Precision::Float4:
      return DataType::Float4E2M1;
  }
  return DataType::BFloat16;
}

Scales product_scales(Precision precision) {
  if (precision == Precision::Float4) return Scales::Nv;
  return precision == Precision::Float8 ? Scales::Row : Scales::Tensor;
}

std::string why_not_split(const training::Architecture& model, const Layout& layout) {
  const auto refuse = [](std::int64_t count, const char* what, std::int64_t gpus) {
    return fmt::format("{} {} cannot be split over {} GPUs", count, what, gpus);
  };
  const std::int64_t tensor = layout.tensor;
  if (model.heads % tensor != 0) return refuse(model.heads, "heads", tensor);
  if (model.latent.keys == 0 && model.kv_heads % tensor != 0 && tensor % model.kv_heads != 0) {
    return refuse(model.kv_heads, "heads of keys", tensor);
  }
  if (model.experts == 0) {
    if (layout.expert > 1) return "'expert' is for networks of experts";
    if (layout.data > 1) {
      return "'data' is for networks of experts: without, groups are engines of their own, as "
             "'replicas'";
    }
    const std::int64_t width = model.dense_width();
    return width % tensor != 0 ? refuse(width, "columns of the feed-forward network", tensor) : "";
  }
  if (layout.gpus() % layout.expert != 0) {
    return fmt::format("'expert: {}' does not divide the {} GPUs", layout.expert, layout.gpus());
  }
  if (model.experts % layout.expert != 0) return refuse(model.experts, "experts", layout.expert);
  const std::int64_t share = layout.expert_tensor();
  return model.ffn % share != 0 ? refuse(model.ffn, "columns of an expert", share) : "";
}

Serving prompts_of(const Serving& serving) {
  Serving prompts = serving;
  prompts.layout = serving.apart->prefill;
  prompts.replicas = serving.apart->prefill_engines;
  prompts.apart.reset();
  return prompts;
}

std::int64_t cache_bytes(const Serving& serving) {
  const training::Architecture& model = serving.model;
  const std::int64_t element = serving.float8_cache ? 1 : 2;
  const std::int64_t layers = model.layers + (guesses_by_layer(serving) ? 1 : 0);
  if (model.latent.keys > 0) {  // one short vector for all heads, on every GPU whole
    return layers * (model.latent.keys + model.latent.rotary) * element;
  }
  const std::int64_t heads = std::max<std::int64_t>(1, model.kv_heads / serving.layout.tensor);
  return layers * heads * (model.head_dim + model.value_width()) * element;
}

std::int64_t weight_bytes(const Serving& serving) {
  const training::Architecture& model = serving.model;
  std::int64_t products = 0, rest = 0;
  const auto add_layer = [&](std::int64_t i) {
    const auto layer =
        training::layer_parameters(model, model.layer(i), serving.layout.tensor, model.experts);
    products += layer.products + layer.experts / serving.layout.gpus();
    rest += layer.rest;
  };
  for (std::int64_t i = 0; i < model.layers; ++i) add_layer(i);
  if (guesses_by_layer(serving)) {
    add_layer(model.layers - 1);
    products += 2 * model.hidden * model.hidden / serving.layout.tensor;
  }
  const std::int64_t ends =
      model.vocab * model.hidden * (model.tied ? 1 : 2) / serving.layout.tensor;
  return bytes_of(products, product_type(serving.precision), product_scales(serving.precision)) +
         2 * (rest + ends + model.hidden * model.norm_parts());
}

std::int64_t cache_tokens(const Serving& serving, std::int64_t gpu_bytes) {
  const Engine& engine = serving.engine;
  const std::int64_t left =
      gpu_bytes / kMillion * engine.memory_ppm - weight_bytes(serving) - kWorkspace;
  const std::int64_t each = std::max<std::int64_t>(1, cache_bytes(serving));
  const std::int64_t tokens = std::min(left / each, engine.cache_tokens.value_or(left / each));
  return tokens - tokens % engine.block;
}

}  // namespace foretrace::serving
