// What facts do to times: faster ones never slow anything, half of one slows what depends on it.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>

#include "models/machine/parts/composition.h"
#include "models/nccl/topology/machine.h"
#include "sim/engine/children.h"
#include "tests/properties/every_machine.h"

namespace foretrace::test {
namespace {

constexpr std::array kRegions{"gemm", "memory", "all_reduce"};

/// A fact, and what it bounds: an element of kRegions.
struct Bound {
  std::vector<const char*> facts;
  std::size_t region;
};
const std::array kBounds{Bound{{"fp16", "bf16"}, 0}, Bound{{"memory_bandwidth"}, 1},
                         Bound{{"nvlink_bandwidth", "bridge_links"}, 2}};

Parts parts_with(const std::string& gpu) {
  const std::string name = "2x" + gpu;
  return parts_of(*parse_composition(name), name);
}

/// The parts with each of the facts so many times as large, as far as the GPU has them.
Parts changed(Parts parts, const std::vector<const char*>& facts, double factor) {
  for (const char* const key : facts) {
    const auto found = parts.gpu.facts.find(key);
    if (found != parts.gpu.facts.end()) found->second.value *= factor;
  }
  return parts;
}

using Times = std::vector<double>;

std::vector<Times> times_of(const std::vector<Parts>& all) {
  std::vector<Job> jobs;
  for (const Parts& parts : all) {
    jobs.emplace_back([&parts] {
      const std::string times = times_on(bounded_regions(2), compose(parts, "a machine"));
      Times seconds;
      for (const char* const region : kRegions) seconds.push_back(time_in(times, region));
      return seconds;
    });
  }
  return run_in_children(jobs);
}

/// Whether a machine file was measured on this very GPU, so that its facts say nothing new.
bool is_measured(const Parts& parts) {
  for (const char* const word : {"like", "donor"}) {
    const std::string file = parts.gpu.word(word);
    if (!file.empty() && load_machine(file).gpu_name == parts.gpu.word("gpu")) return true;
  }
  return false;
}

std::string any_gpu() {
  static const std::vector<std::string> kAll = part_names(PartFolder::Gpus);
  return *rc::gen::elementOf(kAll);
}

RC_GTEST_PROP(Facts, FasterOnesNeverSlowAnything, ()) {
  const Parts parts = parts_with(any_gpu());
  std::vector<const char*> facts;
  for (const char* const key : {"clock", "memory_bandwidth", "bf16", "fp16", "fp32", "tf32", "fp64",
                                "l2_size", "nvlink_bandwidth", "bridge_links", "power"}) {
    if (*rc::gen::inRange(0, 3) == 0) facts.push_back(key);
  }
  const double factor = 1 + *rc::gen::inRange(1, 100) / 50.0;
  const auto times = times_of({parts, changed(parts, facts, factor)});
  for (std::size_t i = 0; i < kRegions.size(); ++i) {
    // cuBLAS' choice is not always its fastest: a slower one may be chosen, by less than 2 %.
    if (times[1][i] <= times[0][i] * 1.02) continue;
    RC_FAIL(fmt::format("{}: {} times {} of {} facts: {} took {} and takes {}", parts.gpu.name,
                        factor, facts.empty() ? "" : facts.front(), facts.size(), kRegions[i],
                        times[0][i], times[1][i]));
  }
}

TEST(Facts, HalfOfOneSlowsWhatDependsOnIt) {
  struct Halved {
    std::string gpu;
    std::size_t region, whole, half;  ///< whole and half: of `all`
  };
  std::vector<Parts> all;
  std::vector<Halved> asked;
  for (const std::string& gpu : part_names(PartFolder::Gpus)) {
    const Parts parts = parts_with(gpu);
    if (is_measured(parts)) continue;
    const std::size_t whole = all.size();
    all.push_back(parts);
    for (const Bound& bound : kBounds) {
      const bool is_of_links = bound.region == 2;
      if (is_of_links && nccl::lacks_nvlink(compose(parts, gpu))) continue;
      asked.push_back({gpu, bound.region, whole, all.size()});
      all.push_back(changed(parts, bound.facts, 0.5));
    }
  }
  ASSERT_GT(asked.size(), 40u);
  const std::vector<Times> times = times_of(all);
  for (const Halved& one : asked) {
    const double whole = times[one.whole][one.region], half = times[one.half][one.region];
    EXPECT_GT(half, 1.3 * whole) << one.gpu << ": " << kRegions[one.region];
    EXPECT_LT(half, 2.1 * whole) << one.gpu << ": " << kRegions[one.region];
  }
}

TEST(Facts, AnOlderSlotSlowsWhatGoesOverIt) {
  for (const char* const gpu : {"L40S", "H100-PCIe", "RTX-5090", "T4"}) {
    std::vector<Parts> all;
    for (const char* const link : {"pcie3", "pcie4", "pcie5"}) {
      const std::string name = fmt::format("2x{}/{}", gpu, link);
      all.push_back(parts_of(*parse_composition(name), name));
    }
    const std::vector<Times> times = times_of(all);
    EXPECT_GE(times[0][2], times[1][2]) << gpu;
    EXPECT_GE(times[1][2], times[2][2]) << gpu;
  }
}

}  // namespace
}  // namespace foretrace::test
