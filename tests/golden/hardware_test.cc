// What CUDA says of copy engines, hardware queues and SMs, on machines that differ in one of them;
// what RCCL says of MI300X.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "reports/timeline/timeline_json.h"
#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

class Hardware : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const Scratch scratch;
    const Ran ran = scratch.run(
        "foretrace simulate scenarios/hardware/what_overlaps_depends_on_the_gpu.yaml --machine " +
        machine() + " -o run");
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
    kept_ = scratch.run("foretrace assert run");
    for (const RegionSamples& region :
         read_timeline(scratch.path() / "run" / kPredictedFile).regions) {
      microseconds_[region.name] = static_cast<double>(region.samples_ns.front()) * 1e-3;
    }
  }

  std::string machine() const { return GetParam(); }
  double at(const std::string& region) const { return microseconds_.at(region); }
  /// Of the shorter one's time, the part that is hidden behind the longer one: 0 to 1, about.
  double overlap(const std::string& a, const std::string& b, const std::string& both) const {
    return (at(a) + at(b) - at(both)) / std::min(at(a), at(b));
  }

  Ran kept_;

 private:
  std::map<std::string, double> microseconds_;
};
INSTANTIATE_TEST_SUITE_P(Machines, Hardware,
                         testing::Values("h200-nvswitch-8", "no-copy-engine", "one-copy-engine",
                                         "one-hardware-queue", "gtx-1050-ti"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

/// One test of all, since each would predict the scenario again.
TEST_P(Hardware, OverlapsWhatItsEnginesQueuesAndSmsAllow) {
  EXPECT_EQ(kept_.exit_code, 0) << kept_.out;
  const bool has_a_copy_engine = machine() != "no-copy-engine";
  const double beside = overlap("kernel_alone", "copy_in_alone", "kernel_beside_copy");
  if (has_a_copy_engine) {
    EXPECT_GT(beside, 0.9);
  } else {
    EXPECT_LT(beside, 0.1);
  }
  const double both = overlap("copy_in_alone", "copy_out_alone", "both_directions");
  if (has_a_copy_engine && machine() != "one-copy-engine") {
    EXPECT_GT(both, 0.7) << "they share what the link carries";
  } else {
    EXPECT_LT(both, 0.1);
  }
  // 16 kernels of one SM each. All streams at once: 2 in a row; on six SMs 3. With one queue a
  // stream's first kernel comes behind the one before's second, which waits for its own first:
  // the two run together then, and 1 + 7 + 1 = 9 are in a row.
  const double in_a_row = machine() == "one-hardware-queue" ? 9
                          : machine() == "gtx-1050-ti"      ? 3
                                                            : 2;
  EXPECT_NEAR(at("eight_streams_of_two_kernels") / at("kernel_alone"), in_a_row, 0.1 * in_a_row);
  const double of_one_sm = machine() == "gtx-1050-ti" ? 2 : 1;
  EXPECT_NEAR(at("eight_kernels") / at("kernel_alone"), of_one_sm, 0.1 * of_one_sm);
}

TEST(HardwareOfAmd, GetsTheChoiceThatTheScenarioStates) {
  const Scratch scratch;
  const Ran ran = scratch.run(
      "foretrace simulate scenarios/hardware/rccl_choice_by_size.yaml --machine mi300x-8 -o run");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const Ran kept = scratch.run("foretrace assert run");
  EXPECT_EQ(kept.exit_code, 0) << kept.out;
  EXPECT_NE(kept.out.find("NCCL runs of_64MiB on at least 56"), std::string::npos) << kept.out;
  const Ran why = scratch.run("foretrace nccl-explain all_reduce 1MiB --machine mi300x-8");
  EXPECT_NE(why.out.find("RCCL 2.21.5"), std::string::npos) << why.out;
  EXPECT_NE(why.out.find("RCCL_MSCCL_ENABLE=0"), std::string::npos) << why.out;
}

}  // namespace
}  // namespace foretrace::test
