// A run out as Chakra's execution traces, and in again: the same operations, dependencies, sizes
// and time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "scenarios/interchange/chakra_nodes.h"
#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

using interchange::ChakraNode;
using interchange::NodeType;
using testing::HasSubstr;

/// From the first span's begin to the last one's end.
double ms_of(const Scratch& scratch, const std::string& run) {
  const auto timeline =
      nlohmann::json::parse(read_file(scratch.path() / run / "predicted.timeline.json"));
  std::int64_t begin = std::numeric_limits<std::int64_t>::max(), end = 0;
  for (const auto& span : timeline.at("spans")) {
    begin = std::min(begin, span.at(3).get<std::int64_t>());
    end = std::max(end, span.at(4).get<std::int64_t>());
  }
  return static_cast<double>(end - begin) * 1e-6;
}

/// What a GPU does: kind, attributes and, through calls of the host, what it waits for.
struct Work {
  NodeType type;
  std::int64_t comm_type, comm_size, peer, root;
  std::string data_type;
  std::set<std::size_t> behind;  ///< places among the rank's work
  friend bool operator==(const Work&, const Work&) = default;
};

std::vector<Work> work_of(const Scratch& scratch, const std::string& file) {
  const auto trace = interchange::read_chakra_nodes(file, read_file(scratch.path() / file));
  std::map<std::uint64_t, std::set<std::size_t>> places;  // of a node: itself, or what is before it
  std::vector<Work> all;
  for (const ChakraNode& node : trace.nodes) {
    std::set<std::size_t> behind;
    for (const std::uint64_t dep : node.data) behind.merge(std::set{places.at(dep)});
    if (node.number("is_cpu_op", 0) != 0) {
      places[node.id] = behind;
      continue;
    }
    const auto type = node.texts.find("data_type");
    const bool sends = node.type == NodeType::CommSend;
    // A kernel of the original is one of the same time.
    all.push_back({node.type, node.number("comm_type", -1), node.number("comm_size", -1),
                   node.number(sends ? "comm_dst" : "comm_src", -1), node.number("root_rank", -1),
                   type == node.texts.end() ? "" : type->second, behind});
    places[node.id] = {all.size() - 1};
  }
  // All that is before it: what one of two nodes implies may be said of either.
  for (Work& one : all) {
    std::set<std::size_t> before = one.behind;
    for (const std::size_t of : one.behind) before.merge(std::set{all[of].behind});
    one.behind = before;
  }
  return all;
}

struct RoundTrip {
  std::string scenario, machine;
  int ranks;
  double tolerance;  ///< of the time
};

void PrintTo(const RoundTrip& trip, std::ostream* out) { *out << trip.scenario; }

class Chakra : public testing::TestWithParam<RoundTrip> {};

