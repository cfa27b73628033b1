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
  for (const char* const key : {"num_local_experts", "n_routed_experts", "num_experts"}) {
    if (config.find(key) != nullptr) {
      config.problem(fmt::format("'{}': mixtures of experts are not expanded", key));
      return {};
    }
  }
  const std::string kind = config.word("model_type");
  const std::vector<std::string> llamas{"llama", "mistral", "qwen2", "qwen3", "smollm3", "olmo2"};
  if (kind != "gpt2" && std::ranges::find(llamas, kind) == llamas.end()) {
    std::vector<std::string> known = llamas;
    known.emplace_back("gpt2");
    reader.problems.error(at, fmt::format("{}: no decoder of model_type '{}' is known", file, kind),
                          suggest(kind, known));
    return {};
  }
  Architecture model = kind == "gpt2" ? like_gpt2(config) : like_llama(config);
  model.name = kind;
  return model;
}

}  // namespace foretrace::training
