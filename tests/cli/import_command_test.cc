// foretrace import as people use it: a trace becomes a scenario, the scenario a prediction, and
// both are compared.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/cli/shell.h"
#include "tests/reports/capture/trace_text.h"

namespace foretrace::test {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A step of 5 ms: ten products of 440 us and a synchronisation.
std::string step_of_products() {
  TraceText trace;
  trace.gpu("NVIDIA H100 80GB HBM3", 132).rank(0).step(1, 0, 5000);
  for (int i = 0; i < 10; ++i) trace.kernel(50 + 20 * i, 5, 70 + 450 * i, 440, 7, "gemm", 108);
  trace.call("cudaDeviceSynchronize", 300, 4300);
  return trace.text();
}

/// Of a table whose only row is the region `step`: its time in ms.
double simulated_ms(const Scratch& scratch, const std::string& options) {
  const Ran ran = scratch.run("foretrace simulate step.yaml " + options);
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  const auto row = ran.out.find("| step");
  const auto unit = ran.out.find(" ms", row);
  if (row == std::string::npos || unit == std::string::npos) return 0;
  return std::stod(ran.out.substr(ran.out.rfind('|', unit) + 1));
}

double imported_ms(const std::string& trace, const std::string& machine) {
  const Scratch scratch;
  scratch.write("trace.json", trace);
  const Ran ran =
      scratch.run("foretrace import trace.json -o run --scenario step.yaml -m " + machine);
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  return simulated_ms(scratch, "-m " + machine);
}

TEST(Import, IsComparedExplainedAndReported) {
  const Scratch scratch;
  scratch.write("trace.json", step_of_products());
  const Ran imported =
      scratch.run("foretrace import trace.json -o run --scenario step.yaml -m h100-nvswitch-8");
  EXPECT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_THAT(imported.out, HasSubstr("the captured step took 5.000 ms"));
  EXPECT_THAT(imported.out, HasSubstr("100 % follow --with gemm"));
  EXPECT_EQ(scratch.run("foretrace simulate step.yaml -m h100-nvswitch-8 -o run").exit_code, 0);
  const Ran compared = scratch.run("foretrace compare run");
  EXPECT_EQ(compared.exit_code, 0) << compared.out << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("step"));
  const Ran explained = scratch.run("foretrace explain run");
  EXPECT_EQ(explained.exit_code, 0) << explained.err;
  EXPECT_EQ(scratch.run("foretrace report run -o page.html").exit_code, 0);
}

TEST(Import, WarnsOfKernelsThatBeginBeforeTheirLaunch) {
  const Scratch scratch;
  TraceText trace;
  trace.gpu("NVIDIA H100 80GB HBM3", 132).rank(0).step(1, 0, 500);
  trace.kernel(100, 5, 99, 50, 7, "gemm", 108);  // as far as clocks differ
  trace.kernel(200, 5, 160, 50, 7, "gemm", 108);
  trace.call("cudaDeviceSynchronize", 300, 10);
  scratch.write("trace.json", trace.text());
  const Ran ran = scratch.run("foretrace import trace.json -o run");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("trace.json: warning: 1 kernels, copies or fills begin before the "
                                 "calls that started them, by up to 40.00 us"));
  scratch.write("trace.json", step_of_products());
  EXPECT_THAT(scratch.run("foretrace import trace.json -o run").err, Not(HasSubstr("warning")));
}

TEST(Import, SaysWhatAWhatIfChanges) {
  const Scratch scratch;
  scratch.write("trace.json", step_of_products());
  scratch.run("foretrace import trace.json --scenario step.yaml -m h100-nvswitch-8");
  EXPECT_NEAR(simulated_ms(scratch, "-m h100-nvswitch-8"), 5.0, 0.1);
  EXPECT_NEAR(simulated_ms(scratch, "-m h100-nvswitch-8 --with gemm=2x"), 2.8, 0.15);
  const Ran twice = scratch.run("foretrace simulate step.yaml -m h100-nvswitch-8 --with gemm=2x");
  EXPECT_THAT(twice.err, HasSubstr("changes 100 % of the captured kernels' time"));
  const Ran memory = scratch.run("foretrace simulate step.yaml -m h100-nvswitch-8 --with hbm=2x");
  EXPECT_THAT(memory.err, HasSubstr("changes 0 % of the captured kernels' time"));
  const Ran other = scratch.run("foretrace simulate step.yaml -m a100-nvswitch-8");
  EXPECT_THAT(other.err, HasSubstr("keep the times that they took on NVIDIA H100 80GB HBM3"));
  const Ran same = scratch.run("foretrace simulate step.yaml -m h100-nvswitch-8");
  EXPECT_THAT(same.err, Not(HasSubstr("note: the kernels"))) << same.err;
}

