// The fit finds the parameters that a measurement was made with, and says what it cannot know.
#include "sim/applications/fit/fit.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "tests/sim/applications/fit/measured_by_simulation.h"

namespace foretrace::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

const std::string kCopiesAndLaunches = R"(name: calibrate
streams: {s: {flags: non_blocking}}
buffers: {h: {memory: pinned, size: 1MB}, x: {memory: device, size: 1MB}}
threads:
  main:
    - repeat:
        index: i
        times: 4
        ops:
          - region: {name: h2d, ops: [memcpy_async: {stream: s, src: h, dst: x, size: 10000B * 4 ** i}, stream_synchronize: {stream: s}]}
          - region: {name: launch, ops: [repeat: {times: 20, ops: [spin: {stream: s, duration: 1us}]}, stream_synchronize: {stream: s}]}
)";

const std::string kSweep = R"(name: nccl_all_reduce
tags: [nccl]
processes: 2
streams: {s: {flags: non_blocking}}
buffers: {a: {memory: device, size: 64MiB}}
communicators: {world: {members: all_devices, init: rank}}
threads:
  main:
    - repeat:
        index: i
        times: 9
        ops:
          - host_barrier: {}
          - region: {name: small, ops: [nccl_all_reduce: {comm: world, stream: s, buffer: a, size: 1KiB * 2 ** (i % 6), type: float32, op: sum}, stream_synchronize: {stream: s}]}
)";

Machine truth() {
  Machine machine = fixed_machine();
  open_parameter(machine, Param::H2dBandwidth, 1.8e9);
  open_parameter(machine, Param::HostLaunchKernel, 4e-6);
  return machine;
}

Machine guess() {
  Machine machine = fixed_machine();
  open_parameter(machine, Param::H2dBandwidth, 1e9);
  open_parameter(machine, Param::HostLaunchKernel, 2e-6);
  return machine;
}

FitData data_of(const std::string& text, const Noise& noise = jitter(0), HoldOut hold_out = {}) {
  FitData data;
  const Program program = program_from(text);
  add_run(data, program, measured_on(program, truth(), noise), hold_out);
  return data;
}

double relative(const FitResult& result, Param param) {
  return result.machine.get(param).value / truth().get(param).value - 1;
}

TEST(Fit, FindsTheParametersThatAMeasurementWasMadeWith) {
  Machine start = guess();
  open_parameter(start, Param::HostMalloc, 5e-6);
  const FitResult result = fit(data_of(kCopiesAndLaunches), start, {"a test", "foretrace fit x"});

  EXPECT_NEAR(relative(result, Param::H2dBandwidth), 0, 0.01);
  EXPECT_NEAR(relative(result, Param::HostLaunchKernel), 0, 0.01);
  EXPECT_THAT(result.fitted, ElementsAre(Param::HostLaunchKernel, Param::H2dBandwidth));
  EXPECT_EQ(result.machine.get(Param::H2dBandwidth).source, ParameterClass::Fit);
  EXPECT_EQ(result.machine.get(Param::H2dBandwidth).from, "a test");
  const Source& source = *result.machine.get(Param::H2dBandwidth).origin;
  EXPECT_EQ(source.id, "calibrate");
  EXPECT_EQ(source.command, "foretrace fit x");
  ASSERT_THAT(source.learned_from, SizeIs(1));
  EXPECT_EQ(source.learned_from[0].scenario, "calibrate");
  EXPECT_THAT(source.learned_from[0].ranks, ElementsAre(1U));
}

TEST(Fit, LeavesAParameterThatNoRegionDependsOnAsItWas) {
  Machine start = guess();
  open_parameter(start, Param::HostMalloc, 5e-6);
  const FitResult result = fit(data_of(kCopiesAndLaunches), start, {"a test", "foretrace fit x"});
  ASSERT_THAT(result.refused, SizeIs(1));
  EXPECT_EQ(result.refused[0].param, Param::HostMalloc);
  EXPECT_EQ(result.machine.get(Param::HostMalloc).value, 5e-6);
  EXPECT_EQ(result.machine.get(Param::HostMalloc).source, ParameterClass::Assumed);
}

