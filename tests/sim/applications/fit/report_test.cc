// What a fit prints keeps apart what was in it and what judges it.
#include "sim/applications/fit/report.h"

#include <gmock/gmock.h>

#include <cmath>

#include "sim/applications/fit/verdict.h"
#include "tests/sim/applications/fit/measured_by_simulation.h"

namespace foretrace::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

struct Reported {
  FitData data;
  std::vector<TargetClass> classes;
  FitResult result;
};

/// Four regions of 100 us: two in the fit, off by 1 % and 3 %; a held-out size, off by 10 %; one of
/// 4 held-out ranks, off by 20 %.
Reported reported() {
  Reported all;
  for (const int gpus : {2, 4}) {
    FitRun run;
    run.program.name = "nccl_all_reduce";
    run.program.tags = {"nccl"};
    run.gpus = gpus;
    all.data.runs.push_back(std::move(run));
  }
  const auto add = [&](std::size_t run, const char* region, Standing standing, double error) {
    all.data.targets.push_back({run, 0, 0, region, 100e3, 0.01, standing});
    all.classes.push_back({"NCCL all_reduce LL, graph", true, true, false, 1024});
    all.result.predicted_ns.push_back(100e3 * (1 + error));
  };
  add(0, "small_graph [0]", Standing::Fit, 0.01);
  add(0, "small_graph [1]", Standing::HeldOutSize, -0.10);
  add(0, "small_graph [2]", Standing::Fit, -0.03);
  add(1, "small_graph [0]", Standing::HeldOutRanks, 0.20);
  return all;
}

TEST(FitReport, SumsUpWhatWasInTheFitApartFromWhatWasNot) {
  const Reported all = reported();
  const std::string text = class_summary(all.data, all.classes, all.result);
  // fit: n, mean, p95, worst; validation: the same
  EXPECT_THAT(text,
              ContainsRegex("NCCL all_reduce LL, graph .* 2 .* 2.0 % .* 3.0 % .* 2 .* 15.0 %"));
}

TEST(FitReport, ShowsHeldOutRanksOnALineOfTheirOwn) {
  const Reported all = reported();
  const std::string text = class_summary(all.data, all.classes, all.result);
  EXPECT_THAT(text, ContainsRegex("graph launches: 4 ranks, held out .* 0 .* - .* 1 .* 20.0 %"));
  EXPECT_THAT(text, ContainsRegex("graph launches  .* 2 .* 2.0 % .* 1 .* 10.0 %"));
}

TEST(FitReport, MarksEveryRegionWithWhatItWasUsedFor) {
  const Reported all = reported();
  const std::string csv = residual_table(all.data, all.classes, all.result, true);
  EXPECT_THAT(csv, HasSubstr("small_graph [1],\"NCCL all_reduce LL, graph\",100.0 us,90.00 us,"
                             "-10.0 %,1.0 %,validation: size"));
  EXPECT_THAT(csv, HasSubstr("validation: ranks"));
}

TEST(FitReport, ARegionWithoutPredictionIsShownAndNotCounted) {
  Reported all = reported();
  all.result.predicted_ns[0] = std::nan("");
  EXPECT_THAT(residual_table(all.data, all.classes, all.result, true),
              HasSubstr("100.0 us,-,-,1.0 %,fit"));
  EXPECT_THAT(class_summary(all.data, all.classes, all.result),
              ContainsRegex("NCCL all_reduce LL, graph .* 1 .* 3.0 %"));
}

TEST(FitVerdict, SaysHowFastTheHostWas) {
  Reported all = reported();
  EXPECT_THAT(verdict(all.data, all.classes, all.result, {}), Not(HasSubstr("host: ")));
  all.data.launches_ns = {3000, 4000, 3500};
  EXPECT_THAT(verdict(all.data, all.classes, all.result, {}),
              HasSubstr("host: a launch took 3.500 us in the median, 3.100 us .. 3.900 us"));
}

TEST(FitReport, SaysWhatWouldDetermineARefusedParameter) {
  FitResult result;
  result.refused = {{Param::HostMalloc, "no measured region depends on it"},
                    {Param::NcclInit, "no measured region depends on it"}};
  result.correlated = {{Param::H2dLatency, Param::H2dBandwidth, -0.97}};
  const std::string text =
      refusal_text(result, {{Param::HostMalloc, {"scenarios/calibration/memory.yaml"}}});
  EXPECT_THAT(text, HasSubstr("host.malloc: no measured region depends on it (would be by: "
                              "scenarios/calibration/memory.yaml)"));
  EXPECT_THAT(text, HasSubstr("nccl.init"));
  EXPECT_THAT(text, HasSubstr("no calibration scenario here depends on it enough"));
  EXPECT_THAT(text, HasSubstr("copy.h2d_latency and copy.h2d_bandwidth (correlation -0.97)"));
}

}  // namespace
}  // namespace foretrace::test
