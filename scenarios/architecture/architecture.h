// A decoder as it decides time and memory: plain values. A config.json is read into one by
// config.h, what follows from the sizes is counts.h's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace foretrace::training {

/// What may differ from layer to layer.
struct Layer {
  std::int64_t window = 0;   ///< tokens that one attends to, itself among them; 0: all before it
  bool is_chunked = false;   ///< the window does not slide: tokens of a chunk see its beginning on
  bool has_experts = false;  ///< else one feed-forward network, Architecture::dense_width() wide
  bool rotates = true;       ///< queries and keys
  bool is_linear = false;    ///< Architecture::linear instead of attention
  bool indexes = false;      ///< Architecture::indexer chooses keys here, else a layer before did

  bool operator==(const Layer&) const = default;
};

/// Norms of queries and keys: none, with one weight for all heads (Qwen3), with a weight of the
/// whole width (OLMo 2), or without a weight (Llama 4).
enum class QkNorm : std::uint8_t { None, Head, Width, Plain };

/// Queries, and keys with values, are products of short vectors: DeepSeek's latent attention.
/// Sizes in elements; `keys` 0: there is none.
struct Latent {
  std::int64_t queries = 0;  ///< of a token's short vector; 0: queries are one product
  std::int64_t keys = 0;
  std::int64_t rotary = 0;  ///< of a head's width: those that are rotated, keys' for all heads once
};

/// Linear attention by a gated delta rule (Qwen3-Next, Qwen3.5): each head of values has a matrix
/// of `key_dim` x `value_dim` that tokens update, instead of keys of all tokens. Sizes in elements.
struct Linear {
  std::int64_t key_heads = 0, value_heads = 0, key_dim = 0, value_dim = 0;
  std::int64_t kernel = 0;  ///< of the convolution over tokens before
  bool joined = true;       ///< two products in front, not four

  std::int64_t key_width() const { return key_heads * key_dim; }
  std::int64_t value_width() const { return value_heads * value_dim; }
  std::int64_t convolved() const { return 2 * key_width() + value_width(); }
  std::int64_t state() const { return value_heads * key_dim * value_dim; }  ///< of a sequence
};

/// A score of every key for each query, by small heads; attention goes to the best `keys` of them
/// (DeepSeek's sparse attention). `keys` 0: there is none.
struct Indexer {
  std::int64_t heads = 0, head_dim = 0, keys = 0;
};

/// Sizes in elements.
struct Architecture {
  std::string name;
  std::string type;        ///< transformers' model_type: "llama"
  std::string activation;  ///< as its configuration names it; empty: the type's own
  std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocab = 0;
  std::int64_t positions = 0;                ///< learned positions; 0: rotary ones
  bool is_placeless = false;                 ///< neither: ALiBi
  double rotary_share = 1;                   ///< of a head's width that is rotated
  bool gated = true;                         ///< SwiGLU: gate, up and down; else up and down
  bool rms_norm = true;                      ///< else LayerNorm
  std::optional<std::int64_t> norm_tensors;  ///< of a norm; usual: RMSNorm 1, LayerNorm 2
  std::int64_t norms = 2;       ///< of a layer: 1 for both branches, before each, or behind, too
  bool embedding_norm = false;  ///< behind the embedding
  QkNorm qk_norm = QkNorm::None;
  bool biases = false;  ///< of the four linear layers
  bool qkv_bias = false, output_bias = false, mlp_bias = false, head_bias = false;
  bool expert_bias = false;    ///< of experts and of what chooses them
  bool joined_qkv = false;     ///< one product for query, key and value
  bool tied = false;           ///< the head's weight is the embedding
  bool sinks = false;          ///< a number for each head in the softmax's sum
  bool caps_logits = false;    ///< divided, tanh, multiplied before the loss
  bool squares = false;        ///< the activation's square: a kernel more
  std::int64_t value_dim = 0;  ///< of a head's values; 0: as wide as its keys
  Latent latent;
  Linear linear;  ///< of layers that have it
  Indexer indexer;
  bool attention_gate = false;  ///< queries' product makes as many gates for what attention gives
  std::int64_t window = 0;      ///< as of Layer, of all layers
  std::int64_t experts = 0;     ///< of each layer that has any, `ffn` wide; 0: none has
  std::int64_t top_k = 0;       ///< experts that a token goes to
  std::int64_t shared_ffn = 0;  ///< width of the expert that every token goes to; 0: none
  bool shared_gate = false;     ///< a number for each token weighs that one
  std::int64_t dense_ffn = 0;   ///< width in layers without experts, where others have some
  std::string dropout;          ///< what a config.json says of it: "resid_pdrop 0.1"
  std::vector<Layer> kinds;     ///< of each layer, where they differ; empty: all are alike

  Layer layer(std::int64_t index) const {
    if (index < static_cast<std::int64_t>(kinds.size()))
      return kinds[static_cast<std::size_t>(index)];
    return {window, false, experts > 0, positions == 0 && !is_placeless};
  }
  std::int64_t q_width() const { return heads * head_dim; }
  std::int64_t kv_width() const { return kv_heads * head_dim; }                      ///< of keys
  std::int64_t value_width() const { return value_dim > 0 ? value_dim : head_dim; }  ///< of a head
  std::int64_t gates() const { return gated ? 3 : 2; }  ///< matrices of a feed-forward network
  std::int64_t dense_width() const { return experts > 0 && dense_ffn > 0 ? dense_ffn : ffn; }
  std::int64_t norm_parts() const { return norm_tensors.value_or(rms_norm ? 1 : 2); }
  bool has_qkv_bias() const { return biases || qkv_bias; }
  bool has_output_bias() const { return biases || output_bias; }
  bool has_mlp_bias() const { return biases || mlp_bias; }
};

}  // namespace foretrace::training
