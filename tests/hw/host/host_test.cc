// What foretrace-hw host does with what it measures, and what the system says; no GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "hw/host/host_file.h"
#include "hw/host/probes.h"

namespace foretrace::hw {
namespace {

namespace fs = std::filesystem;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(HostProbes, AnAnswerIsTheMedianAndHalfOfWhatLiesAroundIt) {
  // Of 1 to 101 the 16th percentile is 17 and the 84th 85: half of 68, over the median 51.
  std::vector<double> values;
  for (int i = 101; i >= 1; --i) values.push_back(i);
  const Measured one = summary({"host.signal"}, values);
  EXPECT_DOUBLE_EQ(one.value, 51);
  EXPECT_THAT(one.spread, DoubleNear(34.0 / 51, 1e-9));
  EXPECT_EQ(one.samples, 101U);
}

TEST(HostProbes, WhatIsNotPositiveCountsAsNotMeasured) {
  EXPECT_DOUBLE_EQ(summary({"a"}, {-3, 0, 7}).value, 7);
  const Measured none = summary({"a"}, {-1, 0});
  EXPECT_EQ(none.value, 0);
  EXPECT_EQ(none.samples, 0U);
}

TEST(HostProbes, AreRunInTurnAndTheFirstRoundIsNotCounted) {
  std::string order;
  const auto probe = [&](char name) {
    return Probe{{{std::string{name}}}, [&order, name, turn = 0.0]() mutable {
                   order += name;
                   return std::vector{++turn};
                 }};
  };
  const auto measured = measure({probe('a'), probe('b')}, 0, 3);
  EXPECT_EQ(order, "abababab");
  ASSERT_EQ(measured.size(), 2U);
  EXPECT_EQ(measured[0].value, 3) << "of 2, 3 and 4";
  EXPECT_EQ(measured[1].samples, 3U);
}

TEST(HostSystemFiles, ListsOfCoresAreCounted) {
  EXPECT_EQ(count_of_list("0-3,8"), 5U);
  EXPECT_EQ(count_of_list("0"), 1U);
  EXPECT_EQ(count_of_list("3-1"), 0U);
  EXPECT_EQ(count_of_list("none"), 0U);
}

TEST(HostSystemFiles, SayCachesNodesAndMemory) {
  const fs::path root = fs::temp_directory_path() / "foretrace-host-system";
  const auto put = [&](const std::string& file, const std::string& text) {
    fs::create_directories((root / file).parent_path());
    std::ofstream{root / file} << text;
  };
  put("proc/cpuinfo",
      "processor : 0\nvendor_id : GenuineIntel\nmodel name : Xeon\nphysical id : 0\n\n"
      "processor : 1\nvendor_id : GenuineIntel\nmodel name : Xeon\nphysical id : 1\n");
  put("proc/meminfo", "MemTotal:       1048576 kB\nMemFree: 3 kB\n");
  const std::string cpu = "sys/devices/system/cpu/cpu0/";
  put(cpu + "cache/index0/level", "1\n");
  put(cpu + "cache/index2/level", "2\n");
  put(cpu + "cache/index2/type", "Unified\n");
  put(cpu + "cache/index2/size", "2048K\n");
  put(cpu + "cache/index3/level", "3\n");
  put(cpu + "cache/index3/size", "105M\n");
  put(cpu + "topology/thread_siblings_list", "0-1\n");
  put("sys/devices/system/node/online", "0-1\n");
  put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  const HostSystem system = read_system(root);
  EXPECT_EQ(system.cpu, "Xeon");
  EXPECT_EQ(system.vendor, "intel");
  EXPECT_EQ(system.sockets, 2U);
  EXPECT_EQ(system.numa_nodes, 2U);
  EXPECT_EQ(system.threads_per_core, 2U);
  EXPECT_EQ(system.memory, std::uint64_t{1} << 30);
  EXPECT_EQ(system.core_cache, std::uint64_t{2} << 20);
  EXPECT_EQ(system.last_cache, std::uint64_t{105} << 20);
  EXPECT_EQ(system.huge_pages, "madvise");
  fs::remove_all(root);
}

TEST(HostSystemFiles, ThatAreNotThereSayNothing) {
  const HostSystem system = read_system("/nowhere");
  EXPECT_EQ(system.vendor, "");
  EXPECT_EQ(system.memory, 0U);
  EXPECT_EQ(system.sockets, 1U);
}

HostFile some_file() {
  HostFile file;
  file.system = {.cpu = "A \"CPU\"",
                 .vendor = "amd",
                 .cores = 16,
                 .memory = std::uint64_t{1} << 30,
                 .core_cache = 1 << 20,
                 .huge_pages = {}};
  file.date = "2026-11-29";
  file.measured = {{{"host.touch_bandwidth", MeasuredUnit::Rate}, 3.25e9, 0.04, 9},
                   {{"host.signal", MeasuredUnit::Time}, 144e-9, 0.1, 9},
                   {{"host.fill_bandwidth", MeasuredUnit::Rate}, 0, 0, 0},
                   {{"node.upload_cache", MeasuredUnit::Size}, 40.0 * (1 << 20), 0.2, 9},
                   {{"clock_gettime", MeasuredUnit::Time}, 21e-9, 0, 9},
                   {{"memcpy", MeasuredUnit::Rate, "64MiB"}, 9e9, 0.02, 9}};
  return file;
}

TEST(TheHostFile, HasFactsParametersAndWhatNoParameterStandsFor) {
  const std::string text = host_file_text(some_file());
  for (const char* line :
       {"summary: \"A CPU, 16 cores\"\n", "cpu: amd\n", "  cores: {value: 16, source: system}\n",
        "  memory: {value: 1024MiB, source: system}\n",
        "  host.cores: {value: 16, source: system}\n",
        "  node.core_cache: {value: 1024KiB, source: system}\n",
        "  host.touch_bandwidth: {value: 3.25 GB/s, source: measured, spread: 4.0%}\n",
        "  host.signal: {value: 144 ns, source: measured, spread: 10.0%}\n",
        "  node.upload_cache: {value: 40960KiB, source: measured, spread: 20.0%}\n",
        "  - {what: \"clock_gettime\", value: 21 ns, spread: 0.0%}\n",
        "  - {what: \"memcpy\", size: 64MiB, value: 9 GB/s, spread: 2.0%}\n",
        "2026-11-29: 9 rounds, no GPU"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(TheHostFile, LeavesOutWhatWasNotMeasured) {
  const std::string text = host_file_text(some_file());
  EXPECT_THAT(text, Not(HasSubstr("fill_bandwidth")));
  EXPECT_THAT(text, Not(HasSubstr("host_cache")));
}

TEST(TheHostFile, NamesTheGpuWhoseDriverWasAsked) {
  HostFile file = some_file();
  file.gpu = "NVIDIA H200";
  file.driver = "580.1";
  EXPECT_THAT(host_file_text(file), HasSubstr("9 rounds, NVIDIA H200, driver 580.1"));
}

TEST(ThisHost, IsMeasured) {
  const HostSystem system = read_system();
  EXPECT_GT(system.cores, 0U);
  for (const Measured& one : measure(call_probes(system), 0, 1)) {
    EXPECT_GT(one.value, 0) << one.quantity.key;
    EXPECT_LT(one.value, one.quantity.unit == MeasuredUnit::Clock ? 10e9 : 60) << one.quantity.key;
  }
}

}  // namespace
}  // namespace foretrace::hw