TEST(Import, OfAHostThatIsAheadIsWhatTheGpuTakes) {
  TraceText trace;
  trace.gpu("NVIDIA A100-SXM4-40GB", 108);
  double host = 0;
  double device = 1000;
  std::vector<double> ends;
  double mark = 0;
  for (int step = 0; step < 4; ++step) {
    for (int i = 0; i < 40; ++i) {
      double took = 5;
      if (ends.size() >= 32) took = std::max(took, ends[ends.size() - 32] + 5 - host);
      const double lasts = i < 30 ? 500 : 6500;
      trace.kernel(host, took, device, lasts, 7, "compute_kernel", 108);
      device += lasts;
      ends.push_back(device);
      host += took + 5;
    }
    trace.step(step, mark, host - mark);
    mark = host;
  }
  EXPECT_NEAR(imported_ms(trace.text(), "a100-nvswitch-8"), 80, 0.8);
}

TEST(Import, KeepsWhatTheHostDoesBeforeItsFirstCall) {
  TraceText trace;
  trace.gpu("NVIDIA A100-SXM4-40GB", 108);
  for (int step = 0; step < 3; ++step) {
    const double begin = 100'000.0 * step;
    trace.step(step, begin, 99'990);
    for (int i = 0; i < 20; ++i) {
      trace.kernel(begin + 60'100 + 20 * i, 5, begin + 60'110 + 1900 * i, 1890);
    }
    trace.call("cudaDeviceSynchronize", begin + 60'600, 37'600);
  }
  EXPECT_NEAR(imported_ms(trace.text(), "a100-nvswitch-8"), 100, 1);
}

TEST(Import, OfAGpuWithMoreSmsTakesItsTimeOnAnother) {
  TraceText trace;
  trace.gpu("AMD Instinct MI300X", 304);
  for (int i = 0; i < 5; ++i) trace.kernel(20 * i, 5, 30 + 2000 * i, 1990, 3, "Cijk_gemm", 608);
  trace.call("hipDeviceSynchronize", 120, 9900);
  EXPECT_NEAR(imported_ms(trace.text(), "h200-nvswitch-8"), 10, 0.1);
}

TEST(Import, RefusesWhatIsNoTrace) {
  const Scratch scratch;
  scratch.write("rank0.json", step_of_products());
  scratch.write("copy.json", step_of_products());
  const auto refused = [&](const std::string& files, const std::string& says) {
    const Ran ran = scratch.run("foretrace import " + files + " -o run");
    EXPECT_EQ(ran.exit_code, 2) << files;
    EXPECT_THAT(ran.err, HasSubstr(says));
  };
  refused("rank0.json rank0.json", "rank0.json and rank0.json are the same trace");
  refused("rank0.json copy.json", "rank0.json and copy.json are the same trace");
  scratch.write("none.json", R"({"traceEvents": []})");
  refused("none.json", "no kernel and no copy of a GPU");
}

TEST(Import, OfACaptureWithoutAScenarioSaysWhatExplainLacks) {
  const Scratch scratch;
  scratch.write("trace.json", step_of_products());
  ASSERT_EQ(scratch.run("gzip trace.json && foretrace import trace.json.gz -o run").exit_code, 0);
  const Ran explained = scratch.run("foretrace explain run");
  EXPECT_EQ(explained.exit_code, 2);
  EXPECT_THAT(explained.err, HasSubstr("foretrace import trace.json.gz -o RUN/ --scenario"));
  scratch.run("gunzip trace.json.gz && foretrace import trace.json -o other");
  const Ran compared = scratch.run("foretrace compare run other");
  EXPECT_EQ(compared.exit_code, 0) << "two captures are compared by names" << compared.err;
  scratch.run("foretrace import trace.json --scenario step.yaml -m h100-nvswitch-8");
  scratch.run("foretrace simulate step.yaml -m h100-nvswitch-8 -o predicted");
  const Ran wrong = scratch.run("foretrace compare predicted run");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("hint: foretrace import trace.json.gz -o RUN/ --scenario"));
}

}  // namespace
}  // namespace foretrace::test
