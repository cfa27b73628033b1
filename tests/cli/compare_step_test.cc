// foretrace compare and report with a scenario in its prediction's place, and with a measured step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/cli/captured_step.h"
#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

using testing::HasSubstr;

constexpr const char* kProduct =
    R"x({"k":"sig","i":0,"n":"aten::mm","in":[{"d":"bf16","s":[4096,4096]},{"d":"bf16","s":[4096,4096]}]}
{"k":"op","i":0,"q":0,"ph":"forward"}
{"k":"gemm","f":"cublasGemmEx","m":4096,"n":4096,"kk":4096,"batch":1,"ta":false,"tb":false,"a":"bf16","compute":"f32","beta":0,"t":60000,"s":0,"op":0}
)x";
constexpr const char* kMeasuredStep =
    R"x({"schema_version":1,"kind":"timeline","origin":"measured","scenario":{"name":"step","file":"","program_hash":"pytorch-step"},
"machine":"1 x NVIDIA H100","producer":"foretrace measure 0.1.0","versions":{},"clock_error_bound_ns":0,"outcome":{"kind":"completed","explanation":[]},
"ops":[{"id":0,"kind":"region","line":0,"label":"step"},
{"id":1,"kind":"library_kernel","line":0,"label":"nvjet_tst","variant":"aten::mm","loops":[1],"captured":true}],
"lanes":[{"id":0,"kind":"host_thread","name":"main","node":0,"process":0},{"id":1,"kind":"stream","name":"default(0)","node":0,"process":0,"device":0}],
"regions":[{"name":"step","op":0,"instance":0,"process":0,"per":4,"samples_ns":[900000],"low_factor":1.0,"high_factor":1.0}],
"details":[{"low_factor":1.0,"high_factor":1.0,"parameters":"fit"},{"kernel":"nvjet_tst","low_factor":1.0,"high_factor":1.0,"parameters":"fit"}],
"span_columns":["op","instance","lane","begin_ns","end_ns","part","detail"],"spans":[[1,0,0,0,5000,0,0],[1,0,1,6000,206000,1,1]],
"flow_kinds":[],"flow_columns":["kind","from_span","to_span"],"flows":[],
"memory_peak_columns":["process","device","allocated","reserved"],"memory_peaks":[[0,0,300,400]]}
)x";

class CompareStep : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(scratch_.path() / "out");
    scratch_.write("out/step.yaml", scenario_of());
    scratch_.write("out/rank0.calls.jsonl", record_of({.calls = kProduct}));
    scratch_.write("out/measured.timeline.json", kMeasuredStep);
  }
  Scratch scratch_;
};

TEST_F(CompareStep, ACapturedStepIsSimulatedAndJoinedWithTheMeasuredOne) {
  const Ran result = scratch_.run(
      "foretrace compare out/step.yaml out/measured.timeline.json -m h100-nvswitch-8 --tolerance "
      "90%");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("predicted on h100-nvswitch-8"));
  EXPECT_THAT(result.out, HasSubstr("| mm             |           1 |          1 |      1 |"));
  EXPECT_THAT(result.out, HasSubstr("+0.0 %")) << "memory";
}

TEST_F(CompareStep, TheFolderAloneSaysBoth) {
  const Ran result =
      scratch_.run("foretrace compare out -m h100-nvswitch-8 --tolerance 90% --format json");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\"family\": \"mm\""));
}

std::string with(std::string text, const std::string& was, const std::string& is) {
  return text.replace(text.find(was), was.size(), is);
}

TEST_F(CompareStep, SaysWhereAnotherScriptWasMeasured) {
  const auto remembers = [&](const char* captured, const char* measured) {
    scratch_.write("out/rank0.calls.jsonl",
                   with(record_of({.calls = kProduct}), "\"rank\":0",
                        std::string{"\"script_digest\":\""} + captured + "\",\"rank\":0"));
    scratch_.write("out/measured.timeline.json",
                   with(kMeasuredStep, "\"versions\":{}",
                        std::string{"\"versions\":{\"script_digest\":\""} + measured + "\"}"));
    return scratch_.run("foretrace compare out -m h100-nvswitch-8 --tolerance 90% --format json");
  };
  const Ran other = remembers("0123456789abcdef", "fedcba9876543210");
  EXPECT_EQ(other.exit_code, 0) << other.err;
  EXPECT_THAT(other.err, HasSubstr("warning: the step was measured of another script"));
  EXPECT_THAT(other.out, HasSubstr("\"doubts\""));
  const Ran same = remembers("0123456789abcdef", "0123456789abcdef");
  EXPECT_THAT(same.err, testing::Not(HasSubstr("another script"))) << same.err;
  const Ran none = remembers("x", "0123456789abcdef");
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("'script_digest' is 16 hexadecimal digits"));
}

TEST_F(CompareStep, SaysWhereFewOperationsHaveAPartner) {
  scratch_.write("out/measured.timeline.json",
                 with(with(kMeasuredStep, "aten::mm", "aten::relu"), "nvjet_tst", "relu_kernel"));
  const Ran ran = scratch_.run("foretrace compare out -m h100-nvswitch-8 --tolerance 90%");
  EXPECT_THAT(ran.err, HasSubstr("warning: 0 of 2 operations have a partner on the other side"));
}

TEST_F(CompareStep, TheReportDrawsBoth) {
  const Ran result = scratch_.run("foretrace report out -m h100-nvswitch-8 --explain");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(read_file(scratch_.path() / "out" / "report.html"),
              HasSubstr("Operations of the step"));
}

TEST_F(CompareStep, ExplainNamesTheHostsOwnWorkBetweenCalls) {
  std::string calls = record_of({.calls = kProduct});
  const std::string large = "\"m\":4096,\"n\":4096,\"kk\":4096";
  calls.replace(calls.find(large), large.size(), "\"m\":256,\"n\":256,\"kk\":256");
  const std::string loop = "\"torch_loop_ns\":20000000", quick = "\"torch_loop_ns\":10000000";
  calls.replace(calls.find(loop), loop.size(), quick);
  scratch_.write("out/rank0.calls.jsonl", calls);
  const Ran simulated = scratch_.run("foretrace simulate out/step.yaml -m h100-nvswitch-8 -o run");
  ASSERT_EQ(simulated.exit_code, 0) << simulated.err;
  const Ran explained = scratch_.run("foretrace explain run");
  EXPECT_EQ(explained.exit_code, 0) << explained.err;
  EXPECT_THAT(explained.out,
              HasSubstr("launch-bound host, most of it the host's own work between calls ("));
  EXPECT_THAT(scratch_.run("foretrace explain run --format json").out,
              HasSubstr("\"waits_for\": \"the host's own work between calls\""));
  const Ran csv = scratch_.run("foretrace explain run --format csv");
  EXPECT_THAT(csv.out, testing::StartsWith("cause,with,seconds,gain,simulated_seconds,bound\n"));
  EXPECT_THAT(csv.out, HasSubstr("\nlaunch-bound host,calls of the host take no time,0.0000"));
}

TEST_F(CompareStep, AScenarioThatTheMachineCannotRunIsRefused) {
  scratch_.write(
      "out/step.yaml",
      "schema_version: 1\nname: step\nprocesses: 2\ncaptured_step:\n  calls: rank0.calls.jsonl\n");
  const Ran result = scratch_.run("foretrace compare out -m h100-nvswitch-8");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("capture again with --world-size 2"));
}

}  // namespace
}  // namespace foretrace::test
