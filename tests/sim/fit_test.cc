// The fit finds the parameters that a measurement was made with.
#include "sim/fit.h"

#include <gtest/gtest.h>

#include "scenarios/read_scenario.h"
#include "sim/children.h"
#include "sim/simulate.h"
#include "tests/sim/unit_machine.h"

namespace foretrace::test {
namespace {

const std::string kScenario = R"(schema_version: 1
name: calibrate
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

/// As a measurement: the regions of a simulation, made in a child since the fit needs this process
/// free of engines.
Timeline measured_on(const Program& program, const Machine& machine) {
  const auto times = run_in_children({[&] {
    std::vector<double> ns;
    for (const RegionSamples& region : simulate(program, machine).regions) {
      ns.push_back(static_cast<double>(region.samples_ns.front()));
    }
    return ns;
  }});
  Timeline timeline;
  timeline.origin.program_hash = program.hash;
  timeline.origin.measured = true;
  timeline.ops.resize(program.op_count);
  for (const OpInfo& info : index_ops(program)) {
    const auto* region = std::get_if<Region>(&info.op->kind);
    if (region == nullptr) continue;
    for (std::uint64_t i = 0; i < 4; ++i) {
      RegionSamples samples;
      samples.op = info.op->id.value;
      samples.instance = i;
      samples.name = region->name;
      const std::size_t at = region->name == "h2d" ? 2 * i : 2 * i + 1;  // in order of execution
      samples.samples_ns = {static_cast<std::int64_t>(times[0][at])};
      timeline.regions.push_back(std::move(samples));
    }
    timeline.ops[info.op->id.value].loops = {4};
  }
  return timeline;
}

TEST(Fit, FindsTheParametersThatAMeasurementWasMadeWith) {
  const Program program = read_scenario(kScenario, "calibrate.yaml")->program;
  Machine truth = unit_machine();
  for (std::size_t i = 0; i < kParamCount; ++i) {  // held fixed, but for the three in question
    ParamValue value = truth.get(static_cast<Param>(i));
    value.source = ParameterClass::Datasheet;
    truth.set(static_cast<Param>(i), value);
  }
  truth.set(Param::H2dBandwidth, {1.8e9, 0, ParameterClass::Assumed, "", ""});
  truth.set(Param::HostLaunchKernel, {4e-6, 0, ParameterClass::Assumed, "", ""});
  truth.set(Param::HostMalloc, {5e-6, 0, ParameterClass::Assumed, "", ""});
  Machine start = truth;
  start.set(Param::H2dBandwidth, {1e9, 0, ParameterClass::Assumed, "", ""});
  start.set(Param::HostLaunchKernel, {2e-6, 0, ParameterClass::Assumed, "", ""});

  const FitResult result = fit({{program, measured_on(program, truth)}}, start, "a test");

  EXPECT_NEAR(result.machine.rate(Param::H2dBandwidth), 1.8e9, 0.018e9);
  EXPECT_NEAR(to_us(result.machine.time(Param::HostLaunchKernel)), 4, 0.04);
  EXPECT_EQ(result.machine.get(Param::H2dBandwidth).source, ParameterClass::Fit);
  EXPECT_EQ(result.machine.get(Param::H2dBandwidth).from, "a test");
  EXPECT_EQ(result.undetermined, std::vector{Param::HostMalloc}) << "no region depends on it";
  for (const FitResidual& residual : result.residuals) {
    EXPECT_NEAR(residual.predicted_ns / residual.measured_ns, 1, 0.01) << residual.region;
  }
}

}  // namespace
}  // namespace foretrace::test
