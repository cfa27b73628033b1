// What an iteration takes, beside the grid's ones that were simulated.
#include "sim/applications/serving/iteration_times.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/machine/machine.h"
#include "scenarios/read/scenario.h"

namespace foretrace::serving {
namespace {

Serving engine(std::string_view kind, std::string_view model = "llama3-8b") {
  return read_serving_scenario(
             fmt::format("schema_version: 1\nname: a\nserving:\n  model: {}\n"
                         "  engine: {{kind: {}}}\n"
                         "  traffic: {{arrivals: closed, concurrency: 64, requests: 64, "
                         "prompt: {{mean: 512}}, output: {{mean: 64}}}}\n",
                         model, kind),
             "a.yaml")
      .value()
      .serving;
}

/// Of 64 requests with 2,048 keys each, and of as many keys of which one request has twice as many.
double longer_by(std::string_view kind) {
  const Serving serving = engine(kind);
  const Machine machine = load_machine("h100-nvswitch-8");
  const std::size_t grid = batches_of(grid_of(serving)).size();
  const IterationTimes times{
      serving, machine, std::vector<RegionTime>(grid, {{.seconds = 1, .low = 1, .high = 1}, 1})};
  const Batch equal = decoding(64, 2048);
  Batch unequal = equal;
  unequal.longest *= 2;
  return times.of(unequal).seconds - times.of(equal).seconds;
}

TEST(ServingIterationTimes, EndWithTheLongestRequestWhereKeysAreNotSplit) {
  // 2,048 keys of 512 B more in each of 32 layers, at half of what an SM reads.
  EXPECT_NEAR(longer_by("foretrace"), 32 * 2048 * 512 / 10.2e9, 1e-5);
  EXPECT_EQ(longer_by("vllm"), 0);
}

/// How far the band's upper end is from iterations whose kernels' one is twice as long.
double band_of(std::string_view kind, std::string_view model, const Batch& batch) {
  const Serving serving = engine(kind, model);
  const Machine machine = load_machine("h100-nvswitch-8");
  const std::size_t grid = batches_of(grid_of(serving)).size();
  const IterationTimes times{
      serving, machine, std::vector<RegionTime>(grid, {{.seconds = 10, .low = 5, .high = 20}, 10})};
  const Time time = times.of(batch);
  EXPECT_LT(time.low, time.seconds);
  return time.high / time.seconds;
}

TEST(ServingIterationTimes, OfExpertsAreSurerInOurEngineThanInOthers) {
  const Batch decodes = decoding(64, 2048);
  Batch prompts;
  prompts.chunks = 1;
  prompts.chunk_tokens = prompts.chunk_keys = 512;
  prompts.chunk_pairs = 512 * 513 / 2;
  const auto experts = [](std::string_view kind, const Batch& batch) {
    return band_of(kind, "qwen3-30b-a3b", batch);
  };
  EXPECT_NEAR(band_of("foretrace", "llama3-8b", decodes), 2, 0.01) << "no experts: the kernels'";
  EXPECT_LT(experts("foretrace", decodes), experts("foretrace", prompts));
  EXPECT_LT(experts("foretrace", prompts), 2);
  EXPECT_GT(experts("vllm", decodes), 2);
}

}  // namespace
}  // namespace foretrace::serving
