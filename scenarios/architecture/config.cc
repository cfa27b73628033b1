#include "scenarios/architecture/config.h"

#include <fmt/format.h>

#include "scenarios/architecture/decoder_types.h"
#include "scenarios/architecture/traits.h"

namespace foretrace::training {
namespace {

/// A model of several parts: the part that reads text, where the file has one.
struct TextPart {
  const Json* root = nullptr;
  std::string kind;
  bool is_inner = false;
};

TextPart text_part(const Json& root) {
  const auto word = [](const Json& at, const char* key) {
    const auto found = at.find(key);
    return found != at.end() && found->is_string() ? found->get<std::string>() : std::string{};
  };
  TextPart part{&root, word(root, "model_type"), false};
  if (decoder_type(part.kind) != nullptr) return part;
  for (const char* const key : {"text_config", "llm_config", "language_config", "thinker_config"}) {
    const auto inner = root.find(key);
    if (inner == root.end() || !inner->is_object()) continue;
    std::string kind = word(*inner, "model_type");
    const Json& parts = decoder_types().at("text_parts");
    if (kind.empty() && parts.contains(part.kind)) kind = parts.at(part.kind).get<std::string>();
    if (decoder_type(kind) == nullptr) continue;
    return {&*inner, kind, true};
  }
  // Older files of such models have the text part's keys beside the others.
  const Json& usual = decoder_types().at("text_parts");
  if (usual.contains(part.kind) && (root.contains("hidden_size") || root.contains("n_embd"))) {
    return {&root, usual.at(part.kind).get<std::string>(), true};
  }
  return part;
}

/// The head belongs to the whole model, so that its file says whether the head is the embedding.
Replaced with_head_of(const Json& root, const TextPart& part, Replaced replaced) {
  const auto tied = root.find("tie_word_embeddings");
  if (part.is_inner && tied != root.end() && tied->is_boolean() && !replaced.tied) {
    replaced.tied = tied->get<bool>();
  }
  return replaced;
}

}  // namespace

Architecture read_config(Reader& reader, const YamlNode& at, const std::string& text,
                         const std::string& file, const Replaced& replaced) {
  std::string problem;
  const auto root = parse_config(text, problem);
  if (!root) {
    reader.problems.error(at, fmt::format("{}: {}", file, problem));
    return {};
  }
  const TextPart part = text_part(*root);
  const Json* const type = decoder_type(part.kind);
  if (type == nullptr) {
    const Json none = Json::object();
    ConfigValues values{reader, at, *part.root, none, file};
    refuse_type(values, part.kind);
    return {};
  }
  const Json defaults = type->value("defaults", Json::object());
  ConfigValues values{reader, at, *part.root, defaults, file};
  if (part.is_inner) {
    values.warning(
        fmt::format("the '{}' that reads text is expanded, and nothing beside it", part.kind),
        "what reads pictures or sound runs before it: its time is not in the answer");
  }
  Architecture model = read_traits(values, *type, with_head_of(*root, part, replaced));
  read_layers(values, *type, model);
  warn_of_rest(values);
  model.name = model.type = part.kind;
  return model;
}

}  // namespace foretrace::training
