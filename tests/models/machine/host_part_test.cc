// A host of its own in a machine: what its file changes, and what it leaves.
#include "models/machine/parts/host_part.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/base/text/diagnostic.h"

namespace foretrace {
namespace {

using enum Param;
using testing::HasSubstr;

constexpr const char* kSources =
    "sources:\n"
    "  system: {class: datasheet, text: the system}\n"
    "  measured: {class: fit, text: here, learned_from: [{other: this host}], command: "
    "foretrace-hw "
    "host}\n";

Checked<Part> host_of(const std::string& parameters) {
  const std::string text =
      "schema_version: 1\nsummary: \"a host\"\nfacts:\n  cores: {value: 16, "
      "source: system}\nparameters:\n" +
      parameters + kSources;
  return read_part(text, "host.yaml", PartFolder::Hosts);
}

Machine with_host(const std::string& parameters, TakenHost* taken = nullptr) {
  Machine machine = load_machine("h200-1");
  const Checked<Part> host = host_of(parameters);
  EXPECT_TRUE(host) << render(host.error(), "");
  const TakenHost took =
      take_host_part(machine, *host, [](Param, std::optional<double>, double) {});
  if (taken != nullptr) *taken = took;
  return machine;
}

double of_plain(Param param) { return load_machine("h200-1").get(param).value; }

TEST(HostPart, ItsParametersGoBeforeTheMachines) {
  const Machine machine =
      with_host("  host.touch_bandwidth: {value: 2 GB/s, source: measured, spread: 4%}\n");
  EXPECT_DOUBLE_EQ(machine.get(HostTouchBandwidth).value, 2e9);
  EXPECT_DOUBLE_EQ(machine.get(HostTouchBandwidth).spread, 0.04);
  EXPECT_EQ(machine.get(HostTouchBandwidth).from, "here");
  EXPECT_DOUBLE_EQ(machine.get(HostFillBandwidth).value, of_plain(HostFillBandwidth));
}

TEST(HostPart, ItsFactsStandWhereNoParameterOfItSaysThem) {
  EXPECT_EQ(
      with_host("  host.touch_bandwidth: {value: 2 GB/s, source: measured}\n").count(HostCores),
      16U);
  EXPECT_EQ(with_host("  host.cores: {value: 12, source: measured}\n").count(HostCores), 12U);
}

TEST(HostPart, OtherCallsTakeLongerAsItsLaunchesDo) {
  const double launch = 2 * of_plain(HostLaunchKernel);
  TakenHost taken;
  const Machine machine =
      with_host(fmt::format("  host.launch_kernel: {{value: {:.6f} us, source: measured}}\n"
                            "  host.malloc: {{value: 30 us, source: measured}}\n",
                            launch * 1e6),
                &taken);
  ASSERT_TRUE(taken.calls);
  EXPECT_NEAR(*taken.calls, 2, 1e-5);
  for (const Param param : {HostLaunchGemm, HostEventRecord, HostSynchronize, HostWakeEvent}) {
    if (!machine.has(param)) continue;
    EXPECT_NEAR(machine.get(param).value, 2 * of_plain(param), 1e-4 * of_plain(param))
        << info(param).key;
  }
  EXPECT_DOUBLE_EQ(machine.get(HostMalloc).value, 30e-6);
  EXPECT_DOUBLE_EQ(machine.get(HostFree).value, of_plain(HostFree)) << "no call of that class";
}

TEST(HostPart, WithoutItsLaunchesCallsStayAsTheyAre) {
  TakenHost taken;
  const Machine machine =
      with_host("  host.touch_bandwidth: {value: 2 GB/s, source: measured}\n", &taken);
  EXPECT_FALSE(taken.calls);
  EXPECT_DOUBLE_EQ(machine.get(HostLaunchGemm).value, of_plain(HostLaunchGemm));
}

TEST(HostPart, TheBandOfAClassIsThatOfKnownHostsWhereItWasMeasured) {
  const Machine plain = load_machine("h200-1");
  ASSERT_TRUE(plain.has(BlindCallsKnown));
  ASSERT_LT(plain.get(BlindCallsKnown).value, plain.get(BlindCalls).value);
  const Machine machine =
      with_host(fmt::format("  host.launch_kernel: {{value: {:.3f} us, source: measured}}\n", 3.9));
  EXPECT_DOUBLE_EQ(machine.get(BlindCalls).value, plain.get(BlindCallsKnown).value);
  EXPECT_DOUBLE_EQ(machine.get(BlindHostMemory).value, plain.get(BlindHostMemory).value)
      << "its memory was not measured";
}

TEST(HostPart, OfAComposedMachineIsNamedByIt) {
  const Machine machine = load_machine("8xB200@rented-16");
  EXPECT_DOUBLE_EQ(machine.get(HostLaunchKernel).value, 4.345e-6);
  EXPECT_EQ(machine.count(HostCores), 16U);
  EXPECT_THAT(machine.host, HasSubstr("one H200 (hosts/rented-16)"));
  EXPECT_TRUE(load_machine("8xB200").host.empty());
}

TEST(HostPart, WhoseCoresAreOthersTakesAwayHowTheMachinesShare) {
  ASSERT_TRUE(load_machine("h200-1").has(HostAllFlops));
  EXPECT_FALSE(with_host("  host.cores: {value: 12, source: measured}\n").has(HostAllFlops));
  EXPECT_DOUBLE_EQ(with_host("  host.cores: {value: 12, source: measured}\n"
                             "  host.flops_share: {value: 0.7, source: measured}\n")
                       .get(HostAllFlops)
                       .value,
                   0.7);
}

TEST(HostPart, WhatIsOfAGpuIsNothingOfAHosts) {
  const Checked<Part> host = host_of("  kernel.base: {value: 2 us, source: measured}\n");
  ASSERT_FALSE(host);
  EXPECT_THAT(render(host.error(), ""), HasSubstr("'kernel.base' is nothing of a host's"));
}

TEST(HostPart, HasWholeCoresAndASummaryOfOneLine) {
  const auto wrong = [](const std::string& summary, const std::string& cores,
                        const std::string& parameters) {
    const std::string text = "schema_version: 1\nsummary: \"" + summary +
                             "\"\nfacts:\n  cores: {value: " + cores + ", source: system}\n" +
                             parameters + kSources;
    const Checked<Part> host = read_part(text, "host.yaml", PartFolder::Hosts);
    return host ? std::string{} : render(host.error(), text);
  };
  EXPECT_EQ(wrong("a host", "16", ""), "");
  EXPECT_THAT(wrong("a host\\nof two lines", "16", ""),
              HasSubstr("host.yaml:2:10: error: 'summary' is one line"));
  EXPECT_THAT(wrong("a host", "1.5", ""), HasSubstr("host.yaml:4:18: error: a host has a whole"));
  EXPECT_THAT(wrong("a host", "0", ""), HasSubstr("host.yaml:4:18: error: a host has a whole"));
  EXPECT_THAT(wrong("a host", "1", "parameters:\n  host.cores: {value: 0, source: measured}\n"),
              HasSubstr("host.yaml:6:23: error: host.cores must be positive"));
}

TEST(HostPart, OtherPartsHaveNoParameters) {
  const Checked<Part> link =
      read_part("schema_version: 1\nlink: nvswitch\nfacts: {}\nparameters: {}\n", "l.yaml",
                PartFolder::Links);
  ASSERT_FALSE(link);
  EXPECT_THAT(render(link.error(), ""), HasSubstr("parameters"));
}

TEST(HostPart, IsDescribedByItsSummaryAndItsCalls) {
  const Checked<Part> host = host_of("  host.cores: {value: 12, source: measured}\n");
  ASSERT_TRUE(host);
  EXPECT_EQ(describe({.parameters = 1, .calls = 1.25}, *host, "host.yaml"),
            "a host (host.yaml): 1 parameter; its calls take 1.25 times as long");
}

}  // namespace
}  // namespace foretrace
