// foretrace simulate of a file with serving:, as a user calls it.
#include <fmt/format.h>
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
                             HasSubstr("verdict         stable"), HasSubstr("time goes on    "),
                             HasSubstr("on h100-nvswitch-8")));
}

TEST(Serving, IsCheckedWithItsRequestsAndTheirHash) {
  const Scratch scratch;
  scratch.write("chat.yaml", kChat);
  std::string others = kChat;
  others.replace(others.find("20/s"), 4, "40/s");
  scratch.write("quick.yaml", others);
  const Ran ran = scratch.run("foretrace check chat.yaml quick.yaml --format json");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const auto files = nlohmann::json::parse(ran.out)["files"];
  EXPECT_THAT(files[0]["requests"].get<std::string>(),
              AllOf(HasSubstr("20 requests in "), HasSubstr("outputs of 20")));
  EXPECT_EQ(files[0]["hash"], files[1]["hash"]) << "the iterations are the same";
  EXPECT_NE(files[0]["requests_hash"], files[1]["requests_hash"]);
  EXPECT_THAT(scratch.run("foretrace check chat.yaml").out,
              AllOf(HasSubstr("model llama"), HasSubstr("requests and engine: hash ")));
}

TEST(Serving, HasAServerAroundOtherEnginesThatDelaysEachToken) {
  const Scratch scratch;
  const auto first_token = [&scratch](const char* engine) {
    std::string text = kChat;
    text.insert(text.find("  traffic"), fmt::format("  engine: {{kind: {}}}\n", engine));
    scratch.write("chat.yaml", text);
    const Ran ran = scratch.run("foretrace simulate chat.yaml --machine 8xH100-SXM --format json");
    return nlohmann::json::parse(ran.out)["values"]["ttft_ms_p50"]["predicted"].get<double>();
  };
  EXPECT_LT(first_token("foretrace"), 50);
  EXPECT_GT(first_token("vllm"), 50);
  EXPECT_GT(first_token("tensorrt-llm"), 140);
}

TEST(Serving, OfAKnownHostTakesItsTimesAndANarrowerBand) {
  const Scratch scratch;
  scratch.write("chat.yaml", kChat);
  scratch.write("quick.yaml", "foretrace_host: 1\npython_loop: 30ms\ntorch_loop: 12ms\n");
  scratch.write("typical.yaml", "foretrace_host: 1\npython_loop: 60ms\ntorch_loop: 24ms\n");
  const auto first_token = [&scratch](const std::string& host) {
    const Ran ran = scratch.run("foretrace simulate chat.yaml --machine h100-nvswitch-8" + host +
                                " --format json");
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_EQ(ran.err.find("its reference loop in quick.yaml, 12.0 ms") != std::string::npos,
              host == " --host quick.yaml");
    return nlohmann::json::parse(ran.out)["values"]["ttft_ms_p50"];
  };
  const auto width = [](const nlohmann::json& value) {
    return value["high"].get<double>() / value["low"].get<double>();
  };
  const nlohmann::json unknown = first_token(""), typical = first_token(" --host typical.yaml"),
                       quick = first_token(" --host quick.yaml");
  EXPECT_EQ(typical["predicted"], unknown["predicted"]);
  EXPECT_LT(width(typical), width(unknown));
  EXPECT_LT(quick["predicted"].get<double>(), 0.95 * unknown["predicted"].get<double>());
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

constexpr const char* kApart =
    "schema_version: 1\nname: chat\nserving:\n  model: llama3.2-1b\n"
    "  disaggregated: {prefill: {engines: 1}, decode: {engines: 2}}\n"
    "  traffic: {arrivals: closed, concurrency: 4, prompt: {mean: 300}, output: {mean: 20}, "
    "requests: 12}\n";

TEST(Serving, OfEnginesApartSaysWhatIsToldOfOneKindOnly) {
  const Scratch scratch;
  scratch.write("apart.yaml", kApart);
  Ran ran = scratch.run("foretrace simulate apart.yaml -o run");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("for each of 3 GPUs"));
  EXPECT_THAT(ran.err, HasSubstr("is said of the engines of 'decode'"));
  ran = scratch.run("foretrace report run -o page.html && cat page.html");
  EXPECT_THAT(ran.out, HasSubstr("request 11"));
  ran = scratch.run("foretrace plan-serving apart.yaml");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("'expert' and 'pipeline' are not searched"));
}

