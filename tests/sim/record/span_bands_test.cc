// The bands of spans and regions, and the parameters that decide them.
#include "sim/record/span_bands.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "scenarios/read/scenario.h"
#include "sim/simulate.h"
#include "tests/sim/unit_machine.h"

namespace foretrace::test {
namespace {

using enum ParameterClass;

Timeline run(const std::string& ops, const Machine& machine) {
  const auto read = read_scenario(
      "schema_version: 1\nname: x\nwarmup: 0\nstreams: {s: {flags: non_blocking}}\n"
      "buffers: {h: {memory: pinned, size: 4MiB}, d: {memory: device, size: 4MiB}}\n"
      "threads: {main: [" +
          ops + "]}\n",
      "x.yaml");
  EXPECT_TRUE(read.has_value());
  return simulate(read->program, machine);
}

const Span& span_of(const Timeline& timeline, std::string_view kind, std::uint16_t part) {
  return *std::ranges::find_if(timeline.spans, [&](const Span& span) {
    return timeline.ops[span.op].kind == kind && span.part == part;
  });
}

constexpr const char* kCopy =
    "region: {name: copy, ops: [memcpy_async: {stream: s, src: h, dst: d}, "
    "stream_synchronize: {stream: s}]}";

Machine machine_with(double copy, double call) {
  Machine machine = unit_machine();
  machine.set(Param::H2dBandwidth, {machine.rate(Param::H2dBandwidth), copy, Fit, "", ""});
  machine.set(Param::HostMemcpyAsync,
              {machine.get(Param::HostMemcpyAsync).value, call, Fit, "", ""});
  return machine;
}

TEST(SpanBands, ComeFromTheParametersOfTheOperation) {
  const Timeline timeline = run(std::string{"{"} + kCopy + "}", machine_with(0.1, 0.4));
  const SpanDetail& device = timeline.details[span_of(timeline, "memcpy_async", 1).detail];
  EXPECT_NEAR(device.high_factor, 1.1, 1e-4);
  EXPECT_EQ(device.parameters, Fit);
  EXPECT_EQ(device.decided_by, (std::vector<ParameterShare>{{"copy.h2d_bandwidth", -1}}));
  const SpanDetail& host = timeline.details[span_of(timeline, "memcpy_async", 0).detail];
  EXPECT_NEAR(host.high_factor, 1.4, 1e-4);
  EXPECT_EQ(host.decided_by, (std::vector<ParameterShare>{{"host.memcpy_async", 1}}));
  EXPECT_EQ(span_of(timeline, "stream_synchronize", 0).detail, 0u) << "waiting has none of its own";
}

TEST(SpanBands, OfTheFirstCallOfItsKindHaveWhatItCostsMore) {
  Machine machine = machine_with(0.1, 0);
  machine.set(Param::HostFirstCall, {3e-6, 0.2, Fit, "", ""});
  const Timeline timeline =
      run("{repeat: {times: 2, ops: [memcpy_async: {stream: s, src: h, dst: d}]}}", machine);
  std::vector<std::vector<ParameterShare>> calls;
  for (const Span& span : timeline.spans) {
    if (span.part == 0) calls.push_back(timeline.details[span.detail].decided_by);
  }
  // 1 us as always and 3 us more: a quarter and three quarters.
  const std::vector<ParameterShare> first{{"host.first_call", 0.75}, {"host.memcpy_async", 0.25}};
  const std::vector<ParameterShare> second{{"host.memcpy_async", 1}};
  EXPECT_EQ(calls, (std::vector{first, second}));
}

TEST(SpanBands, OfWhatTheScenarioGivesAreNone) {
  const Timeline timeline = run("{host_compute: {duration: 5us}}", unit_machine());
  EXPECT_EQ(span_of(timeline, "host_compute", 0).detail, 0u);
}

TEST(SpanBands, OfARegionAreWeightedByDurationWithinIt) {
  const Timeline timeline =
      run("{memset: {dst: d}}, {device_synchronize: {}}, {" + std::string{kCopy} + "}",
          machine_with(0.1, 0.4));
  const auto ns = [](const Span& span) { return static_cast<double>(span.end_ns - span.begin_ns); };
  const double device = ns(span_of(timeline, "memcpy_async", 1));
  const double host = ns(span_of(timeline, "memcpy_async", 0));
  ASSERT_EQ(timeline.regions.size(), 1u);
  EXPECT_NEAR(timeline.regions[0].high_factor, (device * 1.1 + host * 1.4) / (device + host), 1e-4);
  EXPECT_LT(timeline.regions[0].low_factor, 1);
}

std::vector<ParameterShare> decided_by(const std::string& size) {
  const Timeline timeline =
      run("{region: {name: r, ops: [{memcpy_async: {stream: s, src: h, dst: d, size: " + size +
              "}}, {stream_synchronize: {stream: s}}]}}",
          machine_with(0.1, 0.4));
  return timeline.regions.at(0).decided_by;
}

// The call is 1 us; 4 MiB at 1 GB/s are 4194 us, and 4 KiB 4.096 us.
TEST(SpanBands, OfARegionNameTheParameterThatDecidesIt) {
  EXPECT_EQ(decided_by("4MiB"), (std::vector<ParameterShare>{{"copy.h2d_bandwidth", -1}}));
}

TEST(SpanBands, OfARegionNameTheParametersByTheTimeThatTheyDecide) {
  EXPECT_EQ(decided_by("4KiB"), (std::vector<ParameterShare>{{"copy.h2d_bandwidth", -0.804},
                                                             {"host.memcpy_async", 0.196}}));
}

TEST(SpanBands, OfNcclsOwnPriceAreThoseOfAGuess) {
  Machine machine = unit_machine();
  Machine priced;
  priced.name = "priced";
  priced.gpus_per_node = 8;
  priced.gpu_name = machine.gpu_name;
  priced.nccl_version = machine.nccl_version;
  for (std::size_t i = 0; i < kParamCount; ++i) {
    const auto param = static_cast<Param>(i);
    const bool time = info(param).key.starts_with("nccl.all_reduce");
    if (machine.has(param) && !time) priced.set(param, machine.get(param));
  }
  const Timeline timeline = predict(
      "devices: 2\ncommunicators: {world: {members: all_devices, init: all}}\n"
      "streams: {s: {each: device}}\n"
      "buffers: {x: {each: device, memory: device, size: 1MiB}}\n"
      "threads: {main: [nccl_group: {ops: [for_each: {index: d, in: devices, ops: "
      "[nccl_all_reduce: {comm: world(d), stream: s(d), send_buffer: x(d), recv_buffer: x(d), "
      "type: float32}]}]}]}\n",
      priced);
  const SpanDetail& detail = timeline.details[span_of(timeline, "nccl_all_reduce", 1).detail];
  EXPECT_DOUBLE_EQ(detail.high_factor, 1.5);
  EXPECT_EQ(detail.parameters, Assumed);
  EXPECT_TRUE(detail.decided_by.empty());
}

}  // namespace
}  // namespace foretrace::test
