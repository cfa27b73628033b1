#include "scenarios/training_step/read.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/text_file.h"
#include "scenarios/base/values/quantity.h"
#include "scenarios/styles/style.h"
#include "scenarios/training_step/words.h"

namespace foretrace::training {
namespace {

constexpr std::int64_t kLargest = 1'000'000'000;

/// Typed values of one map; absent keys leave what is there.
class Fields {
 public:
  Fields(Reader& reader, MapReader& map) : reader_{reader}, map_{map} {}

  bool number(std::string_view key, std::int64_t& value, std::int64_t low = 1) {
    const YamlNode* node = map_.optional(key);
    if (node != nullptr) value = read_constant(reader_, *node, kNumber, low, kLargest);
    return node != nullptr;
  }
  void needed(std::string_view key, std::int64_t& value) {
    const YamlNode* node = map_.required(key);
    if (node != nullptr) value = read_constant(reader_, *node, kNumber, 1, kLargest);
  }
  void size(std::string_view key, std::int64_t& value) {
    const YamlNode* node = map_.optional(key);
    if (node != nullptr) value = read_constant(reader_, *node, kSize, 1, kNoLimit);
  }
  template <class T>
  void choice(std::string_view key, T& value, const Choices<T>& choices) {
    const YamlNode* node = map_.optional(key);
    if (node != nullptr) value = read_choice(reader_, *node, key, choices);
  }
  void flag(std::string_view key, bool& value) {
    choice<bool>(key, value, {{"true", true}, {"false", false}});
  }

