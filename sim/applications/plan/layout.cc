#include "sim/applications/plan/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>

#include "scenarios/training_step/expand.h"
#include "scenarios/training_step/words.h"

namespace foretrace::plan {
namespace {

using training::Recompute;
using training::Sharding;

constexpr std::int64_t kDeepestPipeline = 32;
constexpr std::array<std::int64_t, 3> kMicroBatches{1, 2, 4};
constexpr std::array kRecomputes{Recompute::None, Recompute::Selective, Recompute::Full};

const std::string& word(Sharding sharding) {
  return training::word_of(training::sharding_words(), sharding);
}

const std::string& word(Recompute recompute) {
  return training::word_of(training::recompute_words(), recompute);
}

std::vector<std::int64_t> divisors(std::int64_t of, std::int64_t most) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 1; i <= std::min(of, most); ++i) {
    if (of % i == 0) all.push_back(i);
  }
  return all;
}

/// All ways to share parameters and to recompute, of given degrees.
void add_ways(const Layout& degrees, std::vector<Layout>& all) {
  std::vector<std::pair<Sharding, bool>> shardings;
  if (degrees.data * degrees.context == 1) {
    shardings = {{Sharding::None, false}};
  } else {
    shardings = {{Sharding::Zero1, false}};
    if (degrees.pipeline == 1) {
      shardings.emplace_back(Sharding::Fsdp, false);
      if (degrees.passes > 1) shardings.emplace_back(Sharding::Fsdp, true);
    }
  }
  for (const auto& [sharding, every_pass] : shardings) {
    for (const Recompute recompute : kRecomputes) {
      Layout layout = degrees;
      layout.sharding = sharding;
      layout.reduce_every_pass = every_pass;
      layout.recompute = recompute;
      all.push_back(layout);
    }
  }
}

/// Degrees of those that share experts: within a node's GPUs, and powers of two, since all others
/// are between them.
std::vector<std::int64_t> expert_degrees(const Question& question, const Layout& degrees) {
  const std::int64_t experts = question.architecture.experts;
  std::vector<std::int64_t> all{1};
  for (std::int64_t i = 2; i * degrees.tensor <= question.machine.gpus_per_node; i *= 2) {
    const bool splits = degrees.data * degrees.context % i == 0;
    if (experts > 0 && experts % i == 0 && splits) all.push_back(i);
  }
  return all;
}

std::int64_t kept_degree(const Question& question, const char* name) {
  const auto kept = question.kept.find(name);
  return kept == question.kept.end() ? 1 : std::atoll(kept->second.c_str());
}

/// Powers of two that leave parts of sequences long enough for attention to hide their exchange,
/// and what is asked for.
std::vector<std::int64_t> context_degrees(const Question& question) {
  constexpr std::int64_t kShortestPart = 8192;
  std::vector<std::int64_t> all{1};
  const std::int64_t kept = kept_degree(question, "context");
  for (std::int64_t i = 2; question.sequence / i >= kShortestPart; i *= 2) all.push_back(i);
  if (std::ranges::find(all, kept) == all.end()) all.push_back(kept);
  std::erase_if(all, [&](std::int64_t i) {
    return i < 1 || i > question.sequence || (i > 1 && question.sequence % (2 * i) != 0);
  });
  return all;
}

/// Whether stages, or their chunks, have equally many layers: as they are, or with the embedding
/// and the loss in a layer's place each (training_step's reader has it so).
bool fills(const Question& question, std::int64_t places) {
  const std::int64_t layers = question.architecture.layers;
  return places <= layers && (layers % places == 0 || (layers + 2) % places == 0);
}

std::vector<std::int64_t> pipeline_degrees(const Question& question) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 1; i <= kDeepestPipeline; ++i) {
    if (fills(question, i)) all.push_back(i);
  }
  return all;
}

