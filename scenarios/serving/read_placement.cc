#include "scenarios/serving/read_placement.h"

#include <fmt/format.h>

namespace foretrace::serving {
namespace {

constexpr std::int64_t kMostGpus = 1024;
constexpr std::int64_t kMostEngines = 4096;
constexpr std::int64_t kMostOfAll = 65'536;  // GPUs

void read_layout(Reader& reader, MapReader& around, const training::Architecture& model,
                 Layout& layout) {
  const YamlNode* node = around.optional("parallel");
  if (node == nullptr) return;
  MapReader map{*node, "'parallel'", reader.problems};
  read_count(reader, map, "tensor", layout.tensor, kMostGpus);
  read_count(reader, map, "data", layout.data, kMostGpus);
  read_count(reader, map, "expert", layout.expert, kMostGpus);
  read_count(reader, map, "pipeline", layout.pipeline, kMostGpus);
  map.finish();
  if (!map.is_sound() || model.layers == 0) return;
  if (const std::string why = why_not_split(model, layout); !why.empty()) {
    reader.problems.error(*node, why);
  }
}

/// Engines of one kind, which are laid out as `layout` where they say nothing else.
void read_engines(Reader& reader, MapReader& around, const char* key, const Serving& serving,
                  Layout& layout, std::int64_t& engines) {
  const YamlNode* node = around.required(key);
  if (node == nullptr) return;
  MapReader map{*node, "engines", reader.problems};
  read_count(reader, map, "engines", engines, kMostEngines);
  read_layout(reader, map, serving.model, layout);
  map.finish();
}

void read_apart(Reader& reader, const YamlNode& node, Serving& serving) {
  MapReader map{node, "'disaggregated'", reader.problems};
  Apart apart{.prefill = serving.layout};
  read_engines(reader, map, "prefill", serving, apart.prefill, apart.prefill_engines);
  read_engines(reader, map, "decode", serving, serving.layout, serving.replicas);
  map.finish();
  serving.apart = apart;
}

bool has_pipeline(const Serving& serving) {
  return serving.layout.pipeline > 1 || (serving.apart && serving.apart->prefill.pipeline > 1);
}

}  // namespace

void read_count(Reader& reader, MapReader& map, std::string_view key, std::int64_t& value,
                std::int64_t most) {
  const YamlNode* node = map.optional(key);
  if (node != nullptr) value = read_constant(reader, *node, kNumber, 1, most);
}

void read_placement(Reader& reader, const YamlNode& node, MapReader& map, Serving& serving) {
  read_layout(reader, map, serving.model, serving.layout);
  const YamlNode* replicas = map.optional("replicas");
  if (replicas != nullptr) {
    serving.replicas = read_constant(reader, *replicas, kNumber, 1, kMostEngines);
  }
  if (const YamlNode* apart = map.optional("disaggregated")) {
    if (replicas != nullptr) {
      reader.problems.error(*replicas, "'disaggregated' has engines of its own instead");
    }
    read_apart(reader, *apart, serving);
  }
  if (has_pipeline(serving) && serving.engine.kind == EngineKind::Foretrace) {
    reader.problems.error(node, "our engine has no pipeline",
                          "'kind: vllm', 'sglang' or 'tensorrt-llm'");
  }
  if (has_pipeline(serving) && serving.engine.speculative) {
    reader.problems.error(node, "guessed tokens are not simulated in a pipeline");
  }
  if (serving.gpus() > kMostOfAll) {
    reader.problems.error(
        node, fmt::format("{} GPUs in all, and {} are the most", serving.gpus(), kMostOfAll));
  }
  if (const YamlNode* router = map.optional("router")) {
    const Choices<Router> words{{"round_robin", Router::RoundRobin},
                                {"least_loaded", Router::LeastLoaded}};
    serving.router = read_choice<Router>(reader, *router, "router", words);
  }
}

}  // namespace foretrace::serving
