// foretrace simulate of a file with serving:, as a user calls it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kChat =
    "schema_version: 1\nname: chat\nserving:\n  model: llama3.2-1b\n"
    "  traffic: {arrivals: poisson, rate: 20/s, prompt: {mean: 300, spread: 20%}, output: {mean: "
    "20},"
    " requests: 20}\n";

TEST(Serving, IsSimulatedWithPercentilesAndAVerdict) {
  const Scratch scratch;
  scratch.write("chat.yaml", kChat);
  const Ran ran = scratch.run("foretrace simulate chat.yaml --machine h100-nvswitch-8");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("TTFT, ms"), HasSubstr("20 requests in"),
                             HasSubstr("verdict         stable"), HasSubstr("on h100-nvswitch-8")));
}

TEST(Serving, IsATableWithABandAround) {
  const Scratch scratch;
  scratch.write("chat.yaml", kChat);
  const Ran ran =
      scratch.run("foretrace simulate chat.yaml --machine 8xB200 --format csv | grep tpot_ms_p50");
  double middle = 0, low = 0, high = 0;
  ASSERT_EQ(std::sscanf(ran.out.c_str(), "tpot_ms_p50,%lf,%lf,%lf", &middle, &low, &high), 3)
      << ran.out << ran.err;
  EXPECT_GT(low, 0.3);
  EXPECT_LT(low, middle);
  EXPECT_LT(middle, high);
  EXPECT_LT(high, 5);
}

TEST(Serving, IsJsonWithTheVerdictAsAWord) {
  const Scratch scratch;
  scratch.write("chat.yaml", kChat);
  const Ran ran =
      scratch.run("foretrace simulate chat.yaml --machine h100-nvswitch-8 --format json");
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["verdict"], "stable");
  EXPECT_EQ(json["requests"], 20);
  EXPECT_LT(json["values"]["ttft_ms_p50"]["low"], json["values"]["ttft_ms_p50"]["high"]);
}

TEST(Serving, SaysWhatTheEnginesNumbersRestOn) {
  const Scratch scratch;
  scratch.write("chat.yaml", kChat);
  EXPECT_THAT(scratch.run("foretrace simulate chat.yaml").err,
              HasSubstr("the host's work of foretrace is as hosts of an H100 and an H200"));
  std::string text = kChat;
  text.insert(text.find("  traffic"), "  engine: {kind: vllm, release: v1}\n");
  scratch.write("vllm.yaml", text);
  EXPECT_THAT(scratch.run("foretrace simulate vllm.yaml").err,
              AllOf(HasSubstr("the host's work of vllm is set by hand on public times per token"),
                    HasSubstr("'release' changes nothing")));
}

TEST(Serving, WritesRequestsAndIterationsThatCompareReportAndExportRead) {
  const Scratch scratch;
  scratch.write("chat.yaml", kChat);
  Ran ran = scratch.run("foretrace simulate chat.yaml -o run && foretrace compare run run");
  ASSERT_EQ(ran.exit_code, 0) << ran.err << ran.out;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("| TTFT p50 "), HasSubstr("| end to end p99 "),
                             HasSubstr("| request_decode "), HasSubstr("| decode_iteration 1 "),
                             HasSubstr("The most of the KV cache in use")));
  ran = scratch.run(
      "foretrace simulate chat.yaml --machine 8xB200 -o other; foretrace compare run other");
  EXPECT_EQ(ran.exit_code, 1) << "another machine's times";
  ran = scratch.run("foretrace report run -o page.html && cat page.html");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("<h2>Requests</h2>"), HasSubstr("Requests at a time"),
                             HasSubstr("KV cache in use"), HasSubstr("request 19"),
                             HasSubstr("arrivals: poisson")));
  EXPECT_EQ(scratch.run("foretrace export run --to kineto -o kineto").exit_code, 0);
  ran = scratch.run("foretrace explain run");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("a run of requests, which are no program"));
}

TEST(Serving, RefusesWhatItHasNoUseFor) {
  const Scratch scratch;
  scratch.write("chat.yaml", kChat);
  const Ran ran = scratch.run("foretrace simulate chat.yaml --few-passes");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("--few-passes: not for a scenario with 'serving'"));
}

TEST(Serving, SaysWhatDoesNotFit) {
  const Scratch scratch;
  std::string text = kChat;
  text.replace(text.find("llama3.2-1b"), 11, "llama3-70b");
  scratch.write("chat.yaml", text);
  const Ran ran = scratch.run("foretrace simulate chat.yaml --machine h100-nvswitch-8");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("leave no memory"), HasSubstr("tensor: 2")));
}

TEST(Serving, ReadsAsAProgramThatPrintWrites) {
  const Scratch scratch;
  scratch.write("chat.yaml", kChat);
  const Ran ran = scratch.run(
      "foretrace print chat.yaml > program.yaml && foretrace check program.yaml && foretrace check "
      "chat.yaml");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
}

}  // namespace
}  // namespace foretrace::test
