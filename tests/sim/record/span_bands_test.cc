// How far predictions may be off, from the machine file's spreads and sources.
#include "sim/record/span_bands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "scenarios/read/scenario.h"
#include "sim/simulate.h"
#include "tests/sim/unit_machine.h"

namespace foretrace::test {
namespace {

using enum ParameterClass;
using sim::Band;
using sim::band_of;

Band band(const ParamValue& value, std::uint64_t size_bytes = 0) {
  Machine machine;
  machine.set(Param::H2dBandwidth, value);
  const std::array params{Param::H2dBandwidth, Param::D2hBandwidth};  // one that it lacks
  return band_of(machine, params, size_bytes);
}

TEST(Band, OfAFitIsItsSpreadAndOfAGuessIsWide) {
  const Band fit = band({1e9, 0.08, Fit, "", ""});
  EXPECT_DOUBLE_EQ(fit.high, 1.08);
  EXPECT_DOUBLE_EQ(fit.low, 1 / 1.08);
  EXPECT_EQ(fit.parameters, Fit);
  EXPECT_DOUBLE_EQ(band({1e9, 0, Fit, "", ""}).high, 1.05);
  EXPECT_DOUBLE_EQ(band({1e9, 0, Published, "", ""}).high, 1.15);
  EXPECT_DOUBLE_EQ(band({1e9, 0, Datasheet, "", ""}).high, 1.25);
  EXPECT_DOUBLE_EQ(band({1e9, 0, Assumed, "", ""}).high, 1.5);
  EXPECT_DOUBLE_EQ(band({1e9, 2.4, Fit, "", ""}).high, 2.0) << "at most a factor of two";
}

TEST(Band, OutsideOfTheFittedSizesIsThatOfAGuess) {
  const ParamValue fit{1e9, 0.02, Fit, "", "1MiB..1 GiB"};
  EXPECT_DOUBLE_EQ(band(fit, 1 << 20).high, 1.02);
  EXPECT_DOUBLE_EQ(band(fit, 1 << 30).high, 1.02);
  const Band beyond = band(fit, (1 << 20) - 4);
  EXPECT_DOUBLE_EQ(beyond.high, 1.5);
  EXPECT_EQ(beyond.parameters, Assumed);
  EXPECT_DOUBLE_EQ(band(fit).high, 1.02) << "the size is not known";
  EXPECT_DOUBLE_EQ(band({1e9, 0.02, Fit, "", "50..200 calls in a row"}, 8).high, 1.02);
}

TEST(Band, IsTheWidestOfItsParameters) {
  Machine machine;
  machine.set(Param::HostAllocBase, {1e-6, 0.3, Fit, "", ""});
  machine.set(Param::HostAllocBandwidth, {1e9, 0.02, Datasheet, "", ""});
  const std::array params{Param::HostAllocBase, Param::HostAllocBandwidth};
  const Band both = band_of(machine, params, 0);
  EXPECT_DOUBLE_EQ(both.high, 1.3);
  EXPECT_EQ(both.parameters, Datasheet);
}

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
  EXPECT_DOUBLE_EQ(device.high_factor, 1.1);
  EXPECT_EQ(device.parameters, Fit);
  const SpanDetail& host = timeline.details[span_of(timeline, "memcpy_async", 0).detail];
  EXPECT_DOUBLE_EQ(host.high_factor, 1.4);
  EXPECT_EQ(span_of(timeline, "stream_synchronize", 0).detail, 0) << "waiting has none of its own";
}

TEST(SpanBands, OfARegionAreWeightedByDurationWithinIt) {
  const Timeline timeline =
      run("{memset: {dst: d}}, {device_synchronize: {}}, {" + std::string{kCopy} + "}",
          machine_with(0.1, 0.4));
  const auto ns = [](const Span& span) { return static_cast<double>(span.end_ns - span.begin_ns); };
  const double device = ns(span_of(timeline, "memcpy_async", 1));
  const double host = ns(span_of(timeline, "memcpy_async", 0));
  ASSERT_EQ(timeline.regions.size(), 1u);
  EXPECT_DOUBLE_EQ(timeline.regions[0].high_factor, (device * 1.1 + host * 1.4) / (device + host));
  EXPECT_LT(timeline.regions[0].low_factor, 1);
}

}  // namespace
}  // namespace foretrace::test
