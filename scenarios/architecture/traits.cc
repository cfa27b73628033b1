#include "scenarios/architecture/traits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace foretrace::training {
namespace {

const Keys kLayers = {"num_hidden_layers", "n_layer", "n_layers", "num_layers"};
const Keys kExperts = {"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts",
                       "ffn_config.moe_num_experts"};

std::string trait_word(const Json& type, const char* trait, const char* otherwise) {
  const auto found = type.find(trait);
  return found == type.end() || !found->is_string() ? otherwise : found->get<std::string>();
}

void read_sizes(ConfigValues& values, const Replaced& replaced, Architecture& model) {
  const std::int64_t layers =
      replaced.layers ? (values.size(kLayers), *replaced.layers) : values.needed(kLayers);
  model.layers = layers;
  model.hidden = values.needed({"hidden_size", "n_embed", "n_embd", "d_model"});
  model.heads = values.needed({"num_attention_heads", "n_head", "n_heads", "num_heads"});
  const std::int64_t vocab =
      replaced.vocab ? 0 : values.needed({"vocab_size", "padded_vocab_size"});
  values.know("vocab_size");
  model.vocab = replaced.vocab.value_or(vocab);
  model.kv_heads = values.size({"num_key_value_heads", "num_kv_heads", "n_head_kv",
                                "attn_config.kv_n_heads", "multi_query_group_num"});
  if (model.kv_heads == 0) model.kv_heads = model.heads;
  model.head_dim = values.size({"head_dim", "kv_channels"});
  if (model.head_dim > 0 || model.heads == 0) return;
  model.head_dim = model.hidden / model.heads;
  if (model.hidden % model.heads != 0 && values.find({"qk_nope_head_dim"}) == nullptr) {
    values.warning(fmt::format("a hidden size of {} is not shared evenly by {} heads: each has {}",
                               model.hidden, model.heads, model.head_dim),
                   "'head_dim' says it");
  }
}

void read_feed_forward(ConfigValues& values, const Json& type, Architecture& model) {
  model.ffn = values.size(
      {"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "ffn_config.ffn_hidden_size"});
  if (model.ffn == 0) {
    model.ffn = type.value("ffn_per_hidden", std::int64_t{0}) * model.hidden;
    if (model.ffn == 0) model.ffn = values.needed({"intermediate_size"});
  }
  model.gated = has_trait(values, type, "gated");
  model.experts = type.contains("experts") ? values.size(kExperts) : 0;
  if (model.experts == 0) return;
  model.top_k = values.needed({"num_experts_per_tok", "num_experts_per_token", "moe_k",
                               "ffn_config.moe_top_k", "moe_topk"});
  model.dense_ffn = values.size({"intermediate_size_mlp"});
  if (model.dense_ffn == 0) model.dense_ffn = model.ffn;
  if (const auto each = values.size({"moe_intermediate_size"}); each > 0) model.ffn = each;
  const std::int64_t shared =
      values.size({"shared_expert_intermediate_size", "shared_intermediate_size",
                   "n_shared_experts", "moe_num_shared_experts", "num_shared_experts"});
  // A width, or how many as wide as the others.
  const bool is_width =
      values.find({"shared_expert_intermediate_size", "shared_intermediate_size"}) != nullptr;
  model.shared_ffn = is_width ? shared : shared * model.ffn;
  if (has_trait(values, type, "shared_expert")) model.shared_ffn = model.ffn;
  model.shared_gate = model.shared_ffn > 0 && has_trait(values, type, "shared_gate");
  model.expert_bias = has_trait(values, type, "expert_bias");
}

void read_latent(ConfigValues& values, Architecture& model) {
  model.latent.queries = values.size({"q_lora_rank"});
  model.latent.keys = values.needed({"kv_lora_rank"});
  model.latent.rotary = values.size({"qk_rope_head_dim"});
  model.head_dim = values.needed({"qk_nope_head_dim"}) + model.latent.rotary;
  model.value_dim = values.needed({"v_head_dim"});
  model.kv_heads = model.heads;
  for (const char* const key : {"head_dim", "qk_head_dim", "num_key_value_heads"}) values.know(key);
}

void read_linear(ConfigValues& values, const Json& type, Architecture& model) {
  model.linear = {.key_heads = values.needed({"linear_num_key_heads"}),
                  .value_heads = values.needed({"linear_num_value_heads"}),
                  .key_dim = values.needed({"linear_key_head_dim"}),
                  .value_dim = values.needed({"linear_value_head_dim"}),
                  .kernel = values.needed({"linear_conv_kernel_dim"}),
                  .joined = has_trait(values, type, "linear_joined")};
}

void read_indexer(ConfigValues& values, Architecture& model) {
  model.indexer = {.heads = values.needed({"index_n_heads"}),
                   .head_dim = values.needed({"index_head_dim"}),
                   .keys = values.needed({"index_topk"})};
}

void read_norms(ConfigValues& values, const Json& type, Architecture& model) {
  const std::string kind = trait_word(type, "norm", "rms");
  model.rms_norm = kind == "rms";
  if (kind == "layer_without_bias") model.norm_tensors = 1;
  if (kind == "plain") model.norm_tensors = 0;
  model.norms = type.value("norms", 2);
  if (type.contains("parallel")) {
    // One norm for both branches, but where the type has one for each.
    const bool is_parallel = has_trait(values, type, "parallel");
    if (is_parallel) model.norms = has_trait(values, type, "parallel_norms") ? 2 : 1;
  }
  model.embedding_norm = has_trait(values, type, "embedding_norm");
  if (!has_trait(values, type, "qk_norm")) return;
  const std::string norm = trait_word(type, "qk_norm_kind", "head");
  model.qk_norm = norm == "width" ? QkNorm::Width : norm == "plain" ? QkNorm::Plain : QkNorm::Head;
}

void read_positions(ConfigValues& values, const Json& type, Architecture& model) {
  const Keys longest{"n_positions", "max_position_embeddings", "n_ctx", "max_seq_len"};
  const std::string kind = trait_word(type, "positions", "rotary");
  if (kind == "learned") {
    model.positions = values.needed(longest) + type.value("more_positions", 0);
    return;
  }
  for (const std::string_view key : longest) values.know(key);
  model.is_placeless = kind == "none" || has_trait(values, type, "alibi");
  const double share = values.real(
      {"partial_rotary_factor", "rotary_pct", "rope_pct", "rope_parameters.partial_rotary_factor"},
      type.value("rotary", 1.0));
  const std::int64_t width = values.size({"rotary_dim"});
  model.rotary_share = width > 0
                           ? static_cast<double>(width) /
                                 static_cast<double>(std::max<std::int64_t>(1, model.head_dim))
                           : share;
  model.rotary_share = std::clamp(model.rotary_share, 0.0, 1.0);
}

void read_activation(ConfigValues& values, Architecture& model) {
  const std::string name =
      values.word({"hidden_act", "hidden_activation", "activation_function", "activation"});
  model.activation = name;
  constexpr std::array kOneKernel{"silu", "swish",  "gelu", "gelu_pytorch_tanh", "relu", "sigmoid",
                                  "tanh", "swiglu", ""};
  if (std::ranges::find(kOneKernel, name) != kOneKernel.end()) return;
  model.squares = name == "relu2";
  if (model.squares) return;
  constexpr std::array kPython{"gelu_new", "gelu_fast",     "gelu_python", "quick_gelu",
                               "gelu_10",  "gelu_accurate", "xielu"};
  const bool is_python = std::ranges::find(kPython, name) != kPython.end();
  values.warning(
      fmt::format("activation '{}' is counted as one kernel", name),
      is_python ? "transformers computes it in Python, with up to eight kernels of the layer's "
                  "width each way, where nothing fuses them"
                : "it is none that foretrace knows");
}

void read_dropout(ConfigValues& values, Architecture& model) {
  for (const char* const key :
       {"attn_pdrop", "attention_dropout", "attn_config.attn_pdrop", "resid_pdrop", "resid_dropout",
        "residual_dropout", "hidden_dropout", "dropout", "embd_pdrop", "emb_pdrop", "embed_dropout",
        "embedding_dropout"}) {
    const double share = values.real({key}, 0);
    if (share == 0) continue;
    model.dropout += fmt::format("{}{} {}", model.dropout.empty() ? "" : ", ", key, share);
  }
}

}  // namespace

bool has_trait(ConfigValues& values, const Json& type, const char* trait) {
  const auto found = type.find(trait);
  if (found == type.end()) return false;
  if (found->is_boolean()) return found->get<bool>();
  const std::string key = found->get<std::string>();
  if (key.starts_with('!')) return !values.flag({std::string_view{key}.substr(1)}, false);
  return values.flag({key}, false);
}

Architecture read_traits(ConfigValues& values, const Json& type, const Replaced& replaced) {
  Architecture model;
  read_sizes(values, replaced, model);
  if (type.value("latent", false)) read_latent(values, model);
  if (type.value("linear", false)) read_linear(values, type, model);
  if (type.value("indexer", false)) read_indexer(values, model);
  model.attention_gate = has_trait(values, type, "attention_gate");
  // Falcon's number of key heads counts in its new architecture only.
  if (has_trait(values, type, "one_kv_head") && !has_trait(values, type, "many_kv_heads")) {
    model.kv_heads = 1;
  }
  read_feed_forward(values, type, model);
  read_norms(values, type, model);
  read_positions(values, type, model);
  read_activation(values, model);
  read_dropout(values, model);
  model.qkv_bias = has_trait(values, type, "qkv_bias");
  model.output_bias = has_trait(values, type, "output_bias");
  model.mlp_bias = has_trait(values, type, "mlp_bias");
  model.head_bias = has_trait(values, type, "head_bias");
  model.biases = model.qkv_bias && model.output_bias && model.mlp_bias && model.experts == 0;
  model.joined_qkv = type.value("joined_qkv", false);
  model.sinks = type.value("sinks", false);
  model.caps_logits = values.real({"final_logit_softcapping"}, 0) > 0;
  const bool ties = values.flag({"tie_word_embeddings"}, type.value("ties", false));
  model.tied = replaced.tied.value_or(ties);
  return model;
}

}  // namespace foretrace::training