 private:
  Reader& reader_;
  MapReader& map_;
};

Architecture architecture_in_place(Reader& reader, MapReader& map) {
  Architecture model;
  Fields fields{reader, map};
  bool like_gpt = false;
  fields.choice<bool>("style", like_gpt, {{"llama", false}, {"gpt", true}});
  fields.needed("layers", model.layers);
  fields.needed("hidden", model.hidden);
  fields.needed("heads", model.heads);
  model.kv_heads = model.heads;
  fields.number("kv_heads", model.kv_heads);
  model.head_dim = model.hidden / std::max<std::int64_t>(1, model.heads);
  fields.number("head_dim", model.head_dim);
  fields.needed("ffn", model.ffn);
  fields.needed("vocab", model.vocab);
  fields.number("positions", model.positions, 0);
  fields.flag("tied", model.tied);
  if (fields.number("experts", model.experts)) fields.needed("top_k", model.top_k);
  fields.number("shared_ffn", model.shared_ffn);
  fields.number("window", model.window);
  if (like_gpt) {
    model.gated = model.rms_norm = false;
    model.biases = model.joined_qkv = true;
    if (model.positions == 0) model.positions = 1;  // as long as the sequence
  }
  model.name = like_gpt ? "gpt" : "llama";
  model.type = like_gpt ? "gpt2" : "llama";
  return model;
}

Architecture from_file(Reader& reader, const YamlNode& at, const std::filesystem::path& path,
                       const Replaced& replaced = {}) {
  try {
    return read_config(reader, at, read_text_file(path), path.string(), replaced);
  } catch (const UsageError& error) {
    reader.problems.error(at, error.what());
    return {};
  }
}

/// `batch: {sequence, micro, global}` or `passes` instead of `global`.
void read_batch(Reader& reader, const YamlNode& node, TrainingStep& step) {
  MapReader map{node, "a batch", reader.problems};
  Fields fields{reader, map};
  fields.needed("sequence", step.sequence);
  fields.number("micro", step.micro_batch);
  fields.number("passes", step.passes);
  std::int64_t global = 0;
  const bool has_passes = map.has("passes");
  if (fields.number("global", global)) {
    const std::int64_t each = step.micro_batch * step.data;
    if (has_passes) {
      reader.problems.error(*map.optional("global"), "either 'global' or 'passes', not both");
    } else if (global % each != 0) {
      reader.problems.error(
          *map.optional("global"),
          fmt::format("{} sequences are not whole micro-batches of {} on {} data parallel ranks",
                      global, step.micro_batch, step.data),
          fmt::format("a multiple of {}: {} or {}", each,
                      std::max<std::int64_t>(1, global / each) * each, (global / each + 1) * each));
    } else {
      step.passes = global / each;
    }
  }
  map.finish();
}

/// A block of the step that may be left out.
void read_block(Reader& reader, const YamlNode* node, std::string what,
                const std::function<void(Fields&, MapReader&)>& take) {
  if (node == nullptr) return;
  MapReader map{*node, std::move(what), reader.problems};
  Fields fields{reader, map};
  take(fields, map);
  map.finish();
}

void read_precision(Reader& reader, Fields& fields, MapReader& map, TrainingStep& step) {
  const Choices<bool> types{{"bfloat16", false}, {"float32", true}};
  enum class Computes : std::uint8_t { BFloat16, Float16, Float8, Mx8, Nv4, Float32 };
  Computes computes = Computes::BFloat16;
  fields.choice<Computes>("compute", computes,
                          {{"bfloat16", Computes::BFloat16},
                           {"float16", Computes::Float16},
                           {"float8", Computes::Float8},
                           {"mxfp8", Computes::Mx8},
                           {"nvfp4", Computes::Nv4},
                           {"float32", Computes::Float32}});
  if (computes == Computes::Float32) {
    reader.problems.error(*map.optional("compute"),
                          "bfloat16, float16, float8, mxfp8 and nvfp4 are expanded for 'compute'",
                          "'parameters: float32' is what autocast and FSDP's mixed precision have");
  }
  step.float16 = computes == Computes::Float16;
  if (computes == Computes::Float8) {
    step.narrow = Narrow::Float8;
    fields.choice<Narrow>(
        "scales", step.narrow,
        {{"tensor", Narrow::Float8}, {"delayed", Narrow::Delayed}, {"row", Narrow::Rows}});
  }
  if (computes == Computes::Mx8) step.narrow = Narrow::Mx8;
  if (computes == Computes::Nv4) step.narrow = Narrow::Nv4;
  fields.choice<bool>("parameters", step.float32_parameters, types);
  fields.choice<bool>("reduce", step.float32_reduce, types);
}

/// Degrees, which decide what else there is.
void read_parallel(Reader& reader, const YamlNode* node, TrainingStep& step) {
  read_block(reader, node, "'parallel'", [&](Fields& fields, MapReader&) {
    fields.number("tensor", step.tensor);
    fields.number("context", step.context);
    fields.choice<ContextExchange>("exchange", step.exchange, exchange_words());
    fields.number("pipeline", step.pipeline);
    fields.number("virtual", step.chunks);
    fields.number("expert", step.expert);
    fields.flag("sequence", step.sequence_parallel);
    if (step.tensor == 1) step.sequence_parallel = false;  // nothing to split over
    fields.flag("loss", step.loss_parallel);
    if (step.tensor == 1) step.loss_parallel = false;
    fields.flag("overlap", step.overlaps_tensor);
    if (step.tensor == 1) step.overlaps_tensor = false;
    fields.flag("dtensor", step.dtensor);
    fields.flag("gather_each", step.gathers_each);
    fields.choice<Schedule>(
        "schedule", step.schedule,
        {{"1f1b", Schedule::OneForwardOneBackward}, {"gpipe", Schedule::GPipe}});
  });
}

/// How experts are computed, and how evenly tokens go to them.
void read_experts(Reader& reader, Fields& fields, MapReader& map, TrainingStep& step) {
  fields.choice<ExpertProducts>(
      "products", step.expert_products,
      {{"grouped", ExpertProducts::Grouped}, {"loop", ExpertProducts::Loop}});
  const YamlNode* const load = map.optional("load");
  const YamlNode* const capacity = map.optional("capacity");
  step.has_capacity = capacity != nullptr;
  const YamlNode* const given = capacity != nullptr ? capacity : load;
  if (given == nullptr) return;
  if (load != nullptr && capacity != nullptr) {
    reader.problems.error(*load, "either 'load' or 'capacity', not both",
                          "with a capacity rows are padded to it, or dropped");
    return;
  }
  constexpr double kMost = 64;
  const auto quantity = read_quantity(reader, *given, "a number from 1 to 64");
  if (!quantity) return;
  const auto value = quantity->unit == kNumber ? to_double(*quantity) : std::nullopt;
  if (!value || *value < 1 || *value > kMost) {
    reader.problems.error(*given, fmt::format("'{}' is no number from 1 to 64", given->text),
                          "1.25: a quarter more rows than an even share");
    return;
  }
  step.expert_load = *value;
}

/// What depends on the framework's way of sharding.
void read_ways(Reader& reader, MapReader& map, TrainingStep& step) {
  read_block(reader, map.optional("precision"), "'precision'",
             [&](Fields& fields, MapReader& m) { read_precision(reader, fields, m, step); });
  read_block(reader, map.optional("experts"), "'experts'",
             [&](Fields& fields, MapReader& m) { read_experts(reader, fields, m, step); });
  read_block(reader, map.optional("ddp"), "'ddp'", [&](Fields& fields, MapReader&) {
    fields.size("bucket", step.bucket_bytes);
    fields.flag("views", step.bucket_views);
    fields.flag("reduce_every_pass", step.reduce_every_pass);
  });
  read_block(reader, map.optional("fsdp"), "'fsdp'", [&](Fields& fields, MapReader&) {
    fields.flag("flat", step.flat_parameters);
    fields.number("shard", step.shard);
    fields.flag("reduce_every_pass", step.reduce_every_pass);
  });
}

const YamlNode& model_of(MapReader& map) {
  const YamlNode* const model = map.optional("model");
  return model == nullptr ? map.node() : *model;
}

/// Whose calls; without it ours.
void read_code(Reader& reader, MapReader& map, TrainingStep& step) {
  Fields fields{reader, map};
  fields.flag("clip_gradients", step.clips);
  const YamlNode* const code = map.optional("code");
  if (code == nullptr) {
    if (step.clips) {
      reader.problems.error(*map.optional("clip_gradients"),
                            "clipping is expanded in other people's code only",
                            "'code: huggingface' beside it");
    }
    return;
  }
  const std::vector<std::string> known = styles::codes();
  step.code = read_word(reader, *code, "whose code");
  if (std::ranges::find(known, step.code) == known.end())
    report_unknown_word(reader, *code, "code", step.code, known);
}

/// Learned positions for each token of a sequence.
void grow_positions(Reader& reader, MapReader& map, TrainingStep& step) {
  Architecture& model = step.model;
  if (model.positions == 0 || model.positions >= step.sequence) return;
  // 1: written in place without a number, as many as the sequence has tokens.
  if (model.positions > 1) {
    reader.problems.warning(
        model_of(map),
        fmt::format("sequences of {} tokens, and {} learned positions: counted with {} more",
                    step.sequence, model.positions, step.sequence - model.positions),
        "transformers stops at a position that has no vector: 'n_positions' has to be as long");
  }
  model.positions = step.sequence;
}

/// What the model has and this step's expansion leaves out.
void warn_of_model(Reader& reader, MapReader& map, const TrainingStep& step) {
  const Architecture& model = step.model;
  if (!model.dropout.empty() && !map.has("dropout")) {
    reader.problems.warning(model_of(map),
                            fmt::format("dropout ({}) is not expanded", model.dropout),
                            "'dropout: true' in the training step adds its kernels and masks; "
                            "'dropout: false' says that it is trained without");
  }
  bool has_window = false;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(model.layers, 4096); ++i) {
    const std::int64_t window = model.layer(i).window;
    has_window = has_window || (window > 0 && window < step.sequence);
  }
  if (has_window && step.context > 1) {
    reader.problems.warning(model_of(map),
                            "with 'context' attention is to all tokens: windows are not followed",
                            "the time of attention is that of a model without windows");
  } else if (has_window && !step.flash_attention) {
    reader.problems.warning(
        model_of(map), "'attention: unfused' multiplies the whole square: windows save nothing",
        "'attention: flash' leaves out what no window sees");
  }
}

}  // namespace

