// foretrace nccl-tests as a user runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr const char* kSweep = "foretrace nccl-tests all_reduce -b 8 -e 1M -f 8 --processes 8 -g 1";

TEST(NcclTestsCommand, PrintsATableThatItReadsBackWithoutAnError) {
  const Scratch scratch;
  const Ran table = scratch.run(std::string{kSweep} + " --output table.log");
  ASSERT_EQ(table.exit_code, 0) << table.err;
  const std::string text = read_file(scratch.path() / "table.log");
  EXPECT_THAT(text, HasSubstr("# nThread 1 nGpus 1 minBytes 8 maxBytes 1048576 step: 8(factor)"));
  EXPECT_THAT(text, HasSubstr("# Avg bus bandwidth    : "));
  const Ran compare = scratch.run("foretrace nccl-tests --compare table.log --tolerance 1%");
  EXPECT_EQ(compare.exit_code, 0) << compare.err;
  EXPECT_THAT(compare.out, HasSubstr("all_reduce, 8 ranks"));
  EXPECT_THAT(compare.out, HasSubstr("| below 1 MiB |"));
}

TEST(NcclTestsCommand, ExitsWithOneWhenAMeasurementIsOutOfTolerance) {
  const Scratch scratch;
  scratch.write("slow.csv", "op,ranks,size_bytes,time_us\nall_reduce,8,1024,1000000\n");
  const std::string compare = "foretrace nccl-tests --compare slow.csv";
  EXPECT_EQ(scratch.run(compare).exit_code, 0) << "nothing was asked of it";
  EXPECT_EQ(scratch.run(compare + " --tolerance 50%").exit_code, 1);
}

TEST(NcclTestsCommand, PredictsAtChunkFidelityWhatItPredictsAtFlowFidelityWithinThreePercent) {
  const Scratch scratch;
  ASSERT_EQ(scratch.run(std::string{kSweep} + " --output flow.log").exit_code, 0);
  const Ran compare =
      scratch.run("foretrace nccl-tests --compare flow.log --fidelity chunk --tolerance 3%");
  EXPECT_EQ(compare.exit_code, 0) << compare.out << compare.err;
  const Ran wrong = scratch.run(std::string{kSweep} + " --fidelity slices");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--fidelity"));
}

TEST(NcclTestsCommand, WritesCsvAndTheLoopAsAScenario) {
  const Scratch scratch;
  const Ran csv = scratch.run(std::string{kSweep} + " --format csv");
  EXPECT_EQ(csv.exit_code, 0) << csv.err;
  EXPECT_THAT(csv.out, StartsWith("op,processes,gpus_per_process,ranks,size_bytes,time_us,"
                                  "algbw_gbps,busbw_gbps,algorithm,protocol,channels,low_us,"
                                  "high_us\nall_reduce,8,1,8,8,"));
  const Ran scenario = scratch.run(std::string{kSweep} + " -n 1000 -G 2 --scenario loop.yaml");
  EXPECT_EQ(scenario.exit_code, 0) << scenario.err;
  const Ran check = scratch.run("foretrace check loop.yaml");
  EXPECT_EQ(check.exit_code, 0) << check.err;
  EXPECT_THAT(check.err, AllOf(Not(HasSubstr("error:")), Not(HasSubstr("warning:"))));
}

constexpr const char* kTableOfNcclTests =
    "# nThread 1 nGpus 8 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20\n"
    "#  Rank  0 Group  0 Pid 1 on a device  0 [0x0a] NVIDIA H100 80GB HBM3\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
    "     1048576        262144     float     sum      -1    50.00   20.97   36.70      0    50.00 "
    "  20.97   36.70      0\n";

