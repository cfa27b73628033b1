// config.json as transformers writes it. JSON is YAML too, so the scenario's reader takes it apart.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "scenarios/training_step/read.h"

namespace foretrace::training {
namespace {

class Config {
 public:
  Config(Reader& reader, const YamlNode& at, const YamlNode& root, const std::string& file)
      : reader_{reader}, at_{at}, root_{root}, file_{file} {}

  const YamlNode* find(std::string_view key) const {
    const auto found =
        std::ranges::find(root_.entries, key, [](const auto& e) { return e.key.text; });
    return found == root_.entries.end() || found->value.text == "null" ? nullptr : &found->value;
  }
  std::optional<std::int64_t> number(std::initializer_list<std::string_view> keys) {
    constexpr std::int64_t kMost = 1'000'000'000;
    for (const std::string_view key : keys) {
      const YamlNode* node = find(key);
      if (node == nullptr) continue;
      std::int64_t value = 0;
      const char* const end = node->text.data() + node->text.size();
      const auto [last, error] = std::from_chars(node->text.data(), end, value);
      if (error == std::errc{} && last == end && value > 0 && value <= kMost) return value;
      problem(fmt::format("'{}' is '{}': a whole number from 1 to {} is needed", key, node->text,
                          kMost));
      return 1;
    }
    return std::nullopt;
  }
  std::int64_t needed(std::initializer_list<std::string_view> keys) {
    if (const auto value = number(keys)) return *value;
    problem(fmt::format("there is no '{}'", *keys.begin()));
    return 1;
  }
  bool flag(std::string_view key, bool otherwise) const {
    const YamlNode* node = find(key);
    return node == nullptr ? otherwise : node->text == "true";
  }
  bool has_entries(std::string_view key) const {
    const YamlNode* node = find(key);
    return node != nullptr && !node->items.empty();
  }
  std::string word(std::string_view key) const {
    const YamlNode* node = find(key);
    return node == nullptr ? "" : node->text;
  }
  void problem(const std::string& what) {
    reader_.problems.error(at_, fmt::format("{}: {}", file_, what));
  }

 private:
  Reader& reader_;
  const YamlNode& at_;
  const YamlNode& root_;
  const std::string& file_;
};

Architecture like_gpt2(Config& config) {
  Architecture model;
  model.layers = config.needed({"n_layer", "num_hidden_layers"});
  model.hidden = config.needed({"n_embd", "hidden_size"});
  model.heads = model.kv_heads = config.needed({"n_head", "num_attention_heads"});
  model.head_dim = model.hidden / std::max<std::int64_t>(1, model.heads);
  model.ffn = config.number({"n_inner", "intermediate_size"}).value_or(4 * model.hidden);
  model.vocab = config.needed({"vocab_size"});
  model.positions = config.needed({"n_positions", "n_ctx", "max_position_embeddings"});
  model.gated = model.rms_norm = false;
  model.biases = model.joined_qkv = true;
  model.tied = config.flag("tie_word_embeddings", true);
  return model;
}

Architecture like_llama(Config& config) {
  Architecture model;
  model.layers = config.needed({"num_hidden_layers"});
  model.hidden = config.needed({"hidden_size"});
  model.heads = config.needed({"num_attention_heads"});
  model.kv_heads = config.number({"num_key_value_heads"}).value_or(model.heads);
  model.head_dim =
      config.number({"head_dim"}).value_or(model.hidden / std::max<std::int64_t>(1, model.heads));
  model.ffn = config.needed({"intermediate_size"});
  model.vocab = config.needed({"vocab_size"});
  model.tied = config.flag("tie_word_embeddings", false);
  return model;
}

/// Mixtral, OLMoE, Qwen2 MoE and Qwen3 MoE: every layer has experts.
Architecture like_mixtral(Config& config) {
  Architecture model = like_llama(config);
  model.experts = config.needed({"num_local_experts", "num_experts"});
  model.top_k = config.needed({"num_experts_per_tok"});
  model.ffn = config.needed({"moe_intermediate_size", "intermediate_size"});
  model.shared_ffn = config.number({"shared_expert_intermediate_size"}).value_or(0);
  if (config.number({"decoder_sparse_step"}).value_or(1) != 1 ||
      config.has_entries("mlp_only_layers")) {
    config.problem("some layers have experts and some have none: not expanded");
  }
  return model;
}

}  // namespace

Architecture read_config(Reader& reader, const YamlNode& at, const std::string& text,
                         const std::string& file) {
  Problems inside{file};
  const YamlNode root = parse_yaml(text, inside);
  if (inside.error_count() > 0 || root.kind != YamlNode::Kind::Map) {
    const Diagnostics found = inside.take();
    reader.problems.error(
        at, fmt::format("{}: {}", file,
                        found.empty() ? "this is no config.json" : found.front().message));
    return {};
  }
  Config config{reader, at, root, file};
  const std::string kind = config.word("model_type");
  using Form = Architecture (*)(Config&);
  const std::vector<std::pair<std::string, Form>> forms{
      {"gpt2", like_gpt2},         {"llama", like_llama},      {"mistral", like_llama},
      {"qwen2", like_llama},       {"qwen3", like_llama},      {"smollm3", like_llama},
      {"olmo2", like_llama},       {"mixtral", like_mixtral},  {"olmoe", like_mixtral},
      {"qwen2_moe", like_mixtral}, {"qwen3_moe", like_mixtral}};
  const auto form = std::ranges::find(forms, kind, [](const auto& one) { return one.first; });
  if (form == forms.end()) {
    std::vector<std::string> known;
    for (const auto& one : forms) known.push_back(one.first);
    reader.problems.error(at, fmt::format("{}: no decoder of model_type '{}' is known", file, kind),
                          suggest(kind, known));
    return {};
  }
  if (form->second == &like_llama) {
    for (const char* const key : {"num_local_experts", "n_routed_experts", "num_experts"}) {
      if (config.find(key) == nullptr) continue;
      config.problem(
          fmt::format("'{}': experts are expanded for model_type mixtral, olmoe, "
                      "qwen2_moe and qwen3_moe, not for '{}'",
                      key, kind));
      return {};
    }
  }
  Architecture model = form->second(config);
  model.name = kind;
  return model;
}

}  // namespace foretrace::training