Architecture read_model(Reader& reader, const YamlNode& node) {
  if (node.kind == YamlNode::Kind::Scalar) {
    const std::vector<std::string> known = shipped_models();
    const std::string name = read_word(reader, node, "a model's name");
    if (std::ranges::find(known, name) == known.end()) {
      report_unknown_word(reader, node, "model", name, known);
      return {};
    }
    Architecture model =
        from_file(reader, node, data_directory() / "scenarios/architectures" / (name + ".json"));
    model.name = name;
    return model;
  }
  MapReader map{node, "a model", reader.problems};
  Architecture model;
  if (const YamlNode* config = map.optional("config")) {
    const auto beside = std::filesystem::path{reader.problems.file()}.parent_path();
    // A cut or grown model: what a config.json says may be replaced.
    Fields fields{reader, map};
    Replaced replaced;
    std::int64_t number = 0;
    bool tied = false;
    if (fields.number("layers", number)) replaced.layers = number;
    if (fields.number("vocab", number)) replaced.vocab = number;
    fields.flag("tied", tied);
    if (map.has("tied")) replaced.tied = tied;
    model = from_file(reader, *config, beside / config->text, replaced);
  } else {
    model = architecture_in_place(reader, map);
  }
  map.finish();
  return model;
}

TrainingStep read_training_step(Reader& reader, const YamlNode& node) {
  MapReader map{node, "a training step", reader.problems};
  Fields fields{reader, map};
  TrainingStep step;
  step.nodes = reader.program.nodes;
  if (const YamlNode* model = map.required("model")) step.model = read_model(reader, *model);
  fields.choice<Framework>("framework", step.framework,
                           {{"pytorch", Framework::PyTorch},
                            {"megatron", Framework::Megatron},
                            {"megatron-deepspeed", Framework::MegatronDeepSpeed},
                            {"megatron-core", Framework::MegatronCore}});
  if (step.is_megatron_core()) {
    step.exchange = ContextExchange::SendRecv;
    step.fused_loss = true;
  }
  if (step.is_deepspeed()) step.flash_attention = false;
  read_parallel(reader, map.optional("parallel"), step);
  const std::int64_t processes = reader.program.processes;
  // What is larger than kLargest divides no number of processes.
  const std::int64_t degrees = std::min(step.tensor * step.pipeline, kLargest) * step.context;
  step.data = std::max<std::int64_t>(1, processes / degrees);
  if (processes % degrees != 0) {
    const YamlNode* const parallel = map.optional("parallel");
    reader.problems.error(
        parallel == nullptr ? node : *parallel,
        fmt::format(
            "{} processes are not whole replicas of {} (tensor {} x context {} x pipeline {})",
            processes, degrees, step.tensor, step.context, step.pipeline),
        fmt::format("'processes' must be a multiple of {}", degrees));
  }
  if (const YamlNode* batch = map.required("batch")) read_batch(reader, *batch, step);
  step.sharding = step.replicas() > 1 ? Sharding::Ddp : Sharding::None;
  fields.choice<Sharding>("sharding", step.sharding, sharding_words());
  if (step.replicas() == 1) step.sharding = Sharding::None;
  fields.flag("reshard_after_forward", step.reshard);
  read_ways(reader, map, step);
  fields.choice<bool>("loss", step.fused_loss, {{"separate", false}, {"fused", true}});
  fields.choice<bool>("loss_type", step.half_loss, {{"float32", false}, {"bfloat16", true}});
  fields.choice<OptimizerKernel>(
      "optimizer", step.optimizer,
      {{"adamw", OptimizerKernel::Fused}, {"adamw_foreach", OptimizerKernel::Foreach}});
  fields.choice<Recompute>("recompute", step.recompute, recompute_words());
  fields.choice<bool>("attention", step.flash_attention, {{"flash", true}, {"unfused", false}});
  fields.flag("return_outputs", step.return_outputs);
  fields.flag("compiled", step.compiled);
  read_block(reader, map.optional("adapters"), "'adapters'", [&](Fields& inner, MapReader&) {
    inner.number("rank", step.adapters.rank);
    inner.flag("queries", step.adapters.queries);
    inner.flag("output", step.adapters.output);
    inner.flag("mlp", step.adapters.mlp);
  });
  fields.number("recompute_every", step.recompute_every);
  read_block(reader, map.optional("keeps"), "'keeps'", [&](Fields& inner, MapReader&) {
    inner.flag("queries", step.keeps.queries);
    inner.flag("attention", step.keeps.attention);
    inner.flag("output", step.keeps.output);
    inner.flag("up", step.keeps.up);
    inner.flag("down", step.keeps.down);
  });
  fields.flag("dropout", step.dropout);
  fields.number("steps", step.steps);
  read_code(reader, map, step);
  map.finish();
  grow_positions(reader, map, step);
  warn_of_model(reader, map, step);
  if (map.is_sound()) check(reader, step, node);
  return step;
}

}  // namespace foretrace::training