TEST(NcclTestsCommand, ReadsStandardInputAndSaysThatTheGpuIsAnother) {
  const Scratch scratch;
  std::string log = kTableOfNcclTests;
  for (int rank = 1; rank < 8; ++rank) {
    log.insert(log.find("#       size"), "#  Rank  " + std::to_string(rank) +
                                             " Group  0 Pid 1 on a device  0 [0x0a] NVIDIA H100\n");
  }
  scratch.write("x.log", log);
  const Ran ran = scratch.run("cat x.log | foretrace nccl-tests --compare - --op-name all_reduce");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("(standard input)"));
  EXPECT_THAT(ran.err, HasSubstr("standard input: measured on 'NVIDIA H100 80GB HBM3', and machine "
                                 "'h200-nvswitch-8' has 'NVIDIA H200'"));
  EXPECT_THAT(ran.err, HasSubstr("--machine h100-efa-8, h100-nvswitch-8"));
}

TEST(NcclTestsCommand, SaysWhatAMachineFileDoesNotDescribe) {
  const Scratch scratch;
  const Ran nodes = scratch.run("foretrace nccl-tests all_reduce -b 1M --processes 16");
  EXPECT_EQ(nodes.exit_code, 0) << nodes.err;
  EXPECT_THAT(nodes.err, HasSubstr("2 nodes, and machine 'h200-nvswitch-8' describes 1"));
  scratch.write("box.yaml",
                "schema_version: 2\nname: box\nbased_on: h100-nvswitch-8\n"
                "node: {gpus: 8, gpu: NVIDIA L40S, link: pcie_switch, pcie: 4}\n");
  const Ran box = scratch.run("foretrace nccl-tests all_reduce -b 1G -g 8 --machine box.yaml");
  EXPECT_EQ(box.exit_code, 0) << box.err;
  EXPECT_THAT(box.err,
              HasSubstr("is NCCL's own price of an operation: machine 'box' has no times"));
}

TEST(SimulateCommand, RefusesATypeThatTheGpuHasNoArithmeticFor) {
  const Scratch scratch;
  scratch.write("x.yaml",
                "schema_version: 1\nname: x\nstreams: {s: {}}\n"
                "buffers: {a: {memory: device, size: 2MiB}, b: {memory: device, size: 2MiB}, "
                "c: {memory: device, size: 2MiB}}\n"
                "threads: {main: [{gemm: {stream: s, m: 1024, n: 1024, k: 1024, type: bfloat16, "
                "a: a, b: b, c: c}}, {stream_synchronize: {stream: s}}]}\n");
  const Ran old = scratch.run("foretrace simulate x.yaml --machine gtx-1050-ti");
  EXPECT_EQ(old.exit_code, 2) << old.err;
  EXPECT_THAT(old.err, HasSubstr("(compute capability 6.1) has no bfloat16 arithmetic"));
  EXPECT_EQ(scratch.run("foretrace simulate x.yaml --machine 1xV100-SXM").exit_code, 2);
  for (const char* command : {"foretrace check x.yaml --machine 1xV100-SXM",
                              "foretrace sweep x.yaml --machine 1xV100-SXM -o x.jsonl"}) {
    const Ran same = scratch.run(command);
    EXPECT_EQ(same.exit_code, 2) << command;
    EXPECT_THAT(same.err, HasSubstr("has no bfloat16 arithmetic")) << command;
  }
  const Ran now = scratch.run("foretrace simulate x.yaml --machine h200-nvswitch-8");
  EXPECT_THAT(now.err, Not(HasSubstr("bfloat16")));
}