/// Chunks of a stage: where its bubble is long, and what is asked for.
std::vector<std::int64_t> chunk_counts(const Question& question, const Layout& degrees) {
  constexpr std::int64_t kFewMicroBatches = 8;  // for each stage
  std::vector<std::int64_t> all{1};
  if (degrees.pipeline == 1 || degrees.passes % degrees.pipeline != 0) return all;
  const bool is_short = degrees.passes < kFewMicroBatches * degrees.pipeline;
  std::set<std::int64_t> tried{kept_degree(question, "virtual")};
  if (is_short) tried.insert({2, 4});
  for (const std::int64_t i : tried) {
    if (i > 1 && fills(question, i * degrees.pipeline)) all.push_back(i);
  }
  return all;
}

std::int64_t nodes_of(const Question& question, const Layout& layout) {
  const std::int64_t each = question.machine.gpus_per_node;
  return (layout.gpus + each - 1) / each;
}

bool is_kept(const Question& question, const Layout& layout) {
  const auto choices = choices_of(layout);
  return std::ranges::all_of(question.kept, [&](const auto& kept) {
    const auto found = choices.find(kept.first);
    return found != choices.end() && found->second == kept.second;
  });
}

}  // namespace

training::TrainingStep step_of(const Question& question, const Layout& layout,
                               std::optional<std::int64_t> passes) {
  training::TrainingStep step;
  step.model = question.architecture;
  step.sequence = question.sequence;
  step.micro_batch = layout.micro_batch;
  step.passes = layout.passes;
  step.tensor = layout.tensor;
  step.pipeline = layout.pipeline;
  step.data = layout.data;
  step.context = layout.context;
  step.chunks = layout.interleaved;
  step.expert = layout.expert;
  step.nodes = nodes_of(question, layout);
  step.sequence_parallel = step.loss_parallel = layout.tensor > 1;
  step.sharding = step.replicas() > 1 ? layout.sharding : Sharding::None;
  step.reduce_every_pass = layout.sharding == Sharding::Fsdp && layout.reduce_every_pass;
  step.float32_parameters = question.float32_parameters;
  if (question.float8) step.narrow = training::Narrow::Float8;
  step.recompute = layout.recompute;
  step.return_outputs = layout.pipeline == 1;
  if (passes) {
    step.steps = training::steps_of(step);
    step.passes = *passes;
  }
  return step;
}

std::string describe(const Layout& layout) {
  std::string text;
  const auto degree = [&](const char* name, std::int64_t value) {
    if (value > 1) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  };
  degree("tensor", layout.tensor);
  degree("context", layout.context);
  degree("pipeline", layout.pipeline);
  degree("virtual", layout.interleaved);
  degree("data", layout.data);
  degree("expert", layout.expert);
  text += fmt::format("{}{} x {}; {}", text.empty() ? "" : "; ", layout.passes, layout.micro_batch,
                      word(layout.sharding));
  if (layout.reduce_every_pass) text += ", reduced every pass";
  if (layout.recompute != Recompute::None) {
    text += fmt::format("; {} recomputation", word(layout.recompute));
  }
  return text;
}

std::string short_name(const Layout& layout) {
  const auto degree = [](const char* name, std::int64_t value) {
    return value > 1 ? fmt::format("{}{}", name, value) : "";
  };
  return fmt::format("{}gpus_t{}{}_p{}{}_d{}{}_m{}_{}{}_{}", layout.gpus, layout.tensor,
                     degree("_c", layout.context), layout.pipeline,
                     degree("_v", layout.interleaved), layout.data, degree("_e", layout.expert),
                     layout.micro_batch, word(layout.sharding),
                     layout.reduce_every_pass ? "_every_pass" : "", word(layout.recompute));
}

std::map<std::string, std::string> choices_of(const Layout& layout) {
  return {
      {"context", std::to_string(layout.context)}, {"virtual", std::to_string(layout.interleaved)},
      {"tensor", std::to_string(layout.tensor)},   {"pipeline", std::to_string(layout.pipeline)},
      {"expert", std::to_string(layout.expert)},   {"micro", std::to_string(layout.micro_batch)},
      {"sharding", word(layout.sharding)},         {"recompute", word(layout.recompute)}};
}

