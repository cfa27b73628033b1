// The twelve figures of section 12.3 of the d2l book, which v100-pcie-4 was fitted to: a fit, not a
// prediction.
#include <gtest/gtest.h>

#include "reports/timeline/timeline_json.h"
#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

constexpr double kTolerance = 0.10;

/// Seconds of every region.
std::map<std::string, double> predict(const std::string& name) {
  const Scratch scratch;
  const Ran ran = scratch.run("foretrace simulate scenarios/parallelism/" + name +
                              ".yaml --machine v100-pcie-4 -o run");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  std::map<std::string, double> seconds;
  for (const RegionSamples& region :
       read_timeline(scratch.path() / "run" / kPredictedFile).regions) {
    seconds[region.name] = static_cast<double>(region.samples_ns.front()) * 1e-9;
  }
  return seconds;
}

void expect_close(const std::map<std::string, double>& book, std::map<std::string, double> fitted) {
  for (const auto& [region, seconds] : book) {
    EXPECT_NEAR(fitted[region], seconds, kTolerance * seconds) << region;
  }
}

TEST(D2lBook, PyTorchFiguresAndTheirOrderAreMet) {
  auto fitted = predict("d2l_pytorch");
  expect_close({{"run_on_gpu_1", 0.5062},
                {"run_on_gpu_2", 0.5033},
                {"run_on_both", 0.5043},
                {"run_on_gpu_1_again", 0.5065},
                {"copy_to_cpu", 2.4192},
                {"run_and_copy", 1.9563}},
               fitted);
  EXPECT_GT(fitted["copy_to_cpu"], fitted["run_and_copy"]);
  EXPECT_GT(fitted["run_and_copy"], fitted["run_on_gpu_1"]);
}

TEST(D2lBook, MxnetFiguresAndTheirOrderAreMet) {
  // Its products are the same kernels, so they are taken from the same regions.
  expect_close({{"run_on_gpu_1", 0.5219},
                {"run_on_gpu_2", 0.5046},
                {"run_on_both", 0.5180},
                {"run_on_gpu_1_again", 0.5627}},
               predict("d2l_pytorch"));
  auto fitted = predict("d2l_mxnet");
  expect_close({{"copy_to_cpu", 2.5115}, {"run_and_copy", 2.6547}}, fitted);
  EXPECT_GT(fitted["run_and_copy"], fitted["copy_to_cpu"]);
}

}  // namespace
}  // namespace foretrace::test