TEST(Fit, LeavesAloneWhatItIsNotToFit) {
  const FitResult result =
      fit(data_of(kCopiesAndLaunches), guess(), {"a test", "foretrace fit x"}, {"host."});
  EXPECT_THAT(result.fitted, ElementsAre(Param::HostLaunchKernel));
  EXPECT_EQ(result.machine.get(Param::H2dBandwidth).value, 1e9);
  EXPECT_THAT(result.refused, IsEmpty());
}

TEST(Fit, NoiseWidensTheSpreadAndTheTruthStaysInside) {
  const FitResult quiet =
      fit(data_of(kCopiesAndLaunches, jitter(0.01)), guess(), {"a test", "foretrace fit x"});
  const FitResult loud =
      fit(data_of(kCopiesAndLaunches, jitter(0.2)), guess(), {"a test", "foretrace fit x"});
  for (const Param param : {Param::H2dBandwidth, Param::HostLaunchKernel}) {
    EXPECT_LT(std::abs(relative(quiet, param)), 0.02);
    const double spread = loud.machine.get(param).spread;
    EXPECT_GT(spread, 2 * quiet.machine.get(param).spread);
    EXPECT_LT(std::abs(relative(loud, param)), 3 * spread);
  }
}

const std::string kOneAndMany = R"(name: calibrate
streams: {s: {flags: non_blocking}}
events: {e: {}}
threads:
  main:
    - region: {name: steady, per: 50, ops: [repeat: {times: 50, ops: [event_record: {event: e, stream: s}]}]}
    - stream_synchronize: {stream: s}
    - region: {name: others, per: 40, ops: [repeat: {times: 40, ops: [event_record: {event: e, stream: s}]}]}
    - stream_synchronize: {stream: s}
    - region: {name: others_too, per: 30, ops: [repeat: {times: 30, ops: [event_record: {event: e, stream: s}]}]}
)";

TEST(Fit, ARegionThatRepeatsExactlyDoesNotOutweighTheOthers) {
  // One region never differs from itself, and the model is 20 % off in it; two agree within 4 %.
  const Program program = program_from(kOneAndMany);
  Machine truth = fixed_machine();
  open_parameter(truth, Param::HostEventRecord, 1e-6);
  const Noise noise = [](const std::string& region, std::uint64_t, int repetition) {
    return region == "steady" ? 1.2 : 1 + 0.02 * (repetition % 3 - 1);
  };
  FitData data;
  add_run(data, program, measured_on(program, truth, noise), {});
  const FitResult result = fit(data, truth, {"a test", "foretrace fit x"});
  EXPECT_NEAR(result.machine.get(Param::HostEventRecord).value, 1.06e-6, 0.02e-6)
      << "a third of the way, not nearly all of it";
}

TEST(Fit, AnOutlierHardlyMovesIt) {
  const Noise outlier = [](const std::string& region, std::uint64_t instance, int) {
    return region == "launch" && instance == 2 ? 3.0 : 1.0;
  };
  const FitResult result =
      fit(data_of(kCopiesAndLaunches, outlier), guess(), {"a test", "foretrace fit x"});
  EXPECT_NEAR(relative(result, Param::HostLaunchKernel), 0, 0.05)
      << "one region of four takes three times as long";
}

const std::string kOnlyBoth = R"(name: calibrate
streams: {s: {flags: non_blocking}}
buffers: {x: {memory: device, size: 1MB}}
threads:
  main:
    - region: {name: both, ops: [repeat: {times: 20, ops: [malloc_async: {buffer: x, stream: s}, free_async: {buffer: x, stream: s}]}]}
)";

/// Both calls take so long; data of kOnlyBoth there.
Machine both_calls(double seconds) {
  Machine machine = fixed_machine();
  open_parameter(machine, Param::HostMallocAsync, seconds);
  open_parameter(machine, Param::HostFreeAsync, seconds);
  return machine;
}
FitData data_of_both() {
  const Program program = program_from(kOnlyBoth);
  FitData data;
  add_run(data, program, measured_on(program, both_calls(3e-6)), {});
  return data;
}