TEST(Serving, RefusesATypeThatNoGpuOfTheMachineHasWhereverItIs) {
  const Scratch scratch;
  std::string text = kApart;
  text.insert(text.find("  disaggregated"), "  precision: nvfp4\n  engine: {kind: vllm}\n");
  scratch.write("apart.yaml", text);
  const Ran ran = scratch.run("foretrace simulate apart.yaml --machine 8xH100-SXM");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("apart.yaml:4:"));
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
  EXPECT_THAT(ran.out,
              AllOf(HasSubstr("<h2>Requests</h2>"), HasSubstr("Requests at a time"),
                    HasSubstr("KV cache in use"), HasSubstr("request 19"), HasSubstr("What limits"),
                    HasSubstr("reading weights and cache"), HasSubstr("memory twice as fast"),
                    HasSubstr("twice as many engines"), HasSubstr("arrivals: poisson")));
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

const std::string kAsked =
    "foretrace plan-serving llama3.2-1b --rate 20/s --prompt 300 --output 20 --ttft-ms 200 ";

TEST(PlanServing, OfAModelFindsTheFewestGpusOfEachMachineAndWritesAPage) {
  const Scratch scratch;
  const Ran ran = scratch.run(kAsked +
                              "--machine 8xH100-SXM --machine 8xB200 --cost-per-gpu-hour 2 "
                              "--cost-per-gpu-hour 8xB200=4 -o plan.html -o plan.json -o plan.csv "
                              "--write-scenario 1 best.yaml");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("  1  8x"), HasSubstr("cost/M tokens"),
                             HasSubstr("1 times: vllm serve MODEL --tensor-parallel-size 1"),
                             HasSubstr("wrote best.yaml: foretrace simulate best.yaml")));
  EXPECT_THAT(ran.err, HasSubstr("8xB200: note: ")) << "a GPU that nobody measured";
  EXPECT_THAT(ran.err, HasSubstr("rests on assumed parameters"));
  EXPECT_THAT(
      scratch.run("cat plan.html").out,
      AllOf(HasSubstr("rests on assumed parameters"), HasSubstr("1 GPU of 8x"),
            HasSubstr("first token within 200 ms"), HasSubstr("throughput against time per token"),
            HasSubstr("<svg"), HasSubstr("--tensor-parallel-size 1")));
  const auto json = nlohmann::json::parse(scratch.run("cat plan.json").out);
  const auto& row = json["rows"][0];
  EXPECT_EQ(row["gpus"], 1);
  EXPECT_GT(row["assumed"], 0);
  const auto& loads = row["loads"];
  ASSERT_GE(loads.size(), 5U);
  EXPECT_EQ(loads[0]["requests"], 1);
  EXPECT_GT(loads[4]["output_tokens_per_s"], loads[0]["output_tokens_per_s"]);
  EXPECT_GT(loads[4]["tpot_p50_ms"], loads[0]["tpot_p50_ms"]);
  EXPECT_LE(loads[0]["low"], loads[0]["output_tokens_per_s"]);
  const double cost = row["machine"] == "8xB200" ? 4.0 : 2.0;
  EXPECT_NEAR(row["cost_per_million_tokens"].get<double>(),
              cost / 3600 / row["output_tokens_per_s"].get<double>() * 1e6, 1e-6);
  EXPECT_EQ(scratch.run("grep -c 8x plan.csv").out, "8\n");
  EXPECT_EQ(scratch.run("foretrace check best.yaml && foretrace simulate best.yaml").exit_code, 0);
}

TEST(PlanServing, SaysWhatIsMissing) {
  const Scratch scratch;
  scratch.write("chat.yaml", kChat);
  const auto refusal = [&](const std::string& command) {
    const Ran ran = scratch.run(command);
    EXPECT_EQ(ran.exit_code, 2) << command;
    return ran.err;
  };
  EXPECT_THAT(refusal("foretrace plan-serving llama3-70b"),
              HasSubstr("a model needs its requests: --rate 20/s --prompt 2000 --output 300"));
  EXPECT_THAT(refusal("foretrace plan-serving llama3-7b --rate 2/s --prompt 9 --output 9"),
              HasSubstr("did you mean 'llama2-7b'"));
  EXPECT_THAT(refusal("foretrace plan-serving llama3-8b --rate 2 --prompt 9 --output 9"),
              HasSubstr("'2' is no rate"));
  EXPECT_THAT(refusal("foretrace plan-serving chat.yaml --rate 20/s"),
              HasSubstr("the file says them"));
  EXPECT_THAT(refusal("foretrace plan-serving chat.yaml --write-scenario 1 best.yaml"),
              HasSubstr("for a model's name"));
  EXPECT_THAT(refusal("foretrace plan-serving chat.yaml --cost-per-gpu-hour 8xB200=x"),
              HasSubstr("a number above 0, or MACHINE=NUMBER"));
  EXPECT_THAT(refusal(kAsked + "--write-scenario 99 best.yaml"), HasSubstr("there is no such row"));
  EXPECT_THAT(refusal(kAsked + "--cost-per-gpu-hour inf"), HasSubstr("a number above 0"));
  EXPECT_THAT(refusal(kAsked + "--cost-per-gpu-hour 8xB20=6"), HasSubstr("no such --machine"));
}

