// What a page says at once must not be far from what the search says behind it.
#include "sim/applications/plan/coarse.h"

#include <gtest/gtest.h>

#include <string>

#include "models/machine/machine.h"
#include "scenarios/architecture/config.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::plan {
namespace {

Question asked(const std::string& model) {
  Question question;
  question.model = question.model_name = model;
  question.architecture = training::shipped_model(model);
  question.machine = load_machine("h100-nvswitch-8");
  question.machine_name = "h100-nvswitch-8";
  question.sequence = 4096;
  question.global_batch = 64;
  return question;
}

class CoarsePlan : public testing::TestWithParam<const char*> {};

TEST_P(CoarsePlan, HasTheMemoryThatTheReaderSays) {
  const Question question = asked(GetParam());
  const CoarseAnswer answer = coarse_plan(question, 16);
  ASSERT_FALSE(answer.rows.empty());
  EXPECT_LE(answer.fitting, answer.tried);
  for (const CoarseRow& row : answer.rows) {
    const auto fit = fit_of(question, row.layout);
    ASSERT_TRUE(fit.has_value()) << describe(row.layout);
    EXPECT_NEAR(row.fit.bytes / fit->bytes, 1, 0.001) << describe(row.layout);
  }
}

TEST_P(CoarsePlan, IsOrderedByBoundsThatTheFoldedStepIsNotBelow) {
  const Question question = asked(GetParam());
  const CoarseAnswer answer = coarse_plan(question, 16);
  ASSERT_FALSE(answer.rows.empty());
  for (std::size_t i = 1; i < answer.rows.size(); ++i) {
    EXPECT_LE(answer.rows[i - 1].bound, answer.rows[i].bound);
  }
  const Layout& layout = answer.rows.front().layout;
  Work work;
  const auto step = simulated({{question, layout, settled_passes(layout), Clock::Settled, {}, {}}},
                              work, [](std::size_t) { return true; });
  ASSERT_TRUE(step.front().has_value());
  EXPECT_LE(answer.rows.front().bound, step.front()->seconds);
  EXPECT_GT(answer.rows.front().bound, 0.6 * step.front()->seconds);
}

INSTANTIATE_TEST_SUITE_P(All, CoarsePlan,
                         testing::Values("llama3-8b", "qwen2-0.5b", "mixtral-8x7b"));

TEST(CoarsePlanRefusal, NamesWhatDoesNotDivide) {
  Question question = asked("qwen2-0.5b");
  question.global_batch = 7;
  question.kept = {{"tensor", "1"}, {"pipeline", "1"}};
  EXPECT_THROW(coarse_plan(question, 16), UsageError);
}

}  // namespace
}  // namespace foretrace::plan
