#include "scenarios/serving/description.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/architecture/counts.h"
#include "scenarios/program/product_type.h"

namespace foretrace::serving {
namespace {

constexpr std::int64_t kMillion = 1'000'000;

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
    case Precision::Int4:
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
  if (precision == Precision::Int4) return Scales::Packed;
  return precision == Precision::Float8 ? Scales::Row : Scales::Tensor;
}

std::string why_not_split(const training::Architecture& model, const Layout& layout) {
  const auto refuse = [](std::int64_t count, const char* what, std::int64_t gpus) {
    return fmt::format("{} {} cannot be split over {} GPUs", count, what, gpus);
  };
  const std::int64_t tensor = layout.tensor;
  if (layout.pipeline > model.layers) return refuse(model.layers, "layers", layout.pipeline);
  if (model.heads % tensor != 0) return refuse(model.heads, "heads", tensor);
  for (const std::int64_t heads : {model.linear.key_heads, model.linear.value_heads}) {
    if (heads % tensor != 0) return refuse(heads, "heads of linear attention", tensor);
  }
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
  if (layout.stage_gpus() % layout.expert != 0) {
    return fmt::format("'expert: {}' does not divide the {} GPUs", layout.expert,
                       layout.stage_gpus());
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
  const std::int64_t element = serving.float8_cache ? 1 : kHalf;
  std::int64_t layers = guesses_by_layer(serving) ? 1 : 0, indexed = 0;
  for (std::int64_t i = serving.first_layer(); i < model.layers; ++i) {
    layers += model.layer(i).is_linear ? 0 : 1;
    indexed += model.layer(i).indexes ? 1 : 0;
  }
  if (model.latent.keys > 0) {  // one short vector for all heads, on every GPU whole
    return layers * (model.latent.keys + model.latent.rotary) * element +
           indexed * index_bytes(model);
  }
  const std::int64_t heads = std::max<std::int64_t>(1, model.kv_heads / serving.layout.tensor);
  return layers * heads * (model.head_dim + model.value_width()) * element;
}

std::int64_t index_bytes(const training::Architecture& model) {
  return model.indexer.head_dim + kFloat;
}

std::int64_t state_bytes(const Serving& serving) {
  const training::Linear& linear = serving.model.linear;
  std::int64_t layers = 0;
  for (std::int64_t i = serving.first_layer(); i < serving.model.layers; ++i) {
    layers += serving.model.layer(i).is_linear ? 1 : 0;
  }
  const std::int64_t kept = std::max<std::int64_t>(0, linear.kernel - 1) * linear.convolved();
  return layers * (linear.state() * kFloat + kept * kHalf) / serving.layout.tensor;
}

std::int64_t weight_bytes(const Serving& serving) {
  const training::Architecture& model = serving.model;
  std::int64_t products = 0, rest = 0;
  const auto add_layer = [&](std::int64_t i) {
    const auto layer =
        training::layer_parameters(model, model.layer(i), serving.layout.tensor, model.experts);
    products += layer.products + layer.experts / serving.layout.stage_gpus();
    rest += layer.rest;
  };
  for (std::int64_t i = serving.first_layer(); i < model.layers; ++i) add_layer(i);
  if (guesses_by_layer(serving)) {
    add_layer(model.layers - 1);
    products += 2 * model.hidden * model.hidden / serving.layout.tensor;
  }
  // A pipeline's first stage has the words, its last one the head.
  const bool has_one = model.tied || serving.layout.pipeline > 1;
  const std::int64_t ends = model.vocab * model.hidden * (has_one ? 1 : 2) / serving.layout.tensor;
  return bytes_of(products, product_type(serving.precision), product_scales(serving.precision)) +
         2 * (rest + ends + model.hidden * model.norm_parts());
}

std::int64_t cache_tokens(const Serving& serving, std::int64_t gpu_bytes, std::int64_t workspace) {
  const Engine& engine = serving.engine;
  const std::int64_t own = weight_bytes(serving) + engine.max_requests * state_bytes(serving);
  const std::int64_t left = gpu_bytes / kMillion * engine.memory_ppm - own - workspace;
  const std::int64_t each = std::max<std::int64_t>(1, cache_bytes(serving));
  const bool is_ours = engine.kind == EngineKind::Foretrace;
  const std::int64_t most =
      engine.cache_tokens && !is_ours ? (gpu_bytes - own) / each : left / each;
  const std::int64_t tokens = std::min(most, engine.cache_tokens.value_or(most));
  return tokens - tokens % engine.block;
}

}  // namespace foretrace::serving