TEST_P(Chakra, ComesBackWithItsOperationsDependenciesSizesAndTime) {
  const RoundTrip& trip = GetParam();
  const Scratch scratch;
  const std::string on = " -m " + trip.machine;
  ASSERT_EQ(
      scratch.run("foretrace simulate scenarios/" + trip.scenario + ".yaml -o run" + on).exit_code,
      0);
  const Ran out = scratch.run("foretrace export run --to chakra -o first");
  ASSERT_EQ(out.exit_code, 0) << out.err;
  const Ran in =
      scratch.run("foretrace import first/predicted/rank.*.et --scenario back.yaml" + on);
  ASSERT_EQ(in.exit_code, 0) << in.err;
  ASSERT_EQ(scratch.run("foretrace simulate back.yaml -o again" + on).exit_code, 0);
  const double first = ms_of(scratch, "run"), second = ms_of(scratch, "again");
  EXPECT_GT(first, 0);
  EXPECT_NEAR(second / first, 1, trip.tolerance) << first << " ms, " << second << " ms";
  ASSERT_EQ(scratch.run("foretrace export again --to chakra -o second").exit_code, 0);
  for (int rank = 0; rank < trip.ranks; ++rank) {
    const std::string file = "/predicted/rank." + std::to_string(rank) + ".et";
    const auto before = work_of(scratch, "first" + file), after = work_of(scratch, "second" + file);
    ASSERT_FALSE(before.empty());
    ASSERT_EQ(before.size(), after.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(before[i], after[i]) << file << ": its work " << i << ", size "
                                     << before[i].comm_size << " and " << after[i].comm_size;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shipped, Chakra,
    testing::Values(RoundTrip{"training/llama_step_fsdp", "h100-nvswitch-8", 2, 0.05},
                    RoundTrip{"training/tensor_parallel_layers", "h100-nvswitch-8", 2, 0.05},
                    RoundTrip{"training/one_forward_one_backward", "h200-nvswitch-8", 4, 0.05},
                    RoundTrip{"parallelism/communicators_by_color", "h200-nvswitch-8", 4, 0.05},
                    RoundTrip{"parallelism/copy_results_while_computing", "h200-nvswitch-8", 1,
                              0.05}),
    [](const auto& trip) {
      std::string name = trip.param.scenario;
      for (char& c : name) c = c == '/' ? '_' : c;
      return name;
    });

TEST(ChakraCommand, TellsTheRanksOfCommunicators) {
  const Scratch scratch;
  const Ran ran = scratch.run(
      "foretrace export scenarios/parallelism/communicators_by_color.yaml --to chakra -o out");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(read_file(scratch.path() / "out/predicted/comm_groups.json"),
            "{\n \"1\": [\n  0,\n  1\n ],\n \"2\": [\n  2,\n  3\n ],\n \"3\": [\n  0,\n  2\n ],\n "
            "\"4\": [\n  1,\n  3\n ]\n}\n");
  const auto work = work_of(scratch, "out/predicted/rank.3.et");
  ASSERT_EQ(work.size(), 3U);
  EXPECT_EQ(work[1].comm_type, 0);
  EXPECT_EQ(work[2].behind, (std::set<std::size_t>{0, 1}));
  EXPECT_EQ(scratch.run("foretrace import out/predicted/rank.*.et --scenario back.yaml").exit_code,
            0);
  EXPECT_THAT(read_file(scratch.path() / "back.yaml"), HasSubstr("members: [[2, 0], [3, 0]]"));
}

TEST(ChakraCommand, SaysWhichCallsOfTheHostItLeavesOut) {
  const Scratch scratch;
  const Ran ran = scratch.run(
      "foretrace export scenarios/conformance/host_alloc_cost_grows_with_size.yaml --to chakra -o "
      "out");
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.err, HasSubstr("calls that allocate, free or register memory: left out"));
}

TEST(ChakraCommand, OneTraceIsOneRank) {
  const Scratch scratch;
  ASSERT_EQ(scratch
                .run("foretrace export scenarios/examples/prefetch_two_streams.yaml --to chakra "
                     "-o out && cp out/predicted/rank.0.et one.et")
                .exit_code,
            0);
  const Ran ran = scratch.run("foretrace import one.et ./one.et --scenario two.yaml");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("one.et and ./one.et are the same trace"));
}

TEST(ChakraCommand, RefusesARunOfRequests) {
  const Scratch scratch;
  ASSERT_EQ(
      scratch.run("foretrace simulate hw/serving/traffic/llama_1b_light.yaml -o run").exit_code, 0);
  for (const std::string command : {"export run --to chakra", "assert run", "order run"}) {
    const Ran ran = scratch.run("foretrace " + command);
    EXPECT_EQ(ran.exit_code, 2) << command;
    EXPECT_THAT(ran.err, HasSubstr("a run of requests, which are no program")) << command;
  }
}

TEST(ChakraCommand, RefusesARunOfOneRankOfEachKind) {
  const Scratch scratch;
  const std::string step = "scenarios/training/llama_step_fsdp.yaml";
  ASSERT_EQ(scratch.run("foretrace simulate " + step + " --one-of-each -o run").exit_code, 0);
  const Ran ran = scratch.run("foretrace export run --to chakra -o out");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("hint: foretrace simulate without --one-of-each"));
}

}  // namespace
}  // namespace foretrace::test