TEST(SimulateCommand, MultipliesInEachPrecisionThatAGpuHas) {
  const Scratch scratch;
  const auto product = [&](const std::string& what, const std::string& machine) {
    scratch.write("x.yaml",
                  "schema_version: 1\nname: x\nstreams: {s: {}}\n"
                  "buffers: {a: {memory: device, size: 512MiB}, b: {memory: device, size: 512MiB}, "
                  "c: {memory: device, size: 512MiB}}\n"
                  "threads: {main: [{region: {name: step, ops: [{gemm: {stream: s, m: 8192, n: 8192, "
                  "k: 8192, transpose_a: true, " +
                      what + ", a: a, b: b, c: c}}, {stream_synchronize: {stream: s}}]}}]}\n");
    return scratch.run("foretrace simulate x.yaml --format csv --machine " + machine);
  };
  const auto time = [&](const std::string& what, const std::string& machine) {
    const Ran ran = product(what, machine);
    EXPECT_EQ(ran.exit_code, 0) << what << " " << machine << ran.err;
    const std::string row = ran.out.substr(ran.out.find('\n') + 1);
    std::vector<std::string> cells;
    for (std::size_t at = 0; at < row.size();) {
      const std::size_t end = std::min(row.find_first_of(",\n", at), row.size());
      cells.push_back(row.substr(at, end - at));
      at = end + 1;
    }
    return std::stod(cells.at(4));
  };
  for (const char* machine : {"1xH100-NVL", "1xB200"}) {
    const double half = time("type: bfloat16", machine);
    EXPECT_LT(time("type: float8_e4m3", machine), 0.75 * half) << machine;
    EXPECT_GT(time("compute: tf32", machine), 1.4 * half) << machine;
    EXPECT_GT(time("type: float32", machine), 5 * half) << machine;
  }
  EXPECT_LT(time("type: float4_e2m1", "1xB200"), 0.75 * time("type: float8_e4m3", "1xB200"));
  for (const auto& [what, machine, why] :
       {std::tuple{"type: float8_e4m3", "1xA100-SXM-80", "(compute capability 8.0) has no float8"},
        std::tuple{"type: float4_e2m1", "h100-nvswitch-8", "(compute capability 9.0) has no float4"},
        std::tuple{"type: float8_e4m3, scales: mx", "h100-nvswitch-8", "has no MX float8"},
        std::tuple{"compute: tf32", "1xV100-SXM", "(compute capability 7.0) has no TF32"}}) {
    const Ran refused = product(what, machine);
    EXPECT_EQ(refused.exit_code, 2) << what;
    EXPECT_THAT(refused.err, HasSubstr(why));
  }
}

TEST(SimulateCommand, SaysHowLongAProgramWithoutARegionTakes) {
  const Scratch scratch;
  scratch.write(
      "x.yaml",
      "schema_version: 1\nname: x\nstreams: {s: {}}\n"
      "threads: {main: [{spin: {stream: s, duration: 2ms}}, {stream_synchronize: {stream: s}}]}\n");
  const Ran ran = scratch.run("foretrace simulate x.yaml");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out,
              HasSubstr("no region; from the first call to the end of the last work: 2.0"));
  EXPECT_THAT(ran.out, HasSubstr("\non h200-nvswitch-8, the default"));
}

// A warning about a machine stands behind no file's name, and no part is more than the whole.
TEST(SimulateCommand, SaysWhatAnH100HasAndWhatIsAssumedOfIt) {
  const Scratch scratch;
  scratch.write(
      "x.yaml",
      "schema_version: 1\nname: x\nprocesses: 16\nstreams: {s: {}}\n"
      "threads: {main: [{spin: {stream: s, duration: 2ms}}, {stream_synchronize: {stream: s}}]}\n");
  const Ran own = scratch.run("foretrace simulate x.yaml --machine h100-nvswitch-8");
  EXPECT_THAT(own.err, Not(HasSubstr("gpu.sm_count"))) << "it has 132, by its own white paper";
  const Ran wide = scratch.run("foretrace simulate x.yaml --machine h200-nvswitch-8");
  EXPECT_THAT(wide.err, StartsWith("warning: 2 nodes")) << wide.err;
}

TEST(NcclTestsCommand, TakesAnEmptyDirectoryOfMachinesForNone) {
  const Scratch scratch;
  const Ran ran = scratch.run("FORETRACE_MACHINES= foretrace list machines");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("h200-nvswitch-8"));
}

TEST(ListCommand, SaysHowMachinesAreComposedAndOfWhatParts) {
  const Ran ran = Scratch{}.run("foretrace list machines");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  for (const char* const said :
       {"COUNTxGPU[@HOST][/LINK][+NETWORK[:NODES]]", "\ngpus: A100-PCIe-40, ",
        "\nlinks: ", "pcie4-switch", "\nnetworks: ", "ib-ndr", "\nhosts: ", "p5.48xlarge"}) {
    EXPECT_THAT(ran.out, HasSubstr(said));
  }
}

