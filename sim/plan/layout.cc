#include "sim/plan/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

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
  if (degrees.data == 1) {
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
    if (experts > 0 && experts % i == 0 && degrees.data % i == 0) all.push_back(i);
  }
  return all;
}

bool is_kept(const Question& question, const Layout& layout) {
  const auto choices = choices_of(layout);
  return std::ranges::all_of(question.kept, [&](const auto& kept) {
    const auto found = choices.find(kept.first);
    return found != choices.end() && found->second == kept.second;
  });
}

training::TrainingStep step_of(const Question& question, const Layout& layout) {
  training::TrainingStep step;
  step.model = question.architecture;
  step.sequence = question.sequence;
  step.micro_batch = layout.micro_batch;
  step.passes = layout.passes;
  step.tensor = layout.tensor;
  step.pipeline = layout.pipeline;
  step.data = layout.data;
  step.expert = layout.expert;
  return step;
}

}  // namespace

std::string describe(const Layout& layout) {
  std::string text;
  const auto degree = [&](const char* name, std::int64_t value) {
    if (value > 1) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  };
  degree("tensor", layout.tensor);
  degree("pipeline", layout.pipeline);
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
  return fmt::format(
      "{}gpus_t{}_p{}_d{}{}_m{}_{}{}_{}", layout.gpus, layout.tensor, layout.pipeline, layout.data,
      layout.expert > 1 ? fmt::format("_e{}", layout.expert) : "", layout.micro_batch,
      word(layout.sharding), layout.reduce_every_pass ? "_every_pass" : "", word(layout.recompute));
}

std::map<std::string, std::string> choices_of(const Layout& layout) {
  return {{"tensor", std::to_string(layout.tensor)}, {"pipeline", std::to_string(layout.pipeline)},
          {"expert", std::to_string(layout.expert)}, {"micro", std::to_string(layout.micro_batch)},
          {"sharding", word(layout.sharding)},       {"recompute", word(layout.recompute)}};
}

std::vector<Layout> layouts(const Question& question, std::int64_t gpus) {
  const training::Architecture& model = question.architecture;
  std::vector<Layout> all;
  for (const std::int64_t tensor : divisors(model.kv_heads, question.machine.gpus_per_node)) {
    if (gpus % tensor != 0) continue;
    for (const std::int64_t pipeline : divisors(model.layers, kDeepestPipeline)) {
      if (gpus / tensor % pipeline != 0) continue;
      const std::int64_t data = gpus / tensor / pipeline;
      for (const std::int64_t micro : kMicroBatches) {
        if (question.global_batch % (micro * data) != 0) continue;
        Layout degrees{.gpus = gpus,
                       .tensor = tensor,
                       .pipeline = pipeline,
                       .data = data,
                       .micro_batch = micro,
                       .passes = question.global_batch / (micro * data)};
        if (pipeline > 1 && degrees.passes < pipeline) continue;
        for (const std::int64_t expert : expert_degrees(question, degrees)) {
          degrees.expert = expert;
          add_ways(degrees, all);
        }
      }
    }
  }
  std::erase_if(all, [&](const Layout& layout) { return !is_kept(question, layout); });
  return all;
}

std::string scenario_text(const Question& question, const Layout& layout,
                          std::optional<std::int64_t> passes) {
  const bool fsdp = layout.sharding == Sharding::Fsdp;
  const std::int64_t each = question.machine.gpus_per_node;
  std::string text = fmt::format(
      "schema_version: 1\nname: {}_{}\nnodes: {}\nprocesses: {}\ntraining_step:\n  model: {}\n",
      question.model_name, short_name(layout), (layout.gpus + each - 1) / each, layout.gpus,
      question.model);
  text += passes ? fmt::format("  batch: {{sequence: {}, micro: {}, passes: {}}}\n",
                               question.sequence, layout.micro_batch, *passes)
                 : fmt::format("  batch: {{sequence: {}, micro: {}, global: {}}}\n",
                               question.sequence, layout.micro_batch, question.global_batch);
  text +=
      fmt::format("  parallel: {{tensor: {}, pipeline: {}{}{}}}\n", layout.tensor, layout.pipeline,
                  layout.expert > 1 ? fmt::format(", expert: {}", layout.expert) : "",
                  layout.tensor > 1 ? ", sequence: true, loss: true" : "");
  text += fmt::format("  sharding: {}\n", word(layout.sharding));
  if (fsdp && layout.reduce_every_pass) text += "  fsdp: {reduce_every_pass: true}\n";
  text += fmt::format("  precision: {{parameters: {}}}\n",
                      question.float32_parameters ? "float32" : "bfloat16");
  text += fmt::format("  recompute: {}\n", word(layout.recompute));
  if (passes) {
    text += fmt::format("  steps: {}\n", training::steps_of(step_of(question, layout)));
  }
  return text;
}

double lower_bound(const Question& question, const Layout& layout) {
  training::TrainingStep step = step_of(question, layout);
  const double flops = training::model_flops(step);
  double again = 0;
  if (layout.recompute == Recompute::Full) {
    // Forward once more: a third of what forward and backward are, without the head.
    training::Architecture headless = step.model;
    headless.vocab = 0;
    step.model = headless;
    again = training::model_flops(step) / 3;
  }
  const double ends = layout.pipeline > 1
                          ? static_cast<double>(layout.passes + layout.pipeline - 1) /
                                static_cast<double>(layout.passes)
                          : 1;
  return (flops + again) * ends / static_cast<double>(layout.gpus) / peak_of(question.machine);
}

double peak_of(const Machine& machine) { return machine.get(Param::ProductsHalfPeak).value; }

}  // namespace foretrace::plan
