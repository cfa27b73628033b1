// The scheduler, the clock that iterations move on, and what is told of it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

#include "scenarios/base/text/errors.h"
#include "sim/applications/serving/limits.h"
#include "sim/applications/serving/timeline.h"

namespace foretrace::serving {
namespace {

using ::testing::ElementsAre;

Serving small_engine() {
  Serving serving;
  serving.engine.max_batched_tokens = 8;
  serving.engine.max_requests = 4;
  serving.engine.block = 4;
  serving.traffic.arrivals = Arrivals::Poisson;
  return serving;
}

std::vector<Arrival> at_once(std::initializer_list<std::pair<std::int64_t, std::int64_t>> lengths) {
  std::vector<Arrival> arrivals;
  for (const auto& [prompt, output] : lengths) arrivals.push_back({0, prompt, output});
  return arrivals;
}

double millisecond(const Batch& /*batch*/) { return 1e-3; }

Served served_by_one(const Serving& serving, const std::vector<Arrival>& arrivals,
                     std::int64_t blocks,
                     const std::function<double(const Batch&)>& seconds_of = millisecond,
                     std::size_t most = kMostIterations) {
  return serve({.engines = {serving, blocks, seconds_of}}, arrivals, most).front();
}

std::vector<std::pair<std::int64_t, std::int64_t>> decodes_and_chunks(const Served& served) {
  std::vector<std::pair<std::int64_t, std::int64_t>> found;
  for (const Iteration& one : served.iterations) {
    found.emplace_back(one.batch.decodes, one.batch.chunk_tokens);
  }
  return found;
}

TEST(ServingScheduler, SplitsAPromptOverIterationsAndDecodesBesideIt) {
  const Served served = served_by_one(small_engine(), at_once({{5, 3}, {9, 1}}), 100);
  EXPECT_THAT(decodes_and_chunks(served),
              ElementsAre(std::pair{0, 8}, std::pair{1, 6}, std::pair{1, 0}));
  EXPECT_EQ(served.requests[0].token_ns,
            (std::vector<std::int64_t>{1'000'000, 2'000'000, 3'000'000}));
  EXPECT_EQ(served.requests[1].token_ns, (std::vector<std::int64_t>{2'000'000}));
}

TEST(ServingScheduler, ComputesPromptsWholeAndAloneWhereTheEngineDoes) {
  Serving serving = small_engine();
  serving.engine.chunked_prefill = false;
  EXPECT_THAT(decodes_and_chunks(served_by_one(serving, at_once({{5, 2}, {6, 1}}), 100)),
              ElementsAre(std::pair{0, 5}, std::pair{1, 6}));
  serving.engine.kind = EngineKind::Sglang;
  EXPECT_THAT(decodes_and_chunks(served_by_one(serving, at_once({{5, 2}, {6, 1}}), 100)),
              ElementsAre(std::pair{0, 5}, std::pair{0, 6}, std::pair{1, 0}));
}

TEST(ServingScheduler, PreemptsTheLastRequestWhereBlocksRunOut) {
  // Two requests of 4 + 6 tokens need three blocks each, and there are four.
  const Served served = served_by_one(small_engine(), at_once({{4, 6}, {4, 6}}), 4);
  EXPECT_EQ(served.preemptions, 1);
  EXPECT_EQ(served.requests[0].preempted, 0);
  EXPECT_EQ(served.requests[1].preempted, 1);
  EXPECT_EQ(served.requests[1].token_ns.size(), 6u);
  EXPECT_GT(served.requests[1].token_ns.back(), served.requests[0].token_ns.back());
}

TEST(ServingScheduler, FindsAPrefixInTheCache) {
  Serving serving = small_engine();
  serving.prefix_ppm = 500'000;
  EXPECT_THAT(decodes_and_chunks(served_by_one(serving, at_once({{6, 1}}), 100)),
              ElementsAre(std::pair{0, 3}));
}

TEST(ServingScheduler, RefusesARequestThatNeverFits) {
  EXPECT_THROW(served_by_one(small_engine(), at_once({{9, 9}}), 4), UsageError);
}

/// What so many requests ask of the engine, in iterations.
std::size_t iterations_of(std::size_t requests) {
  Serving serving = small_engine();
  serving.engine.max_requests = 64;
  serving.engine.max_batched_tokens = 2048;
  const std::vector<Arrival> arrivals(requests, Arrival{0, 100, 16});
  return served_by_one(serving, arrivals, 4096, millisecond).iterations.size();
}

TEST(ServingScheduler, ServesManyRequestsInAsManyIterationsAsTheirTokensNeed) {
  const std::size_t some = iterations_of(1000);
  EXPECT_LT(some, 600U) << "16,000 tokens, 64 at once";
  EXPECT_LE(iterations_of(20'000), 20 * some);
}

TEST(ServingScheduler, RefusesTrafficOfTooManyIterations) {
  Serving serving = small_engine();
  serving.engine.max_requests = 1;
  const std::vector<Arrival> arrivals(2, Arrival{0, 1, 500});
  EXPECT_EQ(served_by_one(serving, arrivals, 1000, millisecond, 1000).iterations.size(), 1000U);
  EXPECT_THROW(served_by_one(serving, arrivals, 1000, millisecond, 999), UsageError);
}

TEST(ServingScheduler, LetsTheNextOfAClosedLoopComeWhenOneIsDone) {
  std::vector<Arrival> arrivals = at_once({{4, 1}});
  arrivals.push_back({std::nullopt, 4, 1});
  const Served served = served_by_one(small_engine(), arrivals, 100);
  EXPECT_EQ(served.requests[1].arrival_ns, 1'000'000);
  EXPECT_EQ(served.requests[1].token_ns.front(), 2'000'000);
}

TEST(ServingScheduler, WaitsForTheNextArrival) {
  std::vector<Arrival> arrivals = at_once({{4, 1}});
  arrivals.push_back({5'000'000, 4, 1});
  const Served served = served_by_one(small_engine(), arrivals, 100);
  EXPECT_EQ(served.iterations[1].begin_ns, 5'000'000);
}

TEST(ServingSummary, IsAsTheDocumentDefinesIt) {
  const Serving serving = small_engine();
  const Served served = served_by_one(serving, at_once({{5, 3}, {9, 1}}), 100);
  const Summary summary = summary_of(serving, {served});
  EXPECT_DOUBLE_EQ(summary.ttft.mean, 1.5);
  EXPECT_DOUBLE_EQ(summary.ttft.percentiles[1], 1.9) << "linear between 1 and 2";
  EXPECT_DOUBLE_EQ(summary.tpot.mean, 1) << "of the request that has more than one token";
  EXPECT_DOUBLE_EQ(summary.itl.mean, 1);
  EXPECT_DOUBLE_EQ(summary.end_to_end.mean, 2.5);
  EXPECT_DOUBLE_EQ(summary.seconds, 3e-3);
  EXPECT_NEAR(summary.output_tokens_per_s, 4 / 3e-3, 1e-9);
  EXPECT_DOUBLE_EQ(summary.most_of_cache, 0.05) << "5 of 100 blocks";
  EXPECT_EQ(summary.verdict, Verdict::Stable);
}

/// Work, not time: a hundred thousand requests ask as many iterations as they need, and no more.
TEST(ServingScheduler, AsksEachIterationOnceForAHundredThousandRequests) {
  Serving serving = small_engine();
  serving.engine.max_batched_tokens = 2048;
  serving.engine.max_requests = 256;
  std::vector<Arrival> arrivals;
  constexpr std::int64_t kRequests = 100'000, kOutput = 20;
  for (std::int64_t i = 0; i < kRequests; ++i) arrivals.push_back({i * 100'000, 100, kOutput});
  std::int64_t asked = 0, tokens = 0;
  const Served served = served_by_one(serving, arrivals, 100'000, [&](const Batch& batch) {
    ++asked;
    tokens += batch.tokens();
    return 1e-3;
  });
  EXPECT_EQ(asked, std::ssize(served.iterations));
  EXPECT_EQ(tokens, kRequests * (100 + kOutput - 1)) << "each token is computed once";
  EXPECT_LT(asked, kRequests * (100 + kOutput) / 1000) << "batches are large";
}

TEST(ServingSummary, SaysThatAnEngineIsTooSlow) {
  Serving serving = small_engine();
  serving.engine.max_requests = 1;
  std::vector<Arrival> arrivals;
  for (std::int64_t i = 0; i < 100; ++i) arrivals.push_back({i * 1'000'000, 4, 2});
  const Summary slow = summary_of(serving, {served_by_one(serving, arrivals, 100)});
  EXPECT_EQ(slow.verdict, Verdict::Overloaded);
  EXPECT_NEAR(slow.falls_behind, 1, 0.05) << "each takes two of the milliseconds between them";
  const Summary quick = summary_of(
      serving, {served_by_one(serving, arrivals, 100, [](const Batch&) { return 4e-4; })});
  EXPECT_EQ(quick.verdict, Verdict::Stable);
}

Timeline drawn(const Serving& serving, Served served) {
  Predicted predicted;
  for (std::size_t i = 0; i < served.requests.size(); ++i) {
    served.requests[i].id = static_cast<std::int64_t>(i);
  }
  predicted.engines.push_back(std::move(served));
  predicted.middle = predicted.fast = predicted.slow = summary_of(serving, predicted.engines);
  predicted.slow.ttft.mean = 2 * predicted.middle.ttft.mean;
  return timeline_of(serving, predicted, Timeline{}, 4);
}

/// "waits 0-1, ...": a lane's spans in milliseconds.
std::string spans_of(const Timeline& timeline, const std::string& lane) {
  std::string text;
  for (const Span& span : timeline.spans) {
    if (timeline.lanes[span.lane].name != lane) continue;
    const OpRow& op = timeline.ops[span.op];
    text += fmt::format("{}{}{} {}-{}", text.empty() ? "" : ", ", op.kind,
                        op.label.empty() ? "" : " " + op.label, span.begin_ns / 1'000'000,
                        span.end_ns / 1'000'000);
  }
  return text;
}

TEST(ServingTimeline, HasWaitingPrefillAndDecodingOfEachRequest) {
  Serving serving = small_engine();
  serving.engine.max_requests = 1;
  const Timeline timeline =
      drawn(serving, served_by_one(serving, at_once({{9, 2}, {4, 1}}), 100, millisecond));
  EXPECT_EQ(spans_of(timeline, "request 0"), "request_prefill 0-2, request_decode 2-3");
  EXPECT_EQ(spans_of(timeline, "request 1"), "request_waits 0-3, request_prefill 3-4");
  EXPECT_EQ(spans_of(timeline, "iterations"),
            "prefill_iteration 5 to 8 tokens 0-1, decode_iteration 1 request 1-2, "
            "decode_iteration 1 request 2-3, prefill_iteration 3 to 4 tokens 3-4")
      << "the prompt's last token alone is one query, as a decoding one";
  EXPECT_EQ(timeline.regions.front().name, "TTFT mean");
  EXPECT_EQ(timeline.regions.front().samples_ns.front(), 3'000'000);
  EXPECT_DOUBLE_EQ(timeline.regions.front().high_factor, 2);
  EXPECT_EQ(timeline.regions.back().name, "first arrival to last token");
  EXPECT_EQ(timeline.regions.back().samples_ns.front(), 4'000'000);
  EXPECT_EQ(timeline.serving->output_tokens, 3);
  EXPECT_DOUBLE_EQ(timeline.serving->waiting_share, 3.0 / 7);
}

TEST(ServingTimeline, ShowsAPreemptedRequestComputingItsPromptAgain) {
  Serving serving = small_engine();
  serving.model.layers = 1;
  serving.model.kv_heads = serving.model.head_dim = 1;
  const Timeline timeline =
      drawn(serving, served_by_one(serving, at_once({{4, 6}, {4, 6}}), 4, millisecond));
  EXPECT_EQ(spans_of(timeline, "request 1"),
            "request_prefill 0-1, request_decode 1-5, request_preempted 5-6, request_prefill 6-8");
  EXPECT_EQ(timeline.memory.front().allocated, 2 * 4 * cache_bytes(serving)) << "two blocks";
  EXPECT_EQ(timeline.memory.front().reserved, 4 * 4 * cache_bytes(serving));
  EXPECT_EQ(timeline.memory.back().allocated, 0);
  EXPECT_EQ(timeline.serving->preemptions, 1);
}

TEST(ServingTimeline, IsBoundedAndSaysSo) {
  const Serving serving = small_engine();
  std::vector<Arrival> arrivals;
  for (std::int64_t i = 0; i < 30'000; ++i) arrivals.push_back({i * 3'000'000, 4, 2});
  const Timeline timeline = drawn(serving, served_by_one(serving, arrivals, 100, millisecond));
  const auto requests = std::ranges::count(timeline.lanes, LaneKind::Request, &Lane::kind);
  EXPECT_GT(requests, kMostDrawnRequests / 2);
  EXPECT_LE(requests, kMostDrawnRequests);
  const auto iterations =
      std::ranges::count_if(timeline.spans, [](const Span& span) { return span.part == 1; });
  EXPECT_EQ(iterations, 30'000) << "60,000, two by two";
  EXPECT_EQ(timeline.serving->requests, 30'000);
  EXPECT_THAT(timeline.origin.versions.at("drawn"),
              ::testing::HasSubstr("2 neighbouring iterations are one span"));
}

TEST(ServingLimits, AreWhatDecidesTheKernelsAndTheHost) {
  Timeline iterations;
  OpRow region, kernel, sum;
  region.kind = "region";
  kernel.kind = "gemm";
  sum.kind = "nccl_all_reduce";
  iterations.ops = {region, kernel, sum};
  iterations.lanes = {{LaneKind::HostThread, 0, 0, kNoDevice, "engine"},
                      {LaneKind::Stream, 0, 0, 0, "default"}};
  SpanDetail detail;
  detail.decided_by = {{"gpu.hbm_bandwidth", -0.6}, {"gpu.bf16_flops", -0.2}, {"tiles.start", 0.2}};
  const std::uint32_t by = intern(iterations, detail);
  iterations.spans = {{1, 1, 0, 0, 500'000'000, 1, by}, {2, 1, 0, 500'000'000, 700'000'000, 1, 0}};
  RegionSamples one;
  one.samples_ns = {1'000'000'000};
  iterations.regions = {one};
  const Parts parts = parts_of(iterations).front();
  EXPECT_NEAR(parts.memory, 0.3, 1e-9);
  EXPECT_NEAR(parts.arithmetic, 0.1, 1e-9);
  EXPECT_NEAR(parts.starts, 0.1, 1e-9);
  EXPECT_NEAR(parts.links, 0.2, 1e-9);
  EXPECT_NEAR(parts.host, 0.3, 1e-9) << "what nothing runs in";
}

TEST(ServingTimeline, IsOfItsTraffic) {
  Serving serving = small_engine();
  serving.name = "chat";
  serving.traffic.arrivals = Arrivals::Trace;
  serving.traffic.trace = {{5000, 7, 3}, {std::nullopt, 8, 4}};
  EXPECT_EQ(hash_of_traffic(serving), "4b05c3ed-f33b-5834-9ec2-0a6b8f7384ed")
      << "as tests/hw/serving has it";
}

TEST(ServingReplicas, GetRequestsInTurn) {
  Serving serving = small_engine();
  serving.replicas = 2;
  const std::vector<Served> engines =
      serve({.engines = {serving, 100, millisecond}}, at_once({{1, 1}, {2, 1}, {3, 1}}));
  ASSERT_EQ(engines.size(), 2u);
  EXPECT_EQ(engines[0].requests.size(), 2u);
  EXPECT_EQ(engines[1].requests.front().prompt, 2);
}

TEST(ServingReplicas, AreChosenByLoadWhereTheRouterDoes) {
  // The first request keeps its engine busy; the third one goes to the other.
  std::vector<Arrival> arrivals{{0, 4, 9}, {0, 4, 1}, {2'500'000, 4, 1}};
  Serving serving = small_engine();
  serving.replicas = 2;
  const auto of_first = [&] {
    return serve({.engines = {serving, 100, millisecond}}, arrivals)[0].requests.size();
  };
  EXPECT_EQ(of_first(), 2u);
  serving.router = Router::LeastLoaded;
  EXPECT_EQ(of_first(), 1u);
}

TEST(ServingReplicas, AreSoonChosenAmongThousands) {
  Serving serving = small_engine();
  serving.replicas = 4096;
  serving.router = Router::LeastLoaded;
  std::vector<Arrival> arrivals;
  for (std::int64_t i = 0; i < 30'000; ++i) arrivals.push_back({i * 1000, 4, 1});
  const auto begin = std::clock();
  const std::vector<Served> engines = serve({.engines = {serving, 100, millisecond}}, arrivals);
  EXPECT_LT(std::clock() - begin, 10 * CLOCKS_PER_SEC) << "each request asked all of them: 10^8";
  std::size_t requests = 0;
  for (const Served& engine : engines) {
    requests += engine.requests.size();
    EXPECT_LE(engine.requests.size(), 1000u);
  }
  EXPECT_EQ(requests, arrivals.size());
}

TEST(ServingGroups, BeginAndEndIterationsTogether) {
  Serving serving = small_engine();
  serving.layout.data = 2;
  const auto by_tokens = [](const Batch& batch) {
    return 1e-3 * static_cast<double>(batch.tokens());
  };
  const std::vector<Served> engines =
      serve({.engines = {serving, 100, by_tokens}}, at_once({{2, 2}, {6, 2}}));
  ASSERT_EQ(engines.size(), 1u);
  EXPECT_EQ(engines[0].iterations.size(), 2u);
  EXPECT_EQ(engines[0].iterations[0].batch.chunk_tokens, 8);
  EXPECT_EQ(engines[0].requests[0].token_ns, (std::vector<std::int64_t>{6'000'000, 7'000'000}))
      << "the short prompt's group waits for the long one's";
}

TEST(ServingApart, HandsTheCacheOnWithTheFirstToken) {
  Serving serving = small_engine();
  Fleet fleet{.engines = {serving, 100, millisecond}};
  fleet.prompts = Engines{serving, 100, [](const Batch&) { return 5e-3; }};
  fleet.transfer_seconds = [](std::int64_t tokens) { return 1e-3 * static_cast<double>(tokens); };
  const std::vector<Served> engines = serve(fleet, at_once({{4, 3}}));
  ASSERT_EQ(engines.size(), 2u);
  EXPECT_TRUE(engines[0].requests.empty()) << "its last token is elsewhere";
  EXPECT_EQ(engines[0].iterations.size(), 1u);
  EXPECT_EQ(engines[1].requests[0].token_ns,
            (std::vector<std::int64_t>{5'000'000, 10'000'000, 11'000'000}))
      << "5 ms for the prompt, 4 ms for its cache, then 1 ms each";
  EXPECT_EQ(engines[1].iterations[0].batch.decode_keys, 5);
}

TEST(ServingTimeline, NumbersRequestsAsTheyArriveWhoeverAnswersThem) {
  Serving serving = small_engine();
  serving.apart = Apart{};
  Fleet fleet{.engines = {serving, 100, millisecond}};
  fleet.prompts = fleet.engines;
  fleet.transfer_seconds = [](std::int64_t) { return 1e-3; };
  Predicted predicted;
  predicted.engines = serve(fleet, at_once({{4, 1}, {4, 3}}));
  predicted.middle = predicted.fast = predicted.slow = summary_of(serving, predicted.engines);
  const Timeline timeline = timeline_of(serving, predicted, Timeline{}, 1);
  std::vector<std::string> names;
  for (const Lane& lane : timeline.lanes) {
    if (lane.kind == LaneKind::Request) names.push_back(lane.name);
  }
  EXPECT_THAT(names, ElementsAre("request 0", "request 1"));
}

TEST(ServingApart, LeavesARequestOfOneTokenWhereItsPromptIs) {
  Fleet fleet{.engines = {small_engine(), 100, millisecond}};
  fleet.prompts = fleet.engines;
  fleet.transfer_seconds = [](std::int64_t) { return 1.0; };
  const std::vector<Served> engines = serve(fleet, at_once({{4, 1}}));
  EXPECT_EQ(engines[0].requests.size(), 1u);
  EXPECT_TRUE(engines[1].requests.empty());
}

}  // namespace
}  // namespace foretrace::serving
