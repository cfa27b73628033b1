// A step of few layers says what one of many takes, and a plan reads none of the texts that it
// writes.
#include "sim/applications/plan/fold.h"

#include <gtest/gtest.h>

#include "models/machine/machine.h"
#include "scenarios/read/scenario.h"
#include "sim/applications/plan/layout.h"
#include "sim/applications/plan/search.h"
#include "sim/engine/children.h"
#include "tests/scenarios/training_step/steps.h"

namespace foretrace::plan {
namespace {

using training::Recompute;
using training::Sharding;

Question question_of(std::int64_t layers, std::int64_t hidden = 4096) {
  Question question;
  question.model = "{layers: " + std::to_string(layers) + ", hidden: " + std::to_string(hidden) +
                   ", heads: 32, kv_heads: 8, ffn: 14336, vocab: 32000}";
  question.model_name = "llama";
  question.architecture =
      read_training_step("schema_version: 1\nname: a\ntraining_step: {model: " + question.model +
                             ", batch: {sequence: 4096}}\n",
                         "a.yaml")
          ->model;
  question.machine = load_machine("h100-nvswitch-8");
  question.machine_name = "h100-nvswitch-8";
  question.sequence = 4096;
  question.global_batch = 64;
  return question;
}

Prediction seconds_of(const Question& question, const Layout& layout, const Folded& steps) {
  std::vector<Job> jobs;
  for (const training::TrainingStep& step : steps.steps) {
    jobs.emplace_back(
        [&] { return numbers_of(predict(question.machine, trial_of(layout, step))); });
  }
  std::vector<std::optional<Prediction>> predictions;
  for (const auto& numbers : run_in_children(jobs)) {
    predictions.push_back(prediction_from(numbers));
  }
  return *unfolded(predictions, steps.further);
}

std::vector<Layout> some_layouts() {
  Layout fsdp{.gpus = 16, .data = 16, .passes = 4, .sharding = Sharding::Fsdp};
  Layout tensor{.gpus = 16, .tensor = 4, .data = 4, .passes = 4, .sharding = Sharding::Zero1};
  Layout stages{.gpus = 16, .pipeline = 4, .data = 4, .passes = 8, .sharding = Sharding::Zero1};
  Layout both{.gpus = 16,
              .tensor = 2,
              .pipeline = 2,
              .data = 4,
              .interleaved = 2,
              .passes = 4,
              .sharding = Sharding::Zero1};
  std::vector<Layout> all;
  for (Layout layout : {fsdp, tensor, stages, both}) {
    for (const Recompute recompute : {Recompute::None, Recompute::Full}) {
      layout.recompute = recompute;
      all.push_back(layout);
    }
  }
  fsdp.reduce_every_pass = true;
  all.push_back(fsdp);
  return all;
}

TEST(FoldedStep, TakesAsLongAsAllOfItsLayers) {
  const Question question = question_of(40);
  for (const Layout& layout : some_layouts()) {
    const training::TrainingStep step = step_of(question, layout);
    const Folded few = folded(step);
    // Where many short steps would have to settle the clock, all layers cost no more.
    EXPECT_EQ(few.steps.size(), layout.interleaved > 1 ? 1u : 2u) << describe(layout);
    const double whole = seconds_of(question, layout, {{step}, 0}).seconds;
    const bool fills = layout.pipeline > 1 && layout.interleaved == 1;
    EXPECT_NEAR(seconds_of(question, layout, few).seconds, whole, (fills ? 0.02 : 0.005) * whole)
        << describe(layout);
  }
}

TEST(FoldedStep, IsNoMoreWorkForMoreLayers) {
  Layout layout{.gpus = 16, .data = 16, .passes = 4, .sharding = Sharding::Fsdp};
  const auto spans = [&](std::int64_t layers) {
    const Question question = question_of(layers);
    return seconds_of(question, layout, folded(step_of(question, layout))).spans;
  };
  EXPECT_EQ(spans(40), spans(160));
}

TEST(FoldedStep, HasThePatternOfItsLayers) {
  training::TrainingStep step = step_of(question_of(24), {.gpus = 1});
  for (std::int64_t i = 0; i < 24; ++i) {
    step.model.kinds.push_back({.window = i % 6 == 5 ? 0 : 1024});
  }
  const Folded few = folded(step, Clock::AsItIs);
  ASSERT_EQ(few.steps.size(), 2u);
  for (const training::TrainingStep& one : few.steps) {
    EXPECT_EQ(one.model.layers % 6, 0);
    EXPECT_EQ(one.model.kinds.size(), static_cast<std::size_t>(one.model.layers));
  }
  step.model.kinds[11].window = 512;
  EXPECT_EQ(folded(step, Clock::AsItIs).steps.size(), 1u) << "no pattern";
}

TEST(Prediction, OfTimesOnlyHasTheSameTimes) {
  const Question question = question_of(4);
  for (const Layout& layout : some_layouts()) {
    const training::TrainingStep step = step_of(question, layout);
    const auto numbers = run_in_children(
        {[&] { return numbers_of(predict(question.machine, trial_of(layout, step))); },
         [&] {
           return numbers_of(
               predict(question.machine, trial_of(layout, step), {}, Says::TimesOnly));
         }});
    const auto all = prediction_from(numbers[0]), times = prediction_from(numbers[1]);
    ASSERT_EQ(all.has_value(), times.has_value()) << describe(layout);
    if (!all) continue;
    EXPECT_EQ(times->seconds, all->seconds) << describe(layout);
    EXPECT_EQ(times->next_pass, all->next_pass) << describe(layout);
    EXPECT_EQ(times->exposed, all->exposed) << describe(layout);
    EXPECT_EQ(times->spans, all->spans) << describe(layout);
    EXPECT_LT(all->low, all->high);
    EXPECT_TRUE(times->rests_on.parameters.empty()) << "bands are what is left out";
  }
}

TEST(LayoutOfAPlan, IsTheStepThatItsTextReadsAs) {
  Question question = question_of(4, 1024);
  const std::vector<Layout> all = layouts(question, 8);
  ASSERT_GT(all.size(), 30u);
  for (const Layout& layout : all) {
    for (const std::optional<std::int64_t> passes :
         {std::optional<std::int64_t>{}, {layout.passes}}) {
      const auto read = read_training_step(scenario_text(question, layout, passes), "plan");
      EXPECT_EQ(training::expand(step_of(question, layout, passes), training::Ranks::OneOfEach)
                    .program.hash,
                training::expand(*read, training::Ranks::OneOfEach).program.hash)
          << describe(layout);
    }
  }
}

}  // namespace
}  // namespace foretrace::plan
