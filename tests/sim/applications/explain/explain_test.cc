// Six scenarios with a planted cause each, and the same without it.
#include "sim/applications/explain/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <ostream>
#include <string>

#include "scenarios/read/scenario.h"
#include "scenarios/base/text/data_directory.h"
#include "sim/simulate.h"

namespace foretrace::explain {
namespace {

struct Planted {
  const char* scenario;
  Cause cause;
  friend std::ostream& operator<<(std::ostream& out, const Planted& planted) {
    return out << planted.scenario;
  }
};

class PlantedCause : public testing::TestWithParam<Planted> {};
INSTANTIATE_TEST_SUITE_P(
    All, PlantedCause,
    testing::Values(Planted{"synchronization_in_the_loop", Cause::Synchronization},
                    Planted{"pageable_copies", Cause::Copy}, Planted{"straggler", Cause::Straggler},
                    Planted{"launch_bound", Cause::Host},
                    Planted{"slow_link", Cause::Communication}, Planted{"bubble", Cause::Bubble}),
    [](const auto& tested) { return std::string{tested.param.scenario}; });

Program shipped(const std::string& name) {
  return load_scenario(data_directory() / "scenarios/explain" / (name + ".yaml"));
}

TEST_P(PlantedCause, IsNamedFirstAndItsGainIsThatOfTheRepairedScenario) {
  const Machine machine = load_machine("h200-nvswitch-8");
  const std::string name = GetParam().scenario;
  const Explanation broken = explain(shipped(name), machine);
  const Explanation repaired = explain(shipped(name + "_repaired"), machine);
  ASSERT_FALSE(broken.gains.empty());
  EXPECT_EQ(name_of(broken.gains.front().cause), name_of(GetParam().cause));
  const double saved = broken.seconds - repaired.seconds;
  EXPECT_NEAR(broken.seconds - broken.gains.front().seconds, saved, 0.1 * saved);
  EXPECT_GT(saved, 0.1 * broken.seconds) << "nothing was planted";
}

Program read(const std::string& text) {
  auto result = read_scenario(text, "x.yaml", {});
  if (!result) {
    ADD_FAILURE() << render(result.error(), text);
    return {};
  }
  return std::move(result->program);
}
std::string region(const std::string& duration) {
  return "    - region: {name: step, ops: [{spin: {duration: " + duration +
         "}}, {device_synchronize: {}}]}\n";
}
const std::string kHead = "schema_version: 1\nname: x\nthreads:\n  main:\n";  // 5 is the next line

TEST(Explanation, TellsRegionsOfOneNameApart) {
  const Machine machine = load_machine("h200-nvswitch-8");
  const Explanation explanation =
      explain(read(kHead + region("3ms") + region("5ms") + region("1ms")), machine);
  EXPECT_EQ(explanation.region, "step");
  EXPECT_EQ(explanation.line, 6);
  EXPECT_EQ(explanation.executions, 1u);
  EXPECT_NEAR(explanation.seconds, 5e-3, 1e-4) << "not the sum";
  EXPECT_THAT(headline_of(explanation), testing::HasSubstr("region 'step' in line 6 (the longest"));
}

TEST(Explanation, TellsRegionsOfOneNameInTwoThreadsApart) {
  const Machine machine = load_machine("h200-nvswitch-8");
  const Explanation lines =
      explain(read(kHead + region("3ms") + "  other:\n" + region("1ms")), machine);
  EXPECT_EQ(lines.line, 5);
  EXPECT_EQ(lines.thread, "") << "the line says which";
  const std::string ops = "[{region: {name: step, ops: [{host_compute: {duration: 2ms}}]}}]";
  const Explanation threads = explain(
      read("schema_version: 1\nname: x\nthreads: {a: " + ops + ", b: " + ops + "}\n"), machine);
  EXPECT_EQ(threads.line, 3);
  EXPECT_EQ(threads.thread, "a");
  EXPECT_THAT(headline_of(threads), testing::HasSubstr("host thread 'a'"));
  EXPECT_NEAR(threads.seconds, 2e-3, 1e-4);
}

TEST(Explanation, TakesARegionOfSeveralProcessesAsOne) {
  const Explanation explanation = explain(
      read("schema_version: 1\nname: x\nprocesses: 2\nthreads:\n  main:\n    - when: {condition: "
           "process == 1, ops: [host_compute: {duration: 1us}]}\n" +
           region("(1ms + process * 1ms)")),
      load_machine("h200-nvswitch-8"));
  EXPECT_EQ(explanation.process, 1u);
  EXPECT_NEAR(explanation.seconds, 2e-3, 1e-4);
}

TEST(Explanation, NamesTheHostsOwnWorkWhereTheGpuIdlesForIt) {
  const std::string loop =
      "    - repeat:\n        times: 20\n        ops:\n          - region: {name: step, ops: [spin: "
      "{duration: 20us}, host_compute: {duration: {HOST}us}, device_synchronize: {}]}\n";
  const auto explained = [&](const std::string& host) {
    std::string text = loop;
    text.replace(text.find("{HOST}"), 6, host);
    return explain(read(kHead + text), load_machine("h200-nvswitch-8"));
  };
  const Explanation idle = explained("300");
  EXPECT_TRUE(idle.waits_for_host_work());
  EXPECT_NEAR(idle.host_seconds, 20 * 300e-6, 1e-6);
  EXPECT_NEAR(idle.gpu_seconds, 20 * 20e-6, 20e-6) << "and what a kernel takes to end";
  EXPECT_THAT(headline_of(idle), testing::HasSubstr("the host's own work between calls (6"));
  EXPECT_TRUE(idle.rest_waits_for_host_work());
  EXPECT_FALSE(explained("10").waits_for_host_work());
}

TEST(Explanation, SaysWhatARunThatGetsLongerContradicts) {
  const Gain longer = gain_of(Cause::Synchronization, 1e-3, 1.1e-3);
  EXPECT_EQ(longer.gain, 0);
  EXPECT_EQ(longer.seconds, 1e-3);
  EXPECT_EQ(longer.simulated, 1.1e-3);
  EXPECT_THAT(longer.bound, testing::HasSubstr("the run as it is"));
  const Gain cut = gain_of(Cause::Communication, 1e-3, 0.5e-3, 0.8e-3, "kernels");
  EXPECT_NEAR(cut.gain, 0.2, 1e-12);
  EXPECT_EQ(cut.seconds, 0.8e-3);
  EXPECT_EQ(cut.bound, "kernels");
  EXPECT_EQ(gain_of(Cause::Host, 1e-3, 0.9e-3, 0.8e-3, "kernels").bound, "");
}

TEST(GpuTimes, AddUpToTheRun) {
  const Timeline timeline = simulate(shipped("straggler"), load_machine("h200-nvswitch-8"));
  const auto gpus = gpu_times(timeline);
  ASSERT_EQ(gpus.size(), 2u);
  const auto share = [](const GpuTime& gpu, Use use) {
    return static_cast<double>(gpu.by_use[static_cast<std::size_t>(use)]) /
           static_cast<double>(gpu.ns);
  };
  for (const GpuTime& gpu : gpus) {
    EXPECT_EQ(std::accumulate(gpu.by_use.begin(), gpu.by_use.end(), std::int64_t{0}), gpu.ns);
  }
  // 300 us of work and 150 us of waiting in each of its iterations; the other waits for nobody.
  EXPECT_NEAR(share(gpus[0], Use::Straggler), 0.5 * share(gpus[0], Use::Kernel), 0.02);
  EXPECT_LT(share(gpus[1], Use::Straggler), 0.01);
  const CriticalPath path = critical_path(timeline);
  EXPECT_EQ(std::accumulate(path.by_class.begin(), path.by_class.end(), path.nothing_ns), path.ns);
}

TEST(CriticalPath, IsTheGpusWhereTheHostRunsAheadOfIt) {
  const Timeline timeline =
      simulate(shipped("synchronization_in_the_loop_repaired"), load_machine("h200-nvswitch-8"));
  const CriticalPath path = critical_path(timeline);
  const auto kernels = path.by_class[static_cast<std::size_t>(SpanClass::Kernel)];
  EXPECT_GT(kernels, path.ns * 85 / 100) << "6 of 6.7 ms";
  std::int64_t at = path.parts.front().begin_ns;
  for (const PathPart& part : path.parts) {
    EXPECT_EQ(part.begin_ns, at);
    at = part.end_ns;
  }
}

}  // namespace
}  // namespace foretrace::explain
