#include "scenarios/architecture/counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace foretrace::training {
namespace {

constexpr std::int64_t kMostExperts = 65'536;
constexpr double kMostParameters = 1LL << 50;  // their bytes, and sums of a few, fit into 64 bits

/// Adds one linear layer, and its bias where it has one.
void add_linear(LayerParameters& sum, std::int64_t weights, std::int64_t bias) {
  sum.products += weights;
  sum.rest += bias;
  sum.tensors += bias > 0 ? 2 : 1;
}

void add_norm(LayerParameters& sum, std::int64_t width, std::int64_t parts) {
  sum.rest += width * parts;
  sum.tensors += parts;
}

/// Where heads are split the short vectors are not: every rank has them whole.
void add_latent(LayerParameters& sum, const Architecture& model, std::int64_t tensor) {
  const Latent& latent = model.latent;
  const std::int64_t q = model.q_width() / tensor;
  const bool biased = model.has_qkv_bias();
  if (latent.queries > 0) {
    add_linear(sum, model.hidden * latent.queries, biased ? latent.queries : 0);
    add_norm(sum, latent.queries, 1);
    add_linear(sum, latent.queries * q, 0);
  } else {
    add_linear(sum, model.hidden * q, 0);
  }
  const std::int64_t down = latent.keys + latent.rotary;
  add_linear(sum, model.hidden * down, biased ? down : 0);
  add_norm(sum, latent.keys, 1);
  const std::int64_t up = model.head_dim - latent.rotary + model.value_width();
  add_linear(sum, latent.keys * (model.heads / tensor) * up, 0);
}

/// Of the gated delta rule, split by heads.
void add_linear_attention(LayerParameters& sum, const Architecture& model, std::int64_t tensor) {
  const Linear& linear = model.linear;
  const std::int64_t values = linear.value_width() / tensor, heads = linear.value_heads / tensor;
  const std::int64_t convolved = linear.convolved() / tensor;
  if (linear.joined) {
    add_linear(sum, model.hidden * (convolved + values), 0);
    add_linear(sum, model.hidden * 2 * heads, 0);
  } else {
    for (const std::int64_t width : {convolved, values, heads, heads}) {
      add_linear(sum, model.hidden * width, 0);
    }
  }
  add_norm(sum, convolved * linear.kernel, 1);
  add_norm(sum, heads, 2);  // decay and step
  add_norm(sum, linear.value_dim, 1);
  add_linear(sum, values * model.hidden, 0);
}

/// On every rank whole.
void add_indexer(LayerParameters& sum, const Architecture& model) {
  const Indexer& indexer = model.indexer;
  add_linear(sum, model.latent.queries * indexer.heads * indexer.head_dim, 0);
  add_linear(sum, model.hidden * indexer.head_dim, 0);
  add_norm(sum, indexer.head_dim, 2);
  add_linear(sum, model.hidden * indexer.heads, 0);
}

void add_attention(LayerParameters& sum, const Architecture& model, const Layer& layer,
                   std::int64_t tensor) {
  if (layer.is_linear) return add_linear_attention(sum, model, tensor);
  if (layer.indexes) add_indexer(sum, model);
  const std::int64_t gates = model.attention_gate ? 2 : 1;
  const std::int64_t q = model.q_width() / tensor;
  const std::int64_t k = model.kv_width() / tensor;
  const std::int64_t v = model.kv_heads * model.value_width() / tensor;
  const bool biased = model.has_qkv_bias();
  if (model.latent.keys > 0) {
    add_latent(sum, model, tensor);
  } else if (model.joined_qkv) {
    add_linear(sum, model.hidden * (gates * q + k + v), biased ? gates * q + k + v : 0);
  } else {
    for (const std::int64_t width : {gates * q, k, v}) {
      add_linear(sum, model.hidden * width, biased ? width : 0);
    }
  }
  if (model.qk_norm == QkNorm::Head || model.qk_norm == QkNorm::Width) {
    const bool is_head = model.qk_norm == QkNorm::Head;
    add_norm(sum, is_head ? model.head_dim : q, model.norm_parts());
    add_norm(sum, is_head ? model.head_dim : k, model.norm_parts());
  }
  if (model.sinks) add_norm(sum, model.heads / tensor, 1);
  add_linear(sum, model.heads * model.value_width() / tensor * model.hidden,
             model.has_output_bias() ? model.hidden : 0);
}

void add_feed_forward(LayerParameters& sum, const Architecture& model, std::int64_t width) {
  const bool biased = model.has_mlp_bias();
  for (std::int64_t i = 0; i + 1 < model.gates(); ++i) {
    add_linear(sum, model.hidden * width, biased ? width : 0);
  }
  add_linear(sum, model.hidden * width, biased ? model.hidden : 0);
}

std::int64_t embeddings(const Architecture& model) {
  return model.vocab * model.hidden * (model.tied ? 1 : 2) + (model.head_bias ? model.vocab : 0) +
         model.positions * model.hidden +
         model.hidden * model.norm_parts() * (model.embedding_norm ? 2 : 1);
}

std::int64_t with_experts(const Architecture& model, std::int64_t experts) {
  std::int64_t all = embeddings(model);
  for (std::int64_t i = 0; i < model.layers; ++i) {
    all += layer_parameters(model, model.layer(i), 1, experts).all();
  }
  return all;
}

std::string count_text(std::int64_t count) {
  constexpr double kBillion = 1e9, kMillion = 1e6;
  const auto value = static_cast<double>(count);
  if (value >= 1000 * kBillion) return fmt::format("{:.4g} T", value / (1000 * kBillion));
  if (value >= kBillion) return fmt::format("{:.4g} B", value / kBillion);
  return fmt::format("{:.4g} M", value / kMillion);
}

/// "window of 4096 in 20 of 40 layers", "no window".
std::string windows(const Architecture& model) {
  std::map<std::pair<std::int64_t, bool>, std::int64_t> counts;
  for (std::int64_t i = 0; i < model.layers; ++i) {
    const Layer layer = model.layer(i);
    if (layer.window > 0) ++counts[{layer.window, layer.is_chunked}];
  }
  std::string text;
  for (const auto& [kind, layers] : counts) {
    text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", kind.second ? "chunks" : "window",
                        kind.first);
    if (layers < model.layers) text += fmt::format(" in {} of {} layers", layers, model.layers);
  }
  return text.empty() ? "no window" : text;
}

