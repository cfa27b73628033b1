// serving: what a file says, the requests that follow from it, and the iterations that are asked.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "scenarios/base/text/errors.h"
#include "scenarios/program/program_walk.h"
#include "scenarios/read/scenario.h"
#include "scenarios/serving/grid.h"
#include "scenarios/serving/random_numbers.h"
#include "scenarios/serving/served_facts_json.h"
#include "scenarios/serving/traffic.h"

namespace foretrace::serving {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kTraffic =
    "{arrivals: poisson, rate: 10/s, prompt: {mean: 512, spread: 30%}, "
    "output: {mean: 512, spread: 30%}, requests: 3, seed: 1}";

std::string scenario(const std::string& serving) {
  return fmt::format("schema_version: 1\nname: a\nserving:\n  {}\n", serving);
}
Serving read(const std::string& more, const std::string& traffic = kTraffic,
             const std::string& model = "llama3-8b") {
  const auto made = read_serving_scenario(
      scenario(fmt::format("{{model: {}, {}traffic: {}}}", model, more, traffic)), "a.yaml");
  return made.value().serving;
}
std::string refusal(const std::string& more, const std::string& traffic = kTraffic) {
  try {
    read(more, traffic);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "read";
}

TEST(ServingRead, KnowsSpeculativeDecodingOfEnginesThatHaveIt) {
  const Serving serving = read("engine: {kind: vllm, speculative: {tokens: 3, acceptance: 70%}}, ");
  ASSERT_TRUE(serving.engine.speculative);
  EXPECT_EQ(serving.engine.guesses(), 3);
  EXPECT_EQ(serving.engine.speculative->acceptance_ppm, 700'000);
  const Serving plain = read("engine: {kind: vllm}, ");
  EXPECT_EQ(cache_bytes(serving) * 32, cache_bytes(plain) * 33) << "a layer more";
  EXPECT_GT(weight_bytes(serving), weight_bytes(plain) * 34 / 33) << "the words have their share";
  EXPECT_THAT(refusal("engine: {speculative: {acceptance: 70%}}, "),
              HasSubstr("our engine does not guess tokens"));
  EXPECT_THAT(refusal("engine: {kind: vllm, speculative: {tokens: 17, acceptance: 70%}}, "),
              HasSubstr("17"));
  EXPECT_THAT(refusal("engine: {kind: vllm, speculative: {tokens: 2}}, "), HasSubstr("acceptance"));
}

TEST(ServingTraffic, DrawsTheRequestsOfTheDocument) {
  std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>> found;
  for (const Arrival& one : arrivals_of(read("").traffic)) {
    found.emplace_back(one.at_ns.value(), one.prompt, one.output);
  }
  EXPECT_THAT(found, ElementsAre(std::tuple{150726472, 708, 349}, std::tuple{205194296, 622, 464},
                                 std::tuple{219785065, 458, 357}));
}

TEST(ServingTraffic, GivesLaterRequestsOfAClosedLoopNoTime) {
  const auto arrivals =
      arrivals_of(read("",
                       "{arrivals: closed, concurrency: 2, prompt: {mean: 5}, output: {mean: 7}, "
                       "requests: 3}")
                      .traffic);
  ASSERT_EQ(arrivals.size(), 3u);
  EXPECT_EQ(arrivals[1].at_ns, 0);
  EXPECT_EQ(arrivals[2].at_ns, std::nullopt);
  EXPECT_EQ(arrivals[2].prompt, 5);
  EXPECT_EQ(longest(arrivals), 12);
}

TEST(ServingTraffic, LogarithmsAreRoundedDownTo32Places) {
  EXPECT_EQ(log2_of(1), 0);
  EXPECT_EQ(log2_of(std::uint64_t{1} << 63), 63 * kOne);
  EXPECT_EQ(log2_of(3), 6807362105) << "1.584962500721156 * 2^32";
}

TEST(ServingRead, KnowsAnEnginesDefaults) {
  EXPECT_EQ(read("").engine.max_batched_tokens, 2048);
  const Engine vllm = read("engine: {kind: vllm, memory: 85%}, ").engine;
  EXPECT_EQ(vllm.max_batched_tokens, 8192);
  EXPECT_EQ(vllm.memory_ppm, 850'000);
}

TEST(ServingRead, RefusesWithThePlaceAndWhatWouldDo) {
  EXPECT_THAT(refusal("engine: {kind: vlm}, "), HasSubstr("did you mean 'vllm'"));
  EXPECT_THAT(refusal("parallel: {tensor: 3}, "), HasSubstr("32 heads cannot be split over 3"));
  EXPECT_THAT(refusal("prefix_hits: 120%, "), HasSubstr("'120%' is no percentage"));
  EXPECT_THAT(refusal("engine: {max_length: 400}, "), HasSubstr("a request has 1086 tokens"));
  EXPECT_THAT(refusal("precision: float16, "), HasSubstr("a.yaml:4:"));
  EXPECT_THAT(refusal("",
                      "{arrivals: poisson, rate: 4, prompt: {mean: 5}, output: {mean: 7}, "
                      "requests: 3}"),
              HasSubstr("'4' is no rate"));
  EXPECT_THAT(refusal("", "{arrivals: trace, file: none.csv}"), HasSubstr("none.csv"));
  EXPECT_THAT(refusal("",
                      "{arrivals: poisson, rate: 0.001/h, prompt: {mean: 5}, output: {mean: "
                      "7}, requests: 1000000}"),
              HasSubstr("longer than 11 days"));
}

std::string closed(const std::string& requests, const std::string& prompt,
                   const std::string& output, const std::string& concurrency = "4") {
  return fmt::format(
      "{{arrivals: closed, concurrency: {}, prompt: {{mean: {}}}, output: {{mean: {}}}, "
      "requests: {}}}",
      concurrency, prompt, output, requests);
}

TEST(ServingRead, RefusesWhatTakesAllMemoryWithTheValuesPlace) {
  EXPECT_EQ(read("", closed("100000", "500", "128")).traffic.requests, 100'000);
  EXPECT_THAT(refusal("", closed("1000000", "500", "128")),
              HasSubstr("a.yaml:4:118: error: 1000000 requests of 128 tokens of output: more than "
                        "67108864 tokens in all\n"));
  EXPECT_THAT(refusal("", closed("1000000", "500", "128")), HasSubstr("^\n  hint: at most 524288"));
}

TEST(ServingRead, RefusesGapsOfMoreNumbersThanCanBeDrawn) {
  const auto gaps = [](const char* shape, const char* requests) {
    return fmt::format(
        "{{arrivals: gamma, rate: 9/s, shape: {}, prompt: {{mean: 5}}, output: {{mean: 7}}, "
        "requests: {}}}",
        shape, requests);
  };
  EXPECT_EQ(read("", gaps("10", "20000")).traffic.requests, 20'000);
  EXPECT_THAT(refusal("", gaps("1000", "500000")),
              HasSubstr("500000 requests of shape 1000: more than 2000000 numbers"));
}

TEST(ServingFactsJson, CountsAreWholeNumbersThatFit) {
  ServingFacts facts;
  facts.occupancy = {{0, 5, 1, 1}};
  const nlohmann::json good = to_json(facts);
  EXPECT_EQ(serving_facts(good).occupancy.size(), 1u);
  for (const nlohmann::json& wrong : {nlohmann::json(1e30), nlohmann::json(2.7), nlohmann::json(-1),
                                      nlohmann::json(std::uint64_t{1} << 40)}) {
    nlohmann::json bad = good;
    bad["occupancy"][0][0] = wrong;
    EXPECT_THROW(serving_facts(bad), nlohmann::json::exception) << wrong;
    if (wrong.is_number_integer()) continue;
    bad = good;
    bad["gpus"] = wrong;
    EXPECT_THROW(serving_facts(bad), nlohmann::json::exception) << wrong;
  }
}

TEST(ServingRead, TakesATraceThatASpreadsheetSaved) {
  const auto trace = std::filesystem::path{::testing::TempDir()} / "saved_trace.csv";
  std::ofstream{trace} << "\xef\xbb\xbf"
                          "arrival_us,prompt,output\r\n5,6,7\r\n";
  const Serving serving = read("", fmt::format("{{arrivals: trace, file: {}}}", trace.string()));
  std::filesystem::remove(trace);
  EXPECT_EQ(serving.traffic.requests, 1);
}

TEST(ServingRead, RefusesNumbersThatAreNone) {
  for (const char* wrong : {"0", "-1", "1e30", "99999999999999999999", "1.5", "many", "1000001"}) {
    EXPECT_THAT(refusal("", closed(wrong, "5", "7")), HasSubstr("a.yaml:4:")) << wrong;
    EXPECT_THAT(refusal("", closed("3", "5", "7", wrong)), HasSubstr("a.yaml:4:")) << wrong;
  }
  for (const char* wrong : {"0", "-1", "1e30", "99999999999999999999", "1.5", "many", "10000001"}) {
    EXPECT_THAT(refusal("", closed("3", wrong, "7")), HasSubstr("a.yaml:4:")) << wrong;
    EXPECT_THAT(refusal("", closed("3", "5", wrong)), HasSubstr("a.yaml:4:")) << wrong;
  }
  for (const char* wrong : {"0/s", "-4/s", "1e9/s", "4/day", "/s", "4/", "nan/s", "0.0001/s",
                            "99999999999999999999/s", "4.5.6/s"}) {
    const std::string traffic = fmt::format(
        "{{arrivals: poisson, rate: {}, prompt: {{mean: 5}}, output: {{mean: 7}}, requests: 3}}",
        wrong);
    EXPECT_THAT(refusal("", traffic), HasSubstr("is no rate")) << wrong;
  }
}

TEST(ServingMemory, IsWeightsWorkspaceAndCache) {
  const Serving bf16 = read("");
  EXPECT_EQ(cache_bytes(bf16), 2 * 32 * 8 * 128 * 2);
  EXPECT_EQ(weight_bytes(bf16), 2 * 8'030'261'248);
  EXPECT_EQ(cache_bytes(read("precision: {cache: float8}, ")), cache_bytes(bf16) / 2);
  EXPECT_EQ(cache_bytes(read("parallel: {tensor: 4}, ")), cache_bytes(bf16) / 4);
  const std::int64_t bytes = 80'000'000'000;
  const std::int64_t workspace = std::int64_t{3} << 30;
  const std::int64_t left = bytes / 10 * 9 - weight_bytes(bf16) - workspace;
  EXPECT_EQ(cache_tokens(bf16, bytes, workspace), left / cache_bytes(bf16) / 16 * 16);
  EXPECT_EQ(cache_tokens(read("engine: {cache_tokens: 100}, "), bytes, workspace), 96)
      << "whole blocks";
  EXPECT_LT(cache_tokens(bf16, 16'000'000'000, workspace), 0) << "the weights alone are larger";
}

TEST(ServingMemory, OfTokensIsWhatTheEnginesLogSaysWhereTheyFitBesideTheWeights) {
  const Serving said = read("engine: {kind: vllm, cache_tokens: 41408}, ");
  const std::int64_t bytes = 25'250'627'584;
  EXPECT_EQ(cache_tokens(said, bytes, std::int64_t{3} << 30), 41408) << "the workspace is a guess";
  const std::int64_t most = (17'000'000'000 - weight_bytes(said)) / cache_bytes(said);
  EXPECT_EQ(cache_tokens(said, 17'000'000'000, 0), most / 16 * 16);
  const Serving ours = read("engine: {cache_tokens: 10000000}, ");
  EXPECT_EQ(cache_tokens(ours, bytes, 0), cache_tokens(read(""), bytes, 0)) << "a limit of ours";
}

TEST(ServingMemory, OfLinearAttentionIsAStateOfEachRequest) {
  const Serving hybrid = read("parallel: {tensor: 4}, ", kTraffic, "qwen3.5-397b-a17b");
  EXPECT_EQ(cache_bytes(hybrid), 15 * 1 * 2 * 256 * 2) << "15 layers of 60, one head of keys";
  const std::int64_t matrices = 64 * 128 * 128 * 4, kept = 3 * (2 * 16 + 64) * 128 * 2;
  EXPECT_EQ(state_bytes(hybrid), 45 * (matrices + kept) / 4);
  const Serving all = read("", kTraffic, "llama3-8b");
  EXPECT_EQ(state_bytes(all), 0);
}

TEST(ServingMemory, OfAnIndexerIsAKeyOfEightBitsBesideTheLatentOne) {
  EXPECT_EQ(cache_bytes(read("parallel: {tensor: 8}, ", kTraffic, "glm-5")),
            78 * (576 * 2 + 128 + 4));
}

TEST(ServingIterations, HaveARegionForEachBatchAndTheModelsProducts) {
  const auto made = read_serving_scenario(
      scenario(fmt::format("{{model: llama3-8b, parallel: {{tensor: 2}}, engine: {{kind: vllm}}, "
                           "traffic: {}}}",
                           kTraffic)),
      "a.yaml");
  const auto batches = batches_of(grid_of(made->serving));
  std::size_t regions = 0, products = 0, sums = 0;
  double flops = 0;
  for_each_op(made->program, [&](const HostThread&, const Op& op, Around) {
    regions += std::holds_alternative<Region>(op.kind) ? 1 : 0;
    if (const auto* product = std::get_if<Gemm>(&op.kind)) {
      ++products;
      flops += 2.0 * static_cast<double>(product->m.constant() * product->n.constant() *
                                         product->k.constant());
    }
    sums += std::holds_alternative<NcclCollective>(op.kind) ? 1 : 0;
  });
  EXPECT_EQ(regions, batches.size());
  EXPECT_EQ(products, batches.size() * (4 * 32 + 1)) << "four of a layer, and the head";
  const auto large = static_cast<std::size_t>(
      std::ranges::count_if(batches, [](const Batch& one) { return one.tokens() > 1024; }));
  EXPECT_EQ(sums, large * 2 * 32) << "up to 8 MiB are added up by a kernel of the engine's own";
  double expected = 0;  // a GPU's half of the weights for each token; the head for each request
  const double head = 128256.0 * 4096;
  for (const Batch& one : batches) {
    expected += static_cast<double>(one.tokens()) * (8'030'261'248.0 - 2 * head - 266'240) +
                static_cast<double>(one.requests()) * head;
  }
  EXPECT_NEAR(flops / expected, 1, 1e-4);
}

TEST(ServingMemory, OfAPipelineIsThatOfTheLastStage) {
  const Serving whole = read("engine: {kind: vllm}, ");
  const Serving three = read("parallel: {tensor: 2, pipeline: 3}, engine: {kind: vllm}, ");
  EXPECT_EQ(three.gpus(), 6);
  EXPECT_EQ(three.first_layer(), 32 - 11);
  EXPECT_EQ(cache_bytes(three), cache_bytes(whole) / 32 * 11 / 2);
  const std::int64_t head = std::int64_t{128'256} * 4096, norm = 4096;
  const std::int64_t layer = (8'030'261'248 - 2 * head - norm) / 32, norms = 2 * 4096;
  EXPECT_EQ(weight_bytes(three), 2 * (11 * ((layer - norms) / 2 + norms) + head / 2 + norm));
}

TEST(ServingMemory, OfFourBitsIsTheirScalesAndZerosWithThem) {
  const std::int64_t head = std::int64_t{128'256} * 4096, norms = 266'240;
  const std::int64_t products = 8'030'261'248 - 2 * head - norms;
  EXPECT_EQ(weight_bytes(read("precision: int4, ")), products * 17 / 32 + 2 * (2 * head + norms));
}

TEST(ServingIterations, OfFourBitWeightsAreProductsOfBfloat16) {
  const auto made = read_serving_scenario(
      scenario(fmt::format("{{model: llama3-8b, precision: int4, engine: {{kind: vllm}}, "
                           "traffic: {}}}",
                           kTraffic)),
      "a.yaml");
  std::size_t packed = 0, casts = 0;
  for_each_op(made->program, [&](const HostThread&, const Op& op, Around) {
    if (const auto* product = std::get_if<Gemm>(&op.kind)) {
      EXPECT_EQ(product->type, DataType::BFloat16);
      packed += product->scales == Scales::Packed ? 1 : 0;
    }
    const auto* kernel = std::get_if<LibraryKernel>(&op.kind);
    casts += kernel != nullptr && kernel->kernel == KernelKind::Narrow ? 1 : 0;
  });
  EXPECT_EQ(packed, batches_of(grid_of(made->serving)).size() * 4 * 32) << "all but the head";
  EXPECT_EQ(casts, 0u) << "rows stay as they are";
}

TEST(ServingIterations, AreSummedByNcclWhereTheEngineHasNoKernelForIt) {
  Serving serving = read("parallel: {tensor: 2}, engine: {kind: vllm}, ");
  EXPECT_TRUE(adds_itself(serving, 1024));
  EXPECT_FALSE(adds_itself(serving, 1025)) << "more than 8 MiB";
  serving.has_nvlink = false;
  EXPECT_FALSE(adds_itself(serving, 1));
  EXPECT_FALSE(adds_itself(read("parallel: {tensor: 2}, "), 1)) << "our engine has none";
}

TEST(ServingLayout, IsReadWithWhatCannotBe) {
  const Serving one = read("parallel: {tensor: 2}, replicas: 3, router: least_loaded, ");
  EXPECT_EQ(one.gpus(), 6);
  EXPECT_EQ(one.router, Router::LeastLoaded);
  EXPECT_THAT(refusal("parallel: {data: 2}, "), HasSubstr("as 'replicas'"));
  EXPECT_THAT(refusal("parallel: {expert: 2}, "), HasSubstr("'expert' is for networks of experts"));
  EXPECT_THAT(refusal("parallel: {pipeline: 2}, "), HasSubstr("our engine has no pipeline"));
  EXPECT_THAT(refusal("parallel: {pipeline: 33}, engine: {kind: vllm}, "),
              HasSubstr("32 layers cannot be split over 33"));
  EXPECT_THAT(refusal("parallel: {pipeline: 2}, engine: {kind: vllm, speculative: {acceptance: "
                      "70%}}, "),
              HasSubstr("guessed tokens are not simulated in a pipeline"));
  EXPECT_THAT(refusal("parallel: {tensor: 32}, replicas: 4096, "), HasSubstr("131072 GPUs in all"));
  EXPECT_THAT(refusal("replicas: 2, disaggregated: {prefill: {}, decode: {}}, "),
              HasSubstr("engines of its own"));
  EXPECT_THAT(refusal("disaggregated: {prefill: {engines: 2}}, "), HasSubstr("'decode'"));
}

TEST(ServingLayout, OfEnginesApartIsThatOfEachKind) {
  const Serving apart = read(
      "parallel: {tensor: 2}, disaggregated: {prefill: {engines: 3}, decode: {parallel: {tensor: "
      "4}}}, ");
  EXPECT_EQ(apart.gpus(), 3 * 2 + 4);
  EXPECT_EQ(prompts_of(apart).replicas, 3);
  EXPECT_EQ(prompts_of(apart).layout.tensor, 2);
  EXPECT_EQ(apart.layout.tensor, 4);
}

/// 8 experts, 2 of which compute a token.
Serving with_experts(std::int64_t tensor, std::int64_t data, std::int64_t expert) {
  Serving serving = read("");
  serving.model.experts = 8;
  serving.model.top_k = 2;
  serving.layout = {tensor, data, expert};
  return serving;
}

TEST(ServingExperts, AreSpreadOverTheGpusThatSayTo) {
  const std::int64_t ffn = read("").model.ffn;
  const ExpertWork whole = expert_work(with_experts(1, 1, 1), 64);
  EXPECT_EQ(whole.experts, 8);
  EXPECT_EQ(whole.copies, 128);
  EXPECT_EQ(whole.rows, 16);
  EXPECT_EQ(whole.width, ffn);
  const ExpertWork split = expert_work(with_experts(4, 1, 1), 64);
  EXPECT_EQ(split.experts, 8);
  EXPECT_EQ(split.width, ffn / 4);
  const ExpertWork spread = expert_work(with_experts(4, 1, 4), 64);
  EXPECT_EQ(spread.experts, 2);
  EXPECT_EQ(spread.copies, 32);
  EXPECT_EQ(spread.width, ffn);
  const ExpertWork groups = expert_work(with_experts(1, 4, 4), 64);
  EXPECT_EQ(groups.rows, 64) << "tokens of all four groups reach them";
  EXPECT_EQ(expert_work(with_experts(1, 1, 1), 1).experts, 2) << "two of one token";
}

TEST(ServingExperts, WeighAsManyBytesOnAGpuHoweverTheyLie) {
  const std::int64_t split = weight_bytes(with_experts(4, 1, 1));
  EXPECT_EQ(weight_bytes(with_experts(4, 1, 4)), split);
  EXPECT_GT(weight_bytes(with_experts(1, 4, 4)), split) << "attention is whole on each group's GPU";
}

TEST(ServingExperts, AreGivenTheRowsOfGroupsByNcclWhereNvlinkDoesNotJoinThem) {
  Serving serving = with_experts(1, 2, 2);
  serving.engine.kind = EngineKind::Vllm;
  const auto collectives = [&serving] {
    Program head;
    head.name = "a";
    const Program program = iterations(serving, {decoding(4, 100)}, head, {"a.yaml", 1, 1});
    std::map<CollectiveKind, int> found;
    for_each_op(program, [&](const HostThread&, const Op& op, Around) {
      if (const auto* call = std::get_if<NcclCollective>(&op.kind)) ++found[call->kind];
    });
    return std::pair{program.processes, found};
  };
  EXPECT_EQ(collectives(), (std::pair{1U, std::map<CollectiveKind, int>{}})) << "one says all";
  serving.groups_have_nvlink = false;
  const std::map<CollectiveKind, int> both{{CollectiveKind::AllGather, 32},
                                           {CollectiveKind::ReduceScatter, 32}};
  EXPECT_EQ(collectives(), (std::pair{2U, both}));
}

TEST(ServingIterations, ReadAWindowsKeysOnly) {
  const Serving serving = read("");
  training::Layer layer;
  const Batch batch = decoding(4, 5000);
  const auto all = decode_attention(serving, layer, batch);
  layer.window = 1000;
  const auto windowed = decode_attention(serving, layer, batch);
  EXPECT_EQ(all.flops, 5 * windowed.flops);
  EXPECT_EQ(all.flops, 4 * 4 * 5000 * 32 * 128);
}

}  // namespace
}  // namespace foretrace::serving
