// Which predicted regions are a fit: by the parameters that decide them, and what these learned
// from.
#include "sim/record/standing.h"

#include <gmock/gmock.h>

#include "scenarios/read/scenario.h"

namespace foretrace::test {
namespace {

using testing::ElementsAre;

// Passes 0 to 2 of 1, 4 and 16 KiB on each of two ranks: 2, 8 and 32 KiB as nccl-tests counts.
const std::string kSweep = R"(schema_version: 1
name: nccl_x
processes: 2
streams: {s: {flags: non_blocking}}
buffers: {a: {memory: device, size: 1MiB}, b: {memory: device, size: 1MiB}}
communicators: {world: {members: all_devices, init: rank}}
threads:
  main:
    - repeat:
        index: i
        times: 3
        ops:
          - region: {name: r, ops: [nccl_all_gather: {comm: world, stream: s, send_buffer: a, recv_buffer: b, size: 1KiB * 4 ** i, type: float32}, stream_synchronize: {stream: s}]}
)";

Machine learned(Param param, LearnedFrom from) {
  const auto source = std::make_shared<const Source>(Source{.id = "s",
                                                            .kind = ParameterClass::Assumed,
                                                            .text = "s",
                                                            .learned_from = {std::move(from)},
                                                            .command = {}});
  Machine machine;
  machine.set(param, {1e-6, 0, source->kind, source->text, "", source});
  machine.set(Param::HostQuery, {1e-6, 0, ParameterClass::Assumed, "", ""});
  return machine;
}

/// Of each pass, in a prediction in which `key` decides every region.
std::vector<bool> fits(const LearnedFrom& from, const std::string& key = "nccl.host_collective",
                       Param param = Param::NcclHostCollective) {
  const Program program = read_scenario(kSweep, "sweep.yaml")->program;
  Timeline timeline;
  for (const OpInfo& info : index_ops(program)) {
    if (!std::holds_alternative<Region>(info.op->kind)) continue;
    for (std::uint64_t pass = 0; pass < 3; ++pass) {
      RegionSamples region;
      region.op = info.op->id.value;
      region.instance = pass;
      region.decided_by = {{key, 0.8}};
      timeline.regions.push_back(region);
    }
  }
  sim::note_standing(timeline, program, learned(param, from));
  std::vector<bool> result;
  for (const RegionSamples& region : timeline.regions) result.push_back(!region.learned_by.empty());
  return result;
}

LearnedFrom from(const std::string& scenario) {
  return {.scenario = scenario, .other = {}, .ranks = {}, .sizes = {}, .data = {}};
}

TEST(Standing, IsAFitWhereADecidingParameterLearnedFromTheScenario) {
  EXPECT_THAT(fits(from("nccl_x")), ElementsAre(true, true, true));
  EXPECT_THAT(fits(from("nccl_*")), ElementsAre(true, true, true));
  EXPECT_THAT(fits(from("nccl_y")), ElementsAre(false, false, false));
}

TEST(Standing, IsAPredictionWhereTheParameterThatLearnedDoesNotDecide) {
  EXPECT_THAT(fits(from("nccl_x"), "host.query"), ElementsAre(false, false, false));
  EXPECT_THAT(fits(from("nccl_x"), "copy.h2d_bandwidth"), ElementsAre(false, false, false));
}

TEST(Standing, IsAFitWhereTheParameterThatLearnedActsBetweenSpans) {
  EXPECT_THAT(fits(from("nccl_x"), "host.query", Param::NcclMemorySlowdown),
              ElementsAre(true, true, true));
  EXPECT_THAT(fits(from("nccl_y"), "host.query", Param::NcclMemorySlowdown),
              ElementsAre(false, false, false));
}

TEST(Standing, IsAPredictionAtANumberOfGpusThatNobodyLearnedFrom) {
  LearnedFrom learned_from = from("nccl_x");
  learned_from.ranks = {3, 4};
  EXPECT_THAT(fits(learned_from), ElementsAre(false, false, false));
  learned_from.ranks = {4, 2};
  EXPECT_THAT(fits(learned_from), ElementsAre(true, true, true));
}

TEST(Standing, IsAPredictionBetweenTheSizesThatWereLearnedFrom) {
  LearnedFrom learned_from = from("nccl_x");
  learned_from.every_other = true;
  EXPECT_THAT(fits(learned_from), ElementsAre(true, false, true));
}

TEST(Standing, IsAPredictionBeyondTheSizesThatWereLearnedFrom) {
  LearnedFrom learned_from = from("nccl_x");
  learned_from.sizes = ByteRange{2048, 8191};
  EXPECT_THAT(fits(learned_from), ElementsAre(true, false, false));
}

}  // namespace
}  // namespace foretrace::test