/// "linear attention in 45 of 60 layers, ", "an indexer for 2048 keys, ", or nothing.
std::string other_attention(const Architecture& model) {
  std::int64_t linear = 0;
  for (std::int64_t i = 0; i < model.layers; ++i) linear += model.layer(i).is_linear ? 1 : 0;
  std::string text;
  if (linear > 0) text = fmt::format("linear attention in {} of {} layers, ", linear, model.layers);
  if (model.indexer.keys > 0) text += fmt::format("an indexer for {} keys, ", model.indexer.keys);
  return text;
}

std::string experts(const Architecture& model) {
  if (model.experts == 0) return {};
  std::int64_t layers = 0;
  for (std::int64_t i = 0; i < model.layers; ++i) layers += model.layer(i).has_experts ? 1 : 0;
  std::string text = fmt::format("{} experts, {} for a token", model.experts, model.top_k);
  if (model.shared_ffn > 0) text += fmt::format(" and a shared one {} wide", model.shared_ffn);
  if (layers < model.layers) text += fmt::format(", in {} of {} layers", layers, model.layers);
  return text + ", ";
}

}  // namespace

LayerParameters layer_parameters(const Architecture& model, const Layer& layer, std::int64_t tensor,
                                 std::int64_t experts) {
  LayerParameters sum;
  for (std::int64_t i = 0; i < model.norms; ++i) add_norm(sum, model.hidden, model.norm_parts());
  add_attention(sum, model, layer, tensor);
  if (!layer.has_experts) {
    add_feed_forward(sum, model, model.dense_width() / tensor);
    return sum;
  }
  add_linear(sum, model.hidden * model.experts, model.expert_bias ? model.experts : 0);
  const std::int64_t width = model.ffn / tensor;
  const std::int64_t bias = model.expert_bias ? (model.gates() - 1) * width + model.hidden : 0;
  sum.expert_products = experts * model.gates() * model.hidden * width;
  sum.experts = sum.expert_products + experts * bias;
  if (model.shared_ffn > 0) {
    add_feed_forward(sum, model, model.shared_ffn / tensor);
    if (model.shared_gate) add_linear(sum, model.hidden, 0);
  }
  return sum;
}

