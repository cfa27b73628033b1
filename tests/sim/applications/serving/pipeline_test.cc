// Engines whose stages work on several iterations at a time, and clients that answer later.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "models/machine/machine.h"
#include "scenarios/read/scenario.h"
#include "sim/applications/serving/iteration_times.h"
#include "sim/applications/serving/serve.h"

namespace foretrace::serving {
namespace {

using ::testing::ElementsAre;

double a_millisecond(const Batch& /*batch*/) { return 1e-3; }

Serving of_two_stages() {
  Serving serving;
  serving.engine.kind = EngineKind::Vllm;
  serving.engine.max_batched_tokens = 8;
  serving.engine.max_requests = 64;
  serving.engine.block = 4;
  serving.layout.pipeline = 2;
  return serving;
}

Served served(const Serving& serving, const std::vector<Arrival>& arrivals, std::int64_t blocks,
              std::int64_t client_ns = 0) {
  Fleet fleet{{serving, blocks, a_millisecond, a_millisecond}};
  fleet.client_ns = client_ns;
  return serve(fleet, arrivals).front();
}

TEST(ServingPipeline, HasAnIterationUnderWayInEachStage) {
  // The prompts fill an iteration each. Both stages take a a_millisecond, and none waits.
  const Served all = served(of_two_stages(), {{0, 8, 2}, {0, 8, 2}}, 100);
  EXPECT_THAT(all.requests[0].token_ns, ElementsAre(2'000'000, 4'000'000));
  EXPECT_THAT(all.requests[1].token_ns, ElementsAre(3'000'000, 5'000'000));
  EXPECT_EQ(all.iterations[1].begin_ns, all.iterations[0].end_ns) << "of the last stage";
}

TEST(ServingPipeline, ComputesChunksOfAPromptOneBehindTheOther) {
  const Served all = served(of_two_stages(), {{0, 24, 1}}, 100);
  EXPECT_THAT(all.requests[0].token_ns, ElementsAre(4'000'000)) << "three chunks, two stages";
  EXPECT_EQ(all.iterations[2].batch.chunk_keys, 24);
}

TEST(ServingPipeline, TakesNoRequestOutOfAnIterationThatIsUnderWay) {
  // 4 blocks for two requests of 4 + 8 tokens: one is preempted, and both get all their tokens.
  const Served all = served(of_two_stages(), {{0, 4, 8}, {0, 4, 8}}, 4);
  EXPECT_GT(all.preemptions, 0);
  for (const Request& one : all.requests) {
    EXPECT_EQ(one.token_ns.size(), 8u);
    EXPECT_EQ(one.under_way, 0);
    EXPECT_TRUE(std::ranges::is_sorted(one.token_ns));
  }
}

TEST(ServingPipeline, OfOneStageIsAnEngineWithout) {
  Serving one = of_two_stages();
  one.layout.pipeline = 1;
  const Served all = served(one, {{0, 8, 2}, {0, 8, 2}}, 100);
  EXPECT_THAT(all.requests[0].token_ns, ElementsAre(1'000'000, 2'000'000));
  EXPECT_THAT(all.requests[1].token_ns, ElementsAre(3'000'000, 4'000'000))
      << "its prompt's first 7 tokens come beside the other's second one";
}

TEST(ServingClients, OfAClosedLoopComeLaterByTheirOwnTimes) {
  Serving one = of_two_stages();
  one.layout.pipeline = 1;
  std::vector<Arrival> arrivals{{0, 1, 1}};
  arrivals.resize(2000, {std::nullopt, 1, 1});
  const Served all = served(one, arrivals, 100, 5'000'000);
  double sum = 0;
  std::set<std::int64_t> gaps;
  for (std::size_t i = 1; i < all.requests.size(); ++i) {
    const std::int64_t gap = all.requests[i].arrival_ns - all.requests[i - 1].token_ns.back();
    gaps.insert(gap);
    sum += static_cast<double>(gap);
  }
  EXPECT_NEAR(sum / 1999 / 5e6, 1, 0.08);
  EXPECT_GT(gaps.size(), 1990u);
}

TEST(ServingPipeline, HandsRowsOnInsteadOfHavingTheHead) {
  Serving serving = read_serving_scenario(
                        "schema_version: 1\nname: a\nserving:\n  model: llama3-8b\n"
                        "  parallel: {pipeline: 2}\n  engine: {kind: vllm}\n"
                        "  traffic: {arrivals: closed, concurrency: 4, requests: 4, "
                        "prompt: {mean: 512}, output: {mean: 64}}\n",
                        "a.yaml")
                        .value()
                        .serving;
  const Machine machine = load_machine("h100-nvswitch-8");
  const std::vector<RegionTime> grid(batches_of(grid_of(serving)).size(), {{1, 1, 1}, 1});
  const IterationTimes times{serving, machine, grid};
  const Batch batch = decoding(4, 100);
  const double head = 128256.0 * 4096 * 2 / 3.35e12;  // its weights once through the memory
  EXPECT_NEAR(times.of(batch).seconds - times.of_stage(batch).seconds, head, 0.3 * head);
  const double near = times.of_stage(prefilling(4096, 0)).seconds;
  serving.stages_have_nvlink = false;
  EXPECT_GT(times.of_stage(prefilling(4096, 0)).seconds, near + 1e-4) << "by a network card";
}

}  // namespace
}  // namespace foretrace::serving
