#include "scenarios/styles/read.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/styles/style.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::styles {
namespace {

using training::Architecture;
using training::TrainingStep;

/// "parallel/tensor" of the block; the block itself where that is not said.
const YamlNode& at(const YamlNode& node, std::string_view path) {
  const std::string_view key = path.substr(0, path.find('/'));
  const auto found = std::ranges::find(
      node.entries, key, [](const YamlEntry& e) { return std::string_view{e.key.text}; });
  if (found == node.entries.end()) return node;
  return key.size() == path.size() ? found->value : at(found->value, path.substr(key.size() + 1));
}

/// What a model is beside its sizes, in the words of the templates.
nlohmann::json traits_of(const Architecture& model) {
  const char* qk = model.qk_norm == training::QkNorm::None   ? "none"
                   : model.qk_norm == training::QkNorm::Head ? "head"
                                                             : "other";
  return {{"activation", model.activation},
          {"gated", model.gated},
          {"rms_norm", model.rms_norm},
          {"norms", model.norms},
          {"embedding_norm", model.embedding_norm},
          {"qk_norm", qk},
          {"qkv_bias", model.has_qkv_bias()},
          {"output_bias", model.has_output_bias()},
          {"mlp_bias", model.has_mlp_bias()},
          {"head_bias", model.head_bias},
          {"joined_qkv", model.joined_qkv},
          {"tied", model.tied},
          {"sinks", model.sinks},
          {"caps_logits", model.caps_logits},
          {"squares", model.squares},
          {"latent", model.latent.keys > 0},
          {"windows", model.window > 0 || !model.kinds.empty()},
          {"experts", model.experts},
          {"rotary", model.positions == 0 && !model.is_placeless},
          {"rotary_share", model.rotary_share}};
}

class StyleReader {
 public:
  StyleReader(Reader& reader, const TrainingStep& step, const YamlNode& node)
      : reader_{reader}, step_{step}, node_{node} {}

  captured::CapturedStep run() {
    const std::vector<std::string> known = families(step_.code);
    if (std::ranges::find(known, step_.model.type) == known.end()) {
      report_unknown_word(reader_, at(node_, "model"),
                          fmt::format("family of models of 'code: {}'", step_.code),
                          step_.model.type, known);
      return {};
    }
    layout();
    const Style style{step_.code, step_.model.type};
    traits(style);
    if (step_.model.layers < style.fewest_layers()) {
      refuse("model", fmt::format("models of at least {} layers", style.fewest_layers()),
             "more 'layers'");
    }
    if (reader_.problems.error_count() > 0) return {};
    const Asked asked = what_is_asked();
    if (const std::string beyond = style.beyond(asked); !beyond.empty()) {
      reader_.problems.warning(
          node_,
          fmt::format("sizes beyond those of the captures that 'code: {}' was learned from: {}",
                      step_.code, beyond),
          "kernels may be others there; 'foretrace capture' of the program itself knows");
    }
    captured::RankRecord one;
    one.record = style.record(asked);
    one.stands_for = {0};
    captured::CapturedStep made;
    made.ranks.push_back(std::move(one));
    return made;
  }

 private:
  void refuse(std::string_view where, const std::string& only, const std::string& hint) {
    reader_.problems.error(at(node_, where), fmt::format("'code: {}' has {}", step_.code, only),
                           hint);
  }

  void layout() {
    const std::string own =
        "no 'code', which has foretrace's own calls, or 'foretrace capture' of the program";
    const auto one = [&](const char* key, std::int64_t degree) {
      if (degree > 1)
        refuse(std::string{"parallel/"} + key, fmt::format("no '{}' parallelism", key), own);
    };
    one("tensor", step_.tensor);
    one("pipeline", step_.pipeline);
    one("context", step_.context);
    one("expert", step_.expert);
    if (step_.replicas() > 1) refuse("sharding", "one GPU's step", own);
    if (step_.passes > 1) refuse("batch", "one micro-batch a step", own);
    if (step_.framework != training::Framework::PyTorch)
      refuse("framework", "PyTorch's calls", "no 'framework'");
    if (step_.recompute == training::Recompute::Selective)
      refuse("recompute", "'none' and 'full'",
             "'recompute: full': transformers' gradient_checkpointing_enable()");
    if (step_.fused_loss) refuse("loss", "a separate loss", "'loss: separate'");
    if (!step_.flash_attention)
      refuse("attention", "scaled_dot_product_attention", "no 'attention: unfused'");
    if (step_.dropout) refuse("dropout", "no dropout", own);
  }

  void traits(const Style& style) {
    nlohmann::json wanted = traits_of(Architecture{});
    wanted.update(style.traits());
    nlohmann::json has = traits_of(step_.model);
    // One that nobody names is the type's own.
    if (has.at("activation") == "") has["activation"] = wanted.at("activation");
    for (const auto& [trait, value] : wanted.items()) {
      if (has.at(trait) == value) continue;
      refuse("model",
             fmt::format("models of the family '{}' with '{}: {}'; this one has {}",
                         step_.model.type, trait, value.dump(), has.at(trait).dump()),
             "'foretrace capture' of the program itself");
    }
  }

  Asked what_is_asked() const {
    const Architecture& model = step_.model;
    Asked asked;
    asked.sizes = {{"B", step_.micro_batch},
                   {"S", step_.sequence},
                   {"H", model.hidden},
                   {"N", model.heads},
                   {"K", model.kv_heads},
                   {"D", model.head_dim},
                   {"F", model.ffn},
                   {"V", model.vocab},
                   {"P", std::max<std::int64_t>(1, model.positions)}};
    asked.layers = model.layers;
    asked.precision = step_.float32_parameters ? "autocast" : "bfloat16";
    asked.recomputes = step_.recompute == training::Recompute::Full;
    asked.clips = step_.clips;
    asked.optimizer = step_.optimizer == training::OptimizerKernel::Fused ? "fused" : "foreach";
    return asked;
  }

  Reader& reader_;
  const TrainingStep& step_;
  const YamlNode& node_;
};

}  // namespace

captured::CapturedStep captured_step(Reader& reader, const TrainingStep& step,
                                     const YamlNode& node) {
  return StyleReader{reader, step, node}.run();
}

}  // namespace foretrace::styles
