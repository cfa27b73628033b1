// What is not expanded: keys of a decoder, and types that are none.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "scenarios/architecture/decoder_types.h"
#include "scenarios/architecture/traits.h"
#include "scenarios/base/text/diagnostic.h"
#include "scenarios/base/text/words.h"

namespace foretrace::training {
namespace {

/// Null, false, 0, "", {} and []: the key is there to say that something is not.
bool says_nothing(const Json& value) {
  if (value.is_null()) return true;
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_number()) return value.get<double>() == 0;
  return value.empty() || (value.is_string() && value.get<std::string>().empty());
}

bool is_listed(const Json& list, const std::string& key) {
  return std::find(list.begin(), list.end(), key) != list.end();
}

/// "'quantization_config' (fp8)".
std::string named(const std::string& key, const Json& value) {
  if (value.is_object() && value.contains("quant_method") && value["quant_method"].is_string()) {
    return fmt::format("'{}' ({})", key, value["quant_method"].get<std::string>());
  }
  if (value.is_number() || value.is_boolean()) return fmt::format("'{}: {}'", key, value.dump());
  return fmt::format("'{}'", key);
}

}  // namespace

void warn_of_rest(ConfigValues& values) {
  const Json& effects = decoder_types().at("effects");
  const Json& no_effect = decoder_types().at("no_effect");
  for (const auto& effect : effects.items()) {
    const Json* value = values.find({effect.key()});  // the file's, or the type's default
    if (value == nullptr || says_nothing(*value)) continue;
    if (effect.value().contains("unless") && effect.value()["unless"] == *value) continue;
    const std::string same = effect.value().value("unless_as", "");
    if (!same.empty() && values.find({same}) != nullptr && *values.find({same}) == *value) continue;
    values.warning(fmt::format("{} is not expanded", named(effect.key(), *value)),
                   effect.value()["text"].get<std::string>());
  }
  std::vector<std::string> unknown;
  for (const auto& one : values.root().items()) {
    const std::string& key = one.key();
    if (key.starts_with('_') || says_nothing(one.value())) continue;
    if (values.known().contains(key) || is_listed(no_effect, key)) continue;
    unknown.push_back(key);
  }
  if (unknown.empty()) return;
  constexpr std::size_t kShown = 8;
  const std::size_t all = unknown.size();
  for (std::string& key : unknown) key = key.substr(0, 40);
  if (all > kShown) unknown.resize(kShown);
  values.warning(
      fmt::format("nothing is made of '{}'{}", fmt::join(unknown, "', '"),
                  all > kShown ? fmt::format(" and {} more keys", all - kShown) : ""),
      "foretrace does not know them: if they change the work, its time is not in the answer");
}

void refuse_type(ConfigValues& values, const std::string& kind) {
  const Json& others = decoder_types().at("others");
  const auto size = [&](Keys keys) {
    const Json* value = values.find(keys);
    return value != nullptr && value->is_number_integer() && *value > 0 ? value->dump() : "?";
  };
  const std::string layers =
      size({"num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers"});
  const std::string hidden = size({"hidden_size", "d_model", "n_embd", "dim", "n_embed"});
  const std::string heads =
      size({"num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads"});
  const std::string ffn = size({"intermediate_size", "d_ff", "ffn_dim", "encoder_ffn_dim",
                                "n_inner", "hidden_dim", "d_inner"});
  const std::string vocab = size({"vocab_size"});
  const std::string kv = size({"num_key_value_heads"});
  const bool is_gated = values.word({"hidden_act"}) == "silu";
  const std::string sizes =
      fmt::format("model: {{style: {}, layers: {}, hidden: {}, heads: {}{}, ffn: {}, vocab: {}}}",
                  is_gated ? "llama" : "gpt", layers, hidden, heads,
                  kv == "?" ? "" : ", kv_heads: " + kv, ffn, vocab);
  const bool is_known = others.contains(kind);
  if (!is_known && !kind.empty()) {
    const std::string near = suggest(kind, decoder_names());
    if (near.starts_with("did you mean")) {
      values.problem(fmt::format("no decoder of model_type '{}' is known", kind),
                     fmt::format("{} or write its sizes in place: {}", near, sizes));
      return;
    }
  }
  const std::string what = kind.empty() ? "it says no 'model_type'"
                           : is_known   ? fmt::format("'{}' is {}, which is not expanded", kind,
                                                      others.at(kind).get<std::string>())
                                        : fmt::format("no decoder of model_type '{}' is known",
                                                      in_one_line(shortened(kind)));
  values.problem(what,
                 fmt::format("a decoder of its sizes is near it, written in place: {}", sizes));
}

}  // namespace foretrace::training