struct WrongCall {
  const char* what;
  const char* flags;
  const char* says;
  friend std::ostream& operator<<(std::ostream& out, const WrongCall& w) { return out << w.flags; }
};
class NcclTestsWrongUse : public testing::TestWithParam<WrongCall> {};
INSTANTIATE_TEST_SUITE_P(
    All, NcclTestsWrongUse,
    testing::Values(
        WrongCall{"UnknownOperation", "all_redcue --processes 8", "did you mean 'all_reduce'?"},
        WrongCall{"NoOperation", "", "an operation is needed"},
        WrongCall{"TooManyRanks", "all_reduce --processes 16 --nodes 1",
                  "16 ranks (16 process(es) x 1 GPU(s), on 1 node(s)) do not fit: a node of "
                  "machine 'h200-nvswitch-8' has 8 GPU(s)"},
        WrongCall{"OneRank", "all_reduce", "nobody to talk to"},
        WrongCall{"EmptyRange", "all_reduce -b 8 -e 4 --processes 8", "-b 8 is larger than -e 4"},
        WrongCall{"FactorOne", "all_reduce -b 8 -e 1G -f 1 --processes 8", "-f 1"},
        WrongCall{"LessThanAnElement", "all_reduce -b 2 --processes 8", "holds no element"},
        WrongCall{"NothingForEachRank", "alltoall -b 8 -e 64 -f 2 --processes 8", "at least 128 B"},
        WrongCall{"UnknownMachine", "all_reduce --processes 8 --machine h200-nvswitch-9",
                  "did you mean 'h200-nvswitch-8'?"},
        WrongCall{"UnknownType", "all_reduce --processes 8 -d flaot", "did you mean 'float'?"},
        WrongCall{"UnknownReduction", "all_reduce --processes 8 -o summ", "did you mean 'sum'?"},
        WrongCall{"UnknownVariable", "all_reduce --processes 8 --env NCCL_PROT=LL",
                  "did you mean 'NCCL_PROTO'?"},
        WrongCall{"TcpBetweenNodes", "all_reduce --processes 16 --env NCCL_IB_DISABLE=1",
                  "makes NCCL use TCP between nodes"},
        WrongCall{"FewerNics", "all_reduce --processes 16 --env NCCL_IB_HCA=mlx5_0",
                  "takes some of a node's NICs\n  hint: node: {nics: 1}"},
        WrongCall{"TopologyFile", "all_reduce --processes 8 --env NCCL_TOPO_FILE=topo.xml",
                  "names a file with the machine's topology, which is not read"},
        WrongCall{"Plugin", "all_reduce --processes 8 --env NCCL_TUNER_PLUGIN=x.so",
                  "a plugin is a library of its own"},
        WrongCall{"NoSuchRoot", "broadcast --processes 8 -r 8", "the ranks are 0 to 7"},
        WrongCall{"GraphOfWaits", "all_reduce --processes 8 -G 2 -z 1", "a CUDA graph"},
        WrongCall{"LargerThanTheGpu", "all_reduce --processes 8 -b 100G", "has 139.8 GiB"},
        WrongCall{"MissingFile", "--compare no_such.log", "no_such.log"},
        WrongCall{"NoTable", "--compare models/machines/h200-nvswitch-8.yaml", "no line of an"}),
    [](const auto& tested) { return std::string{tested.param.what}; });

TEST_P(NcclTestsWrongUse, ExitsWithTwoAndSaysWhy) {
  const Scratch scratch;
  const Ran ran = scratch.run(std::string{"foretrace nccl-tests "} + GetParam().flags);
  EXPECT_EQ(ran.exit_code, 2) << ran.out << ran.err;
  EXPECT_THAT(ran.err, HasSubstr(GetParam().says));
  EXPECT_THAT(ran.out, IsEmpty());
}

}  // namespace
}  // namespace foretrace::test
