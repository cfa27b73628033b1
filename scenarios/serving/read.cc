#include "scenarios/serving/read.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "scenarios/architecture/counts.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/text_file.h"
#include "scenarios/serving/read_placement.h"
#include "scenarios/serving/read_traffic.h"
#include "scenarios/serving/traffic.h"
#include "scenarios/training_step/read.h"

namespace foretrace::serving {
namespace {

constexpr std::int64_t kMostGuesses = 16;   // for a request in an iteration
constexpr std::int64_t kMostLayers = 1024;  // an iteration has tens of operations of each

const Choices<EngineKind>& engine_words() {
  static const Choices<EngineKind> kWords{{"foretrace", EngineKind::Foretrace},
                                          {"vllm", EngineKind::Vllm},
                                          {"sglang", EngineKind::Sglang},
                                          {"tensorrt-llm", EngineKind::TensorRtLlm}};
  return kWords;
}

/// What an engine does where the file says nothing: the defaults of its documents (../serving.md).
Engine defaults_of(EngineKind kind) {
  Engine engine;
  engine.kind = kind;
  if (kind == EngineKind::Foretrace) return engine;
  engine.max_batched_tokens = 8192;
  engine.max_requests = 256;
  engine.max_length = 131'072;
  if (kind == EngineKind::Sglang) engine.memory_ppm = 880'000;
  return engine;
}

void read_flag_of(Reader& reader, MapReader& map, std::string_view key, bool& value) {
  const YamlNode* node = map.optional(key);
  if (node != nullptr) value = read_flag(reader, *node, key);
}

Speculation read_speculation(Reader& reader, const YamlNode& node) {
  MapReader map{node, "speculation", reader.problems};
  Speculation speculation;
  read_count(reader, map, "tokens", speculation.tokens, kMostGuesses);
  if (const YamlNode* share = map.required("acceptance")) {
    speculation.acceptance_ppm = read_share(reader, *share, 0, 1'000'000);
  }
  if (const YamlNode* by = map.optional("draft")) {
    const Choices<bool> words{{"layer", true}, {"lookup", false}};
    speculation.by_layer = read_choice<bool>(reader, *by, "draft", words);
  }
  map.finish();
  return speculation;
}

Engine read_engine(Reader& reader, const YamlNode& node) {
  MapReader map{node, "an engine", reader.problems};
  EngineKind kind = EngineKind::Foretrace;
  if (const YamlNode* word = map.optional("kind")) {
    kind = read_choice<EngineKind>(reader, *word, "engine", engine_words());
  }
  Engine engine = defaults_of(kind);
  if (const YamlNode* release = map.optional("release")) {
    engine.release = read_word(reader, *release, "a release");
  }
  read_count(reader, map, "max_batched_tokens", engine.max_batched_tokens);
  read_count(reader, map, "max_requests", engine.max_requests, 65'536);
  read_count(reader, map, "block", engine.block, 65'536);
  read_count(reader, map, "max_length", engine.max_length);
  read_flag_of(reader, map, "chunked_prefill", engine.chunked_prefill);
  read_flag_of(reader, map, "cuda_graphs", engine.cuda_graphs);
  if (const YamlNode* memory = map.optional("memory")) {
    engine.memory_ppm = read_share(reader, *memory, 1, 1'000'000);
  }
  if (const YamlNode* guesses = map.optional("speculative")) {
    engine.speculative = read_speculation(reader, *guesses);
    if (kind == EngineKind::Foretrace) {
      reader.problems.error(*guesses, "our engine does not guess tokens",
                            "'kind: vllm', 'sglang' or 'tensorrt-llm'");
    }
  }
  std::int64_t tokens = 0;
  read_count(reader, map, "cache_tokens", tokens);
  if (tokens > 0) engine.cache_tokens = tokens;
  if (!engine.chunked_prefill && engine.max_length > engine.max_batched_tokens) {
    engine.max_length = engine.max_batched_tokens;
  }
  map.finish();
  return engine;
}

training::Architecture model_of(Reader& reader, const YamlNode& node) {
  if (node.kind != YamlNode::Kind::Scalar || !node.text.ends_with(".json")) {
    return training::read_model(reader, node);
  }
  const auto path = std::filesystem::path{reader.problems.file()}.parent_path() / node.text;
  try {
    return training::read_config(reader, node, read_text_file(path), path.string());
  } catch (const UsageError& error) {
    reader.problems.error(node, error.what());
    return {};
  }
}

void read_precision(Reader& reader, const YamlNode* node, Serving& serving) {
  if (node == nullptr) return;
  const Choices<Precision> types{{"bfloat16", Precision::BFloat16},
                                 {"float8", Precision::Float8},
                                 {"nvfp4", Precision::Float4},
                                 {"int4", Precision::Int4}};
  const Choices<bool> cached{{"bfloat16", false}, {"float8", true}};
  if (node->kind == YamlNode::Kind::Scalar) {
    serving.precision = read_choice<Precision>(reader, *node, "precision", types);
    return;
  }
  MapReader map{*node, "a precision", reader.problems};
  if (const YamlNode* weights = map.optional("weights")) {
    serving.precision = read_choice<Precision>(reader, *weights, "type", types);
  }
  if (const YamlNode* cache = map.optional("cache")) {
    serving.float8_cache = read_choice<bool>(reader, *cache, "type", cached);
  }
  map.finish();
}

void check_lengths(Reader& reader, const YamlNode& at, const Serving& serving) {
  const std::int64_t most = longest(arrivals_of(serving.traffic));
  if (most <= serving.engine.max_length) return;
  reader.problems.error(
      at,
      fmt::format("a request has {} tokens, and 'max_length' of the engine is {}", most,
                  serving.engine.max_length),
      serving.engine.chunked_prefill
          ? fmt::format("'max_length: {}' of the engine", most)
          : fmt::format("'max_batched_tokens: {0}' and 'max_length: {0}' of the engine, which "
                        "computes prompts whole",
                        most));
}

}  // namespace

Serving read_serving(Reader& reader, const YamlNode& node) {
  MapReader map{node, "serving", reader.problems};
  Serving serving;
  serving.name = reader.program.name;
  serving.file = reader.problems.file();
  if (const YamlNode* model = map.required("model")) serving.model = model_of(reader, *model);
  read_precision(reader, map.optional("precision"), serving);
  if (const YamlNode* engine = map.optional("engine")) {
    serving.engine = read_engine(reader, *engine);
  }
  read_placement(reader, node, map, serving);
  if (const YamlNode* hits = map.optional("prefix_hits")) {
    serving.prefix_ppm = read_share(reader, *hits, 0, 999'999);
  }
  const YamlNode* traffic = map.required("traffic");
  if (traffic != nullptr) serving.traffic = read_traffic(reader, *traffic);
  map.finish();
  if (!map.is_sound()) return serving;
  if (!serving.engine.release.empty()) {
    reader.problems.warning(node,
                            "releases of an engine are not told apart: 'release' changes nothing");
  }
  check_lengths(reader, *traffic, serving);
  if (serving.model.layers > kMostLayers) {
    reader.problems.error(node,
                          fmt::format("a decoder of {} layers is not served", serving.model.layers),
                          fmt::format("at most {}", kMostLayers));
  }
  if (const auto problem = training::what_is_too_large(serving.model)) {
    reader.problems.error(node, *problem);
    return serving;
  }
  if (weight_bytes(serving) <= 0) reader.problems.error(node, "this model has no weights");
  return serving;
}

}  // namespace foretrace::serving
