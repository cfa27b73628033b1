// Tokens that are guessed ahead, as the scheduler gives them.
#include <gtest/gtest.h>

#include "sim/applications/serving/serve.h"

namespace foretrace::serving {
namespace {

Serving engine() {
  Serving serving;
  serving.engine.max_batched_tokens = 8;
  serving.engine.block = 4;
  return serving;
}

/// One request; iterations of a millisecond.
Served served(const Serving& serving, std::int64_t prompt, std::int64_t output) {
  constexpr std::int64_t kBlocks = 1000;
  const Fleet fleet{.engines = {serving, kBlocks, [](const Batch&) { return 1e-3; }}};
  return serve(fleet, {{0, prompt, output}}, kMostIterations).front();
}

TEST(ServingSpeculation, GivesGuessesBeforeTheFirstWrongOneAndNoneBeyondTheEnd) {
  Serving serving = engine();
  serving.engine.speculative = Speculation{.tokens = 3, .acceptance_ppm = 1'000'000};
  const Served all = served(serving, 5, 7);
  EXPECT_EQ(all.requests[0].token_ns,
            (std::vector<std::int64_t>{1'000'000, 2'000'000, 2'000'000, 2'000'000, 2'000'000,
                                       3'000'000, 3'000'000}));
  EXPECT_EQ(all.iterations[1].batch.guesses, 3);
  EXPECT_EQ(all.iterations[1].batch.tokens(), 4);
  EXPECT_EQ(all.iterations[2].batch.guesses, 1);
  serving.engine.speculative->acceptance_ppm = 0;
  const Served none = served(serving, 5, 4);
  EXPECT_EQ(none.iterations.size(), 4u);
  EXPECT_EQ(none.iterations[1].batch.guesses, 2);
}

TEST(ServingSpeculation, AcceptsGuessesAsOftenAsTheFileSays) {
  Serving serving = engine();
  serving.engine.speculative = Speculation{.tokens = 2, .acceptance_ppm = 600'000};
  const Served one = served(serving, 1, 3000);
  // 1 + 0.6 + 0.36 tokens an iteration.
  EXPECT_NEAR(static_cast<double>(one.iterations.size()), 3000 / 1.96, 40);
}

}  // namespace
}  // namespace foretrace::serving
