// The scheduler, the clock that iterations move on, and what is told of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/base/text/errors.h"
#include "sim/applications/serving/summary.h"

namespace foretrace::serving {
namespace {

using ::testing::ElementsAre;

Serving small_engine() {
  Serving serving;
  serving.engine.max_batched_tokens = 8;
  serving.engine.max_requests = 4;
  serving.engine.block = 4;
  serving.traffic.arrivals = Arrivals::Poisson;
  return serving;
}

std::vector<Arrival> at_once(std::initializer_list<std::pair<std::int64_t, std::int64_t>> lengths) {
  std::vector<Arrival> arrivals;
  for (const auto& [prompt, output] : lengths) arrivals.push_back({0, prompt, output});
  return arrivals;
}

double millisecond(const Batch& /*batch*/) { return 1e-3; }

std::vector<std::pair<std::int64_t, std::int64_t>> decodes_and_chunks(const Served& served) {
  std::vector<std::pair<std::int64_t, std::int64_t>> found;
  for (const Iteration& one : served.iterations) {
    found.emplace_back(one.batch.decodes, one.batch.chunk_tokens);
  }
  return found;
}

TEST(ServingScheduler, SplitsAPromptOverIterationsAndDecodesBesideIt) {
  const Served served = serve(small_engine(), at_once({{5, 3}, {9, 1}}), 100, millisecond);
  EXPECT_THAT(decodes_and_chunks(served),
              ElementsAre(std::pair{0, 8}, std::pair{1, 6}, std::pair{1, 0}));
  EXPECT_EQ(served.requests[0].token_ns,
            (std::vector<std::int64_t>{1'000'000, 2'000'000, 3'000'000}));
  EXPECT_EQ(served.requests[1].token_ns, (std::vector<std::int64_t>{2'000'000}));
}

TEST(ServingScheduler, ComputesPromptsWholeAndAloneWhereTheEngineDoes) {
  Serving serving = small_engine();
  serving.engine.chunked_prefill = false;
  EXPECT_THAT(decodes_and_chunks(serve(serving, at_once({{5, 2}, {6, 1}}), 100, millisecond)),
              ElementsAre(std::pair{0, 5}, std::pair{1, 6}));
  serving.engine.kind = EngineKind::Sglang;
  EXPECT_THAT(decodes_and_chunks(serve(serving, at_once({{5, 2}, {6, 1}}), 100, millisecond)),
              ElementsAre(std::pair{0, 5}, std::pair{0, 6}, std::pair{1, 0}));
}

TEST(ServingScheduler, PreemptsTheLastRequestWhereBlocksRunOut) {
  // Two requests of 4 + 6 tokens need three blocks each, and there are four.
  const Served served = serve(small_engine(), at_once({{4, 6}, {4, 6}}), 4, millisecond);
  EXPECT_EQ(served.preemptions, 1);
  EXPECT_EQ(served.requests[0].preempted, 0);
  EXPECT_EQ(served.requests[1].preempted, 1);
  EXPECT_EQ(served.requests[1].token_ns.size(), 6u);
  EXPECT_GT(served.requests[1].token_ns.back(), served.requests[0].token_ns.back());
}

TEST(ServingScheduler, FindsAPrefixInTheCache) {
  Serving serving = small_engine();
  serving.prefix_ppm = 500'000;
  EXPECT_THAT(decodes_and_chunks(serve(serving, at_once({{6, 1}}), 100, millisecond)),
              ElementsAre(std::pair{0, 3}));
}

TEST(ServingScheduler, RefusesARequestThatNeverFits) {
  EXPECT_THROW(serve(small_engine(), at_once({{9, 9}}), 4, millisecond), UsageError);
}

TEST(ServingScheduler, LetsTheNextOfAClosedLoopComeWhenOneIsDone) {
  std::vector<Arrival> arrivals = at_once({{4, 1}});
  arrivals.push_back({std::nullopt, 4, 1});
  const Served served = serve(small_engine(), arrivals, 100, millisecond);
  EXPECT_EQ(served.requests[1].arrival_ns, 1'000'000);
  EXPECT_EQ(served.requests[1].token_ns.front(), 2'000'000);
}

TEST(ServingScheduler, WaitsForTheNextArrival) {
  std::vector<Arrival> arrivals = at_once({{4, 1}});
  arrivals.push_back({5'000'000, 4, 1});
  const Served served = serve(small_engine(), arrivals, 100, millisecond);
  EXPECT_EQ(served.iterations[1].begin_ns, 5'000'000);
}

TEST(ServingSummary, IsAsTheDocumentDefinesIt) {
  const Serving serving = small_engine();
  const Served served = serve(serving, at_once({{5, 3}, {9, 1}}), 100, millisecond);
  const Summary summary = summary_of(serving, {served});
  EXPECT_DOUBLE_EQ(summary.ttft.mean, 1.5);
  EXPECT_DOUBLE_EQ(summary.ttft.percentiles[1], 1.9) << "linear between 1 and 2";
  EXPECT_DOUBLE_EQ(summary.tpot.mean, 1) << "of the request that has more than one token";
  EXPECT_DOUBLE_EQ(summary.itl.mean, 1);
  EXPECT_DOUBLE_EQ(summary.end_to_end.mean, 2.5);
  EXPECT_DOUBLE_EQ(summary.seconds, 3e-3);
  EXPECT_NEAR(summary.output_tokens_per_s, 4 / 3e-3, 1e-9);
  EXPECT_DOUBLE_EQ(summary.most_of_cache, 0.05) << "5 of 100 blocks";
  EXPECT_EQ(summary.verdict, Verdict::Stable);
}

TEST(ServingSummary, SaysThatAnEngineIsTooSlow) {
  Serving serving = small_engine();
  serving.engine.max_requests = 1;
  std::vector<Arrival> arrivals;
  for (std::int64_t i = 0; i < 100; ++i) arrivals.push_back({i * 1'000'000, 4, 2});
  const Summary slow = summary_of(serving, {serve(serving, arrivals, 100, millisecond)});
  EXPECT_EQ(slow.verdict, Verdict::Overloaded);
  EXPECT_NEAR(slow.falls_behind, 1, 0.05) << "each takes two of the milliseconds between them";
  const Summary quick =
      summary_of(serving, {serve(serving, arrivals, 100, [](const Batch&) { return 4e-4; })});
  EXPECT_EQ(quick.verdict, Verdict::Stable);
}

TEST(ServingReplicas, GetRequestsInTurn) {
  Serving serving = small_engine();
  serving.replicas = 2;
  const std::vector<Arrival> all = at_once({{1, 1}, {2, 1}, {3, 1}});
  EXPECT_EQ(of_replica(serving, all, 0).size(), 2u);
  EXPECT_EQ(of_replica(serving, all, 1).front().prompt, 2);
}

}  // namespace
}  // namespace foretrace::serving
