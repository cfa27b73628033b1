// fabric:, faults: and placement: of a scenario.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/fabric/text.h"
#include "scenarios/write/program_text.h"
#include "tests/scenarios/reading.h"

namespace foretrace::reading_test {
namespace {

using ::testing::HasSubstr;

std::string of_nodes(const std::string& keys) {
  return "schema_version: 1\nname: n\nparameters: {over: 4, way: round_robin}\nnodes: 4\n"
         "processes: 8\n" +
         keys + "\nthreads: {main: [host_barrier: {}]}\n";
}

TEST(NetworkOfAScenario, IsReadWithParametersAndWrittenAgain) {
  const Program program = read(of_nodes(
      "placement: $way\n"
      "fabric: {kind: rail_optimized, leaf: {ports: 2 * $over, latency: 500ns}, spine: "
      "{oversubscription: \"$over:1\"}}\n"
      "faults: [{node: 3, nic: 1, lost: true}, {gpu: 0, speed: 80%, jitter: 5%}, {node: 1, link: "
      "all, bandwidth: 0.5}]"));
  EXPECT_EQ(program.placement, Placement::RoundRobin);
  EXPECT_EQ(fabric_text(*program.fabric),
            "{kind: rail_optimized, leaf: {ports: 8, latency: 0.5us}, spine: {oversubscription: "
            "\"4:1\"}}");
  EXPECT_EQ(faults_text(program.faults),
            "[{node: 3, nic: 1, lost: true}, {gpu: 0, speed: 80%, jitter: 5%}, {node: 1, link: "
            "all, bandwidth: 50%}]");
  EXPECT_EQ(network_text(read(of_nodes(network_text(program)))), network_text(program));
}

TEST(NetworkOfAScenario, ReachesTheProgramOfATrainingStep) {
  const std::string text =
      "schema_version: 1\nname: n\nprocesses: 4\nfabric: fat_tree\n"
      "faults: [{gpu: 1, speed: 50%}]\ntraining_step:\n"
      "  model: {layers: 1, hidden: 256, heads: 4, ffn: 512, vocab: 512}\n"
      "  batch: {sequence: 128, micro: 1}\n";
  const Program program = read(text);
  EXPECT_EQ(program.fabric->kind, FabricKind::FatTree);
  EXPECT_EQ(program.faults.size(), 1u);
  EXPECT_TRUE(program.nodes_follow);
}

TEST(NetworkOfAScenario, MayHaveNodesBesideProcessesWithoutAValue) {
  EXPECT_THAT(problems_of("schema_version: 1\nname: n\nnodes: 3\nprocesses:\n"),
              HasSubstr("1 processes cannot be spread evenly over 3 nodes"));
}

TEST(NetworkOfAScenario, PutsProcessesOnNodesInBlocksOrInTurn) {
  Program program = read(of_nodes(""));
  EXPECT_FALSE(program.nodes_follow);
  EXPECT_EQ(node_of_process(program, 3), 1u);
  EXPECT_EQ(place_in_node(program, 3), 1u);
  const std::string blocks = program.hash;
  program = read(of_nodes("placement: round_robin"));
  EXPECT_EQ(node_of_process(program, 3), 3u);
  EXPECT_EQ(place_in_node(program, 7), 1u);
  EXPECT_NE(program.hash, blocks) << "another program is measured";
  EXPECT_EQ(read(of_nodes("fabric: none")).hash, blocks) << "the same program is measured";
}

struct Wrong {
  const char* keys;
  const char* problem;
};

class NetworkMistakes : public ::testing::TestWithParam<Wrong> {};

TEST_P(NetworkMistakes, AreToldWithTheirPlace) {
  EXPECT_THAT(problems_of(of_nodes(GetParam().keys)), HasSubstr(GetParam().problem));
}

INSTANTIATE_TEST_SUITE_P(
    All, NetworkMistakes,
    ::testing::Values(
        Wrong{"placement: robin",
              "6:12 error: unknown placement 'robin' | did you mean 'round_robin'"},
        Wrong{"fabric: {kind: fat_trees, leaf: {ports: 4}}",
              "6:16 error: unknown kind of fabric 'fat_trees' | did you mean 'fat_tree'"},
        Wrong{"fabric: {leaf: {ports: 4}}", "6:9 error: a fabric needs 'kind'"},
        Wrong{"fabric: {kind: none, spine: {oversubscription: 2}}", "unknown key 'spine'"},
        Wrong{"fabric: {kind: fat_tree, leaf: {ports: 0}}", "ports: '0' is not a count"},
        Wrong{"fabric: {kind: fat_tree, leaf: {latency: 3}}", "a time is needed here"},
        Wrong{"fabric: {kind: fat_tree, spine: {oversubscription: 1:2}}",
              "6:53 error: this is not a quantity"},
        Wrong{"fabric: {kind: fat_tree, spine: {oversubscription: $what}}",
              "unknown parameter '$what'"},
        Wrong{"faults: {node: 1}", "'faults' is a list"},
        Wrong{"faults: [{node: 1, speed: 50%}]", "a fault is of one nic, gpu, link"},
        Wrong{"faults: [{node: 1, nic: 0, gpu: 0, speed: 50%}]", "a fault is of one nic"},
        Wrong{"faults: [{node: 4, gpu: 0, speed: 50%}]",
              "6:10 error: a fault of node 4: there are 4 | nodes are numbered 0 to 3"},
        Wrong{"faults: [{nic: 0, bandwidth: 0}]", "not a share above 0 %"},
        Wrong{"faults: [{nic: 0, speed: 50%}]", "unknown key 'speed'"},
        Wrong{"faults: [{nic: 0, lost: yes}]", "'lost' is true or left out"},
        Wrong{"faults: [{nic: 0}]", "the fault needs bandwidth: 50% or lost: true"},
        Wrong{"faults: [{node: 1, leaf: 0, bandwidth: 50%}]", "a leaf is of no node"}));

}  // namespace
}  // namespace foretrace::reading_test
