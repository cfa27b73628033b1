#include "reports/export/training_step_writer.h"

#include <nlohmann/json.hpp>

#include "scenarios/architecture/counts.h"
#include "scenarios/training_step/expand.h"
#include "scenarios/training_step/words.h"

namespace foretrace {
namespace {

using OrderedJson = nlohmann::ordered_json;
using training::Architecture;
using training::Framework;
using training::TrainingStep;

const char* type_word(bool is_float32) { return is_float32 ? "float32" : "bfloat16"; }

const char* framework_word(Framework framework) {
  switch (framework) {
    case Framework::PyTorch:
      return "pytorch";
    case Framework::Megatron:
      return "megatron";
    case Framework::MegatronDeepSpeed:
      return "megatron-deepspeed";
    case Framework::MegatronCore:
      return "megatron-core";
  }
  return "";
}

/// What the sizes do not say: train.py's models have none of it.
std::vector<std::string> other_traits(const Architecture& model) {
  std::vector<std::string> all;
  const auto add = [&](bool has, const char* what) {
    if (has) all.emplace_back(what);
  };
  const bool some_biases = model.qkv_bias || model.output_bias || model.mlp_bias;
  add((some_biases && !model.biases) || model.head_bias, "biases of some linear layers");
  add(model.qk_norm != training::QkNorm::None, "norms of queries and keys");
  add(model.norms != 2 || model.embedding_norm, "other norms than two a layer");
  add(model.norm_parts() != (model.rms_norm ? 1 : 2), "norms without a weight or bias");
  add(model.window > 0, "windows");
  add(!model.kinds.empty(), "layers that differ");
  add(model.latent.keys > 0, "latent attention");
  add(model.sinks, "attention sinks");
  add(model.caps_logits, "capped logits");
  add(model.is_placeless || model.rotary_share < 1, "positions that rotate nothing or a part");
  add(model.squares, "a squared activation");
  return all;
}

OrderedJson model_json(const Architecture& model) {
  return {{"name", model.name},
          {"understood", training::understood(model)},
          {"parameters", training::parameter_count(model)},
          {"active_parameters", training::active_parameters(model)},
          {"other", other_traits(model)},
          {"layers", model.layers},
          {"hidden", model.hidden},
          {"heads", model.heads},
          {"kv_heads", model.kv_heads},
          {"head_dim", model.head_dim},
          {"ffn", model.ffn},
          {"vocab", model.vocab},
          {"positions", model.positions},
          {"gated", model.gated},
          {"rms_norm", model.rms_norm},
          {"biases", model.biases},
          {"joined_qkv", model.joined_qkv},
          {"tied", model.tied},
          {"experts", model.experts},
          {"top_k", model.top_k},
          {"shared_ffn", model.shared_ffn}};
}

}  // namespace

OrderedJson training_step_json(const TrainingStep& step) {
  const bool is_gpipe = step.schedule == training::Schedule::GPipe;
  const bool is_foreach = step.optimizer == training::OptimizerKernel::Foreach;
  return {{"model", model_json(step.model)},
          {"framework", framework_word(step.framework)},
          {"sequence", step.sequence},
          {"micro", step.micro_batch},
          {"passes", step.passes},
          {"steps", training::steps_of(step)},
          {"data", step.data},
          {"tensor", step.tensor},
          {"context", step.context},
          {"pipeline", step.pipeline},
          {"virtual", step.chunks},
          {"expert", step.expert},
          {"return_outputs", step.return_outputs},
          {"schedule", is_gpipe ? "gpipe" : "1f1b"},
          {"sequence_parallel", step.sequence_parallel},
          {"loss_parallel", step.loss_parallel},
          {"sharding", word_of(training::sharding_words(), step.sharding)},
          {"flat", step.flat_parameters},
          {"reshard_after_forward", step.reshard},
          {"bucket_bytes", step.bucket_bytes},
          {"bucket_views", step.bucket_views},
          {"reduce_every_pass", step.reduce_every_pass},
          {"parameters", type_word(step.float32_parameters)},
          {"reduce", type_word(step.float32_reduce)},
          {"loss", step.fused_loss ? "fused" : "separate"},
          {"attention", step.flash_attention ? "flash" : "unfused"},
          {"dropout", step.dropout},
          {"optimizer", is_foreach ? "adamw_foreach" : "adamw"},
          {"recompute", word_of(training::recompute_words(), step.recompute)}};
}

}  // namespace foretrace