namespace {

/// All micro-batches, chunks of stages and groups that share experts.
void add_batches(const Question& question, Layout degrees, std::vector<Layout>& all) {
  for (const std::int64_t micro : kMicroBatches) {
    if (question.global_batch % (micro * degrees.data) != 0) continue;
    degrees.micro_batch = micro;
    degrees.passes = question.global_batch / (micro * degrees.data);
    if (degrees.pipeline > 1 && degrees.passes < degrees.pipeline) continue;
    for (const std::int64_t chunks : chunk_counts(question, degrees)) {
      degrees.interleaved = chunks;
      for (const std::int64_t expert : expert_degrees(question, degrees)) {
        degrees.expert = expert;
        add_ways(degrees, all);
      }
    }
  }
}

}  // namespace

std::vector<Layout> layouts(const Question& question, std::int64_t gpus) {
  const training::Architecture& model = question.architecture;
  std::vector<Layout> all;
  // Latent attention and float8 are expanded without tensor parallelism.
  const std::int64_t splits = model.latent.keys > 0 || question.float8 ? 1 : model.kv_heads;
  for (const std::int64_t tensor : divisors(splits, question.machine.gpus_per_node)) {
    if (gpus % tensor != 0) continue;
    for (const std::int64_t pipeline : pipeline_degrees(question)) {
      if (gpus / tensor % pipeline != 0) continue;
      for (const std::int64_t context : context_degrees(question)) {
        if (gpus / tensor / pipeline % context != 0) continue;
        add_batches(question,
                    {.gpus = gpus,
                     .tensor = tensor,
                     .pipeline = pipeline,
                     .data = gpus / tensor / pipeline / context,
                     .context = context},
                    all);
      }
    }
  }
  std::erase_if(all, [&](const Layout& layout) { return !is_kept(question, layout); });
  return all;
}

std::string scenario_text(const Question& question, const Layout& layout,
                          std::optional<std::int64_t> passes) {
  const bool fsdp = layout.sharding == Sharding::Fsdp;
  const auto degree = [](const char* name, std::int64_t value) {
    return value > 1 ? fmt::format(", {}: {}", name, value) : "";
  };
  std::string text = fmt::format(
      "schema_version: 1\nname: {}_{}\nnodes: {}\nprocesses: {}\ntraining_step:\n  model: {}\n",
      question.model_name, short_name(layout), nodes_of(question, layout), layout.gpus,
      question.model);
  text += passes ? fmt::format("  batch: {{sequence: {}, micro: {}, passes: {}}}\n",
                               question.sequence, layout.micro_batch, *passes)
                 : fmt::format("  batch: {{sequence: {}, micro: {}, global: {}}}\n",
                               question.sequence, layout.micro_batch, question.global_batch);
  text += fmt::format("  parallel: {{tensor: {}{}, pipeline: {}{}{}{}}}\n", layout.tensor,
                      degree("context", layout.context), layout.pipeline,
                      degree("virtual", layout.interleaved), degree("expert", layout.expert),
                      layout.tensor > 1 ? ", sequence: true, loss: true" : "");
  text += fmt::format("  sharding: {}\n", word(layout.sharding));
  if (fsdp && layout.reduce_every_pass) text += "  fsdp: {reduce_every_pass: true}\n";
  text +=
      fmt::format("  precision: {{{}parameters: {}}}\n", question.float8 ? "compute: float8, " : "",
                  question.float32_parameters ? "float32" : "bfloat16");
  text += fmt::format("  recompute: {}\n", word(layout.recompute));
  if (layout.pipeline > 1) text += "  return_outputs: false\n";
  if (passes) {
    text += fmt::format("  steps: {}\n", training::steps_of(step_of(question, layout)));
  }
  return text;
}

}  // namespace foretrace::plan