std::int64_t parameter_count(const Architecture& model) {
  return with_experts(model, model.experts);
}

std::int64_t active_parameters(const Architecture& model) {
  return with_experts(model, std::min(model.experts, model.top_k));
}

double rough_parameter_count(const Architecture& model) {
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const double heads = number(model.heads) * number(std::max(model.head_dim, model.value_dim));
  const double kv_heads = number(model.kv_heads) * number(model.head_dim);
  const double hidden = number(model.hidden), gates = number(model.gates());
  const double latent = number(model.latent.queries) + 2 * number(model.latent.keys);
  const double width = number(model.ffn) * std::max(1.0, number(model.experts)) +
                       number(model.dense_ffn) + number(model.shared_ffn);
  const double keys = number(model.linear.key_heads) * number(model.linear.key_dim);
  const double values = number(model.linear.value_heads) * number(model.linear.value_dim);
  const double convolved = 2 * keys + values;
  const double linear = hidden * (convolved + 2 * values) +
                        convolved * number(model.linear.kernel) +
                        values * number(model.linear.key_dim);
  const double scores = number(model.indexer.heads) * number(model.indexer.head_dim);
  return number(model.layers) *
             (hidden * (2 * heads + 2 * kv_heads + latent + gates * width + number(model.experts)) +
              2 * latent * heads + linear + (latent + hidden) * scores) +
         hidden * (2 * number(model.vocab) + number(model.positions));
}

std::optional<std::string> what_is_too_large(const Architecture& model) {
  if (model.experts > kMostExperts) {
    return fmt::format("{} experts; at most {} are expanded", model.experts, kMostExperts);
  }
  const double parameters = rough_parameter_count(model);
  if (parameters > kMostParameters) return fmt::format("{:.3g} parameters", parameters);
  return std::nullopt;
}

double attended(const Layer& layer, std::int64_t sequence, std::int64_t excess) {
  const auto all = static_cast<double>(sequence), more = static_cast<double>(excess);
  const auto window = static_cast<double>(std::min(layer.window, sequence));
  if (layer.window == 0 || layer.window >= sequence) return all * (all + more) / 2;
  if (layer.is_chunked) return all * (window + more) / 2;
  // Row i looks at i + excess/2, but at no more than its window and a cut tile at both ends.
  const double growing = std::min(all, window + more / 2);
  return growing * (growing + more) / 2 + (all - growing) * (window + more);
}

std::string understood(const Architecture& model) {
  std::string text = count_text(parameter_count(model)) + " parameters";
  if (model.experts > 0) text += fmt::format(" ({} active)", count_text(active_parameters(model)));
  text += fmt::format(", {} layers, hidden {}, {} heads of {}", model.layers, model.hidden,
                      model.heads, model.head_dim);
  if (model.latent.keys > 0) {
    text += fmt::format(" (values {}, latent {})", model.value_width(), model.latent.keys);
  } else if (model.kv_heads != model.heads) {
    text += fmt::format(" ({} of keys)", model.kv_heads);
  }
  return text + fmt::format(", {}{}{}, {}", experts(model), other_attention(model),
                            model.tied ? "tied" : "not tied", windows(model));
}

}  // namespace foretrace::training