TEST(Fit, WhatTheGpusKindTellsMovesLess) {
  Machine start = both_calls(1e-6);
  ParamValue known = start.get(Param::HostMallocAsync);
  known.spread = 0.05;
  Source source{.id = "as_another", .text = "as another", .learned_from = {}, .command = {}};
  known.origin = std::make_shared<const Source>(std::move(source));
  start.set(Param::HostMallocAsync, known);
  const FitResult result = fit(data_of_both(), start, {"a test", "foretrace fit x"});
  EXPECT_NEAR(result.machine.get(Param::HostMallocAsync).value, 1e-6, 0.2e-6);
  EXPECT_NEAR(result.machine.get(Param::HostFreeAsync).value, 5e-6, 0.3e-6);
}

TEST(Fit, OfTwoParametersThatOnlyTheirSumMattersOneIsGivenUp) {
  const FitResult result = fit(data_of_both(), both_calls(1e-6), {"a test", "foretrace fit x"});
  ASSERT_THAT(result.refused, SizeIs(1));
  ASSERT_THAT(result.fitted, SizeIs(1));
  EXPECT_NEAR(result.machine.get(result.refused[0].param).value, 1e-6, 1e-12) << "as it was";
  EXPECT_NEAR(result.machine.get(result.fitted[0]).value, 5e-6, 0.1e-6) << "the rest of the sum";
}

TEST(Fit, WhatIsHeldOutHasNoSayInIt) {
  const Program program = program_from(kSweep);
  Machine there = fixed_machine();
  open_parameter(there, Param::NcclHostCollective, 9e-6);
  Machine start = there;
  open_parameter(start, Param::NcclHostCollective, 4e-6);
  const Noise wrong_where_held_out = [](const std::string&, std::uint64_t instance, int) {
    return instance % 2 == 1 ? 5.0 : 1.0;
  };
  FitData honest;
  add_run(honest, program, measured_on(program, there), {});
  FitData wrong;
  add_run(wrong, program, measured_on(program, there, wrong_where_held_out), {});
  const FitResult from_honest = fit(honest, start, {"a test", "foretrace fit x"});
  const FitResult from_wrong = fit(wrong, start, {"a test", "foretrace fit x"});
  EXPECT_EQ(from_honest.machine.get(Param::NcclHostCollective).value,
            from_wrong.machine.get(Param::NcclHostCollective).value);
  EXPECT_NEAR(from_honest.machine.get(Param::NcclHostCollective).value, 9e-6, 0.2e-6);
  ASSERT_THAT(from_wrong.predicted_ns, SizeIs(9)) << "it is predicted all the same";
  EXPECT_NEAR(from_wrong.predicted_ns[1] * 5 / wrong.targets[1].measured_ns, 1, 0.05);
}

TEST(Fit, SimulatesOnlyWhereAParameterHasAnInfluence) {
  FitData one = data_of(kCopiesAndLaunches);
  const std::size_t alone = fit(one, guess(), {"a test", "foretrace fit x"}).simulations;
  FitData with_another = data_of(kCopiesAndLaunches);
  const Program unrelated = program_from(R"(name: calibrate_other
threads:
  main:
    - region: {name: compute, ops: [host_compute: {duration: 1ms}]}
)");
  add_run(with_another, unrelated, measured_on(unrelated, truth()), {});
  const std::size_t together =
      fit(with_another, guess(), {"a test", "foretrace fit x"}).simulations;
  // The other run is simulated where its residuals are needed, but has no part in the Jacobian.
  EXPECT_LT(together, 2 * alone);
}

TEST(Fit, JudgingChangesNothing) {
  const Machine start = guess();
  const FitData data = data_of(kCopiesAndLaunches);
  const FitResult result = judge(data, start);
  EXPECT_EQ(machine_text(result.machine), machine_text(start));
  EXPECT_THAT(result.fitted, IsEmpty());
  ASSERT_THAT(result.predicted_ns, SizeIs(data.targets.size()));
  EXPECT_EQ(data.targets[3].region, "h2d [3]");
  EXPECT_GT(result.predicted_ns[3], 1.5 * data.targets[3].measured_ns) << "guessed too slow";
}

}  // namespace
}  // namespace foretrace::test