/// Of lengths whose iterations are asked at one, two, three and four contexts.
TEST(PlanServing, LoadsAreWhatAClosedLoopIsPredictedAs) {
  const auto requests = [](const std::string& prompt, const std::string& arrivals) {
    return "schema_version: 1\nname: chat\nserving:\n  model: llama3.2-1b\n  engine: {kind: vllm}\n"
           "  traffic: {arrivals: " +
           arrivals + ", prompt: {mean: " + prompt + "}, output: {mean: 9}, requests: 16}\n";
  };
  for (const char* const prompt : {"20", "300", "3000", "9000"}) {
    const Scratch scratch;
    scratch.write("a.yaml", requests(prompt, "poisson, rate: 2/s"));
    scratch.write("b.yaml", requests(prompt, "closed, concurrency: 8"));
    const Ran ran = scratch.run("foretrace plan-serving a.yaml --machine 1xH100-SXM -o a.json");
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
    const auto load =
        nlohmann::json::parse(scratch.run("cat a.json").out)["rows"][0]["loads"].at(3);
    ASSERT_EQ(load["requests"], 8);
    const auto values = nlohmann::json::parse(
        scratch.run("foretrace simulate b.yaml --machine 1xH100-SXM --format json").out)["values"];
    EXPECT_NEAR(load["ttft_p50_ms"].get<double>(), values["ttft_ms_p50"]["predicted"].get<double>(),
                1e-6)
        << prompt;
    EXPECT_NEAR(load["tpot_p50_ms"].get<double>(), values["tpot_ms_p50"]["predicted"].get<double>(),
                1e-6)
        << prompt;
  }
}

TEST(PlanServing, TakesOptionsAsTextsAndNotAsPartsOfAFile) {
  const Scratch scratch;
  const std::string options = " --prompt 20 --output 5 --machine 1xH100-SXM ";
  for (const char* const rate :
       {"'4/s, seed: 7'", "'4/s} #'", "\"$(printf '4/s\\n  replicas: 3')\""}) {
    const Ran ran = scratch.run("foretrace plan-serving llama3.2-1b" + options + "--rate " + rate);
    EXPECT_EQ(ran.exit_code, 2) << rate;
    EXPECT_THAT(ran.err, HasSubstr("--rate")) << rate;
  }
  EXPECT_EQ(
      scratch
          .run("foretrace plan-serving llama3.2-1b --rate 4/s --precision 'float8, x: 1'" + options)
          .exit_code,
      2);
  const Ran odd = scratch.run(
      "mkdir \"a: 'b' #c\" llama3.2-1b && cp "
      "\"$(foretrace list data)/scenarios/architectures/llama3.2-1b.json\" "
      "\"a: 'b' #c/config.json\" && foretrace plan-serving \"a: 'b' #c/config.json\" llama3.2-1b "
      "--rate 4/s --write-scenario 1 o.yaml" +
      options + "&& foretrace simulate o.yaml");
  EXPECT_EQ(odd.exit_code, 0) << odd.err << "a path is a path, and a folder of a model's name none";
}

TEST(PlanServing, OfSeveralScenariosHasARowOfEach) {
  const Scratch scratch;
  scratch.write("chat.yaml", kChat);
  std::string other = kChat;
  other.replace(other.find("name: chat"), 10, "name: talk");
  scratch.write("talk.yaml", other);
  const Ran ran = scratch.run("foretrace plan-serving chat.yaml talk.yaml -o plan.html --csv");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("scenario,machine,tensor"), HasSubstr("\nchat,"),
                             HasSubstr("\ntalk,")));
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

TEST(Serving, SaysThatACacheHasNoBlock) {
  const Scratch scratch;
  std::string text = kChat;
  text.replace(text.find("  traffic"), 0, "  engine: {cache_tokens: 15}\n");
  scratch.write("chat.yaml", text);
  const Ran ran = scratch.run("foretrace simulate chat.yaml --machine h100-nvswitch-8");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("'cache_tokens: 15' of the engine are no block of its cache"));
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
