// Input that cannot be meant: everywhere a user can meet it the answer is exit code 2, the cause on
// stderr and nothing on stdout. What is taken but changes nothing gets a word on stderr.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;

struct Wrong {
  const char* what;
  const char* command;
  const char* says;
  friend std::ostream& operator<<(std::ostream& out, const Wrong& w) { return out << w.command; }
};

std::string name_of(const testing::TestParamInfo<Wrong>& tested) { return tested.param.what; }

/// An all_reduce on 4 GPUs with `environment`, at line 8.
std::string scenario(const std::string& environment) {
  return "# x\nschema_version: 1\nname: x\nprocesses: 4\n"
         "streams: {s: {flags: non_blocking}}\n"
         "buffers: {a: {memory: device, size: 4MiB}, b: {memory: device, size: 4MiB}}\n"
         "communicators: {world: {members: all_devices}}\n"
         "environment: {" +
         environment +
         "}\n"
         "threads:\n"
         "  main:\n"
         "    - nccl_all_reduce: {comm: world, stream: s, send_buffer: a, recv_buffer: b, "
         "type: float32, op: sum, size: 1MiB}\n"
         "    - device_synchronize: {}\n";
}

// ---- flags of nccl-tests ------------------------------------------------------------------------

class NcclTestsBadFlags : public testing::TestWithParam<Wrong> {};
INSTANTIATE_TEST_SUITE_P(
    All, NcclTestsBadFlags,
    testing::Values(
        Wrong{"NegativeFactor", "-b 8 -e 1M -f -2", "-f -2 never gets to the next size"},
        Wrong{"BrokenFactor", "-b 8 -e 1M -f 1.5", "--stepfactor = 1.5 is not a number"},
        Wrong{"ZeroFactor", "-b 8 -e 1M -f 0", "-f 0 never gets to the next size"},
        Wrong{"ZeroStep", "-b 8 -e 1M -i 0", "-i 0 never gets to the next size"},
        Wrong{"TooManySizes", "-b 8 -e 1G -i 8", "more than 10000 sizes"},
        Wrong{"ZeroSize", "-b 0", "a size must be positive"},
        Wrong{"NegativeSize", "-b -8", "'-8' is not a size"},
        Wrong{"PartOfAByte", "-b 0.3", "'0.3' is not a size"},
        Wrong{"NoNumber", "-b nan", "'nan' is not a size"},
        Wrong{"UnknownSuffix", "-b 8Q", "hint: write 512, 64K, 1.5M or 4G"},
        Wrong{"EmptyLastSize", "-b 8 -e ''", "its value is empty"},
        Wrong{"NoProcess", "--processes 0", "must be positive"},
        Wrong{"NegativeProcesses", "--processes -1", "--processes = -1 is not a number"},
        Wrong{"ProcessesPastCounting", "--processes 4294967296", "is not a number that it takes"},
        Wrong{"NoGpu", "-g 0", "must be positive"}, Wrong{"NoThread", "-t 0", "must be positive"},
        Wrong{"ProcessesTimesGpus", "-g 8 --nodes 1",
              "64 ranks (8 process(es) x 8 GPU(s), on 1 node(s)) do not fit"},
        Wrong{"RanksPastCounting", "--processes 65536 -g 65536", "4294967296 ranks"},
        Wrong{"TooFewNodes", "--nodes 1 -g 2", "hint: --nodes 2"},
        Wrong{"UnevenNodes", "--nodes 3", "cannot be spread evenly over 3 nodes"},
        Wrong{"NoIteration", "-n 0", "-n must be positive"},
        Wrong{"Blocking", "-z 4", "-z 4: it is 0, 1, 2 or 3"},
        Wrong{"Aggregated", "-m 4", "-m 4 is not predicted: several operations in one group"},
        Wrong{"OtherAverage", "-a 2", "-a 2 is not predicted"},
        Wrong{"Symmetric", "-R 2", "-R 2 is not predicted: symmetric memory"},
        Wrong{"HostTimeOnly", "-C 1", "-C 1 is not predicted"},
        Wrong{"WhereWithoutCompare", "--where gpu=H200", "--where belongs to --compare"},
        Wrong{"ToleranceWithoutCompare", "--tolerance 3%", "--tolerance belongs to --compare"},
        Wrong{"NoName", "--env =1", "it is NAME=VALUE"},
        Wrong{"NoValue", "--env NCCL_PROTO", "it is NAME=VALUE"}),
    name_of);

TEST_P(NcclTestsBadFlags, AreRefusedWithTheirCause) {
  const Scratch scratch;
  std::string flags = GetParam().command;
  if (flags.find("--processes") == std::string::npos) flags += " --processes 8";
  const Ran ran = scratch.run("foretrace nccl-tests all_reduce " + flags);
  EXPECT_EQ(ran.exit_code, 2) << ran.out;
  EXPECT_THAT(ran.err, HasSubstr(GetParam().says));
  EXPECT_THAT(ran.out, IsEmpty());
}

TEST(NcclTestsFlags, WithoutAMeaningForTheOperationGetANote) {
  const Scratch scratch;
  const Ran root = scratch.run("foretrace nccl-tests all_reduce --processes 2 -b 1M -r 1");
  EXPECT_EQ(root.exit_code, 0);
  EXPECT_THAT(root.err, HasSubstr("note: -r changes nothing: all_reduce has no root"));
  const Ran op = scratch.run("foretrace nccl-tests all_gather --processes 2 -b 1M -o max");
  EXPECT_THAT(op.err, HasSubstr("note: -o changes nothing: all_gather does not reduce"));
  const Ran harmless =
      scratch.run("foretrace nccl-tests all_reduce --processes 2 -b 1M -p 1 -T 60 -N 1 -m 1 -a 1");
  EXPECT_EQ(harmless.exit_code, 0) << harmless.err;
  EXPECT_THAT(harmless.err, MatchesRegex("note: bands: [^\n]*\n")) << "and nothing else";
}

// ---- settings, wherever they are given ----------------------------------------------------------

struct Setting {
  const char* what;
  const char* name;
  const char* value;
  const char* says;
  const char* hint;
  friend std::ostream& operator<<(std::ostream& out, const Setting& s) {
    return out << s.name << '=' << s.value;
  }
};
class BadSettings : public testing::TestWithParam<Setting> {};
INSTANTIATE_TEST_SUITE_P(
    All, BadSettings,
    testing::Values(
        Setting{"Algorithm", "NCCL_ALGO", "rign", "NCCL knows no algorithm 'rign'",
                "did you mean 'Ring'?"},
        Setting{"AlgorithmInAList", "NCCL_ALGO", "ring,foo", "no algorithm 'foo'", "known here:"},
        Setting{"NoAlgorithm", "NCCL_ALGO", "^", "'^' names no algorithm", ""},
        Setting{"Function", "NCCL_ALGO", "ring;allredcue:tree", "no function 'allredcue'",
                "did you mean 'AllReduce'?"},
        Setting{"TwoColons", "NCCL_ALGO", "allreduce:ring:tree", "more than one ':'", ""},
        Setting{"Unnamed", "NCCL_PROTO", "LL;Simple", "must name its function", ""},
        Setting{"Protocol", "NCCL_PROTO", "^LL256", "no protocol 'LL256'", "known here: LL, LL128"},
        Setting{"MinCtas", "NCCL_MIN_CTAS", "0", "NCCL takes 1 to 64", ""},
        Setting{"MaxCtas", "NCCL_MAX_CTAS", "65", "NCCL takes 1 to 64", ""},
        Setting{"Threads", "NCCL_NTHREADS", "100", "multiples of 32 from 64 to 512", ""},
        Setting{"TooManyThreads", "NCCL_NTHREADS", "1024", "from 64 to 512", ""},
        Setting{"BufferUnit", "NCCL_BUFFSIZE", "4M", "not a whole number",
                "no units here: 4 MiB is 4194304"},
        Setting{"SmallBuffer", "NCCL_BUFFSIZE", "100", "the least that NCCL takes is 4096", ""},
        Setting{"P2pDisable", "NCCL_P2P_DISABLE", "yes", "not a whole number", "0 or 1"},
        Setting{"P2pDisableTwice", "NCCL_P2P_DISABLE", "2", "NCCL takes 0 or 1", ""},
        Setting{"P2pLevel", "NCCL_P2P_LEVEL", "NLV", "not a kind of path", "did you mean 'NVL'?"},
        Setting{"P2pChunk", "NCCL_P2P_NVL_CHUNKSIZE", "1", "the least that NCCL takes is 1024", ""},
        Setting{"Nvls", "NCCL_NVLS_ENABLE", "3", "NCCL takes 0 to 2", ""},
        Setting{"Unavailable", "NCCL_ALGO", "nvls", "NCCL would refuse it", "no NVLS here"}),
    [](const auto& tested) { return std::string{tested.param.what}; });

TEST_P(BadSettings, AreRefusedByEveryCommand) {
  const Setting& set = GetParam();
  const Scratch scratch;
  const std::string env = std::string{" --env '"} + set.name + "=" + set.value + "'";
  for (const std::string command : {"foretrace nccl-tests all_reduce --processes 4 -b 1M",
                                    "foretrace nccl-explain all_reduce 1M --ranks 4"}) {
    const Ran ran = scratch.run(command + env);
    EXPECT_EQ(ran.exit_code, 2) << command << ran.out;
    EXPECT_THAT(ran.err, AllOf(HasSubstr(set.says), HasSubstr(set.hint))) << command;
    EXPECT_THAT(ran.out, IsEmpty());
  }
  scratch.write("x.yaml", scenario(std::string{set.name} + ": '" + set.value + "'"));
  const Ran run = scratch.run("foretrace simulate x.yaml --machine h200-nvswitch-8 -o run");
  EXPECT_EQ(run.exit_code, 2) << run.out;
  EXPECT_THAT(run.err, AllOf(HasSubstr(set.says), HasSubstr(set.hint), HasSubstr("    ^\n")));
  EXPECT_FALSE(std::filesystem::exists(scratch.path() / "run"));
  // What depends on the machine stands at the operation; the rest at the value, and in `check`.
  const bool on_machine = std::string{set.what} == "Unavailable";
  EXPECT_THAT(run.err, HasSubstr(on_machine ? "x.yaml:11:7: error" : "x.yaml:8:"));
  EXPECT_EQ(scratch.run("foretrace check x.yaml").exit_code, on_machine ? 0 : 2);
}

TEST(Settings, ThatContradictEachOtherAreRefused) {
  const Scratch scratch;
  scratch.write("x.yaml", scenario("NCCL_MIN_CTAS: 8, NCCL_MAX_CTAS: 4"));
  const Ran ran = scratch.run("foretrace check x.yaml");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("x.yaml:8:30: error: NCCL_MIN_CTAS=8 is more than "
                                 "NCCL_MAX_CTAS=4"));
}

TEST(Settings, ThatNobodyKnowsAreRefusedWithASuggestion) {
  const Scratch scratch;
  scratch.write("x.yaml", scenario("NCCL_PROT: LL"));
  const Ran ran = scratch.run("foretrace simulate x.yaml");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("x.yaml:8:15: error: 'NCCL_PROT' is not among"),
                             HasSubstr("did you mean 'NCCL_PROTO'?")));
}

TEST(Settings, ThatThePredictionDoesNotFollowGetAWarning) {
  const Scratch scratch;
  scratch.write("x.yaml", scenario("NCCL_SHM_DISABLE: 1, NCCL_PROTO: LL, CUDA_LAUNCH_BLOCKING: 1"));
  const Ran ran = scratch.run("foretrace simulate x.yaml");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.err,
              AllOf(HasSubstr("x.yaml:8:15: warning: NCCL_SHM_DISABLE=1 is not modelled"),
                    Not(HasSubstr("warning: NCCL_PROTO")), Not(HasSubstr("warning: CUDA"))));
  EXPECT_THAT(scratch.run("foretrace check x.yaml").err, IsEmpty()) << "real GPUs follow it";
  EXPECT_THAT(scratch.run("foretrace sweep x.yaml -o x.jsonl").err,
              HasSubstr("x.yaml:8:15: warning: NCCL_SHM_DISABLE=1 is not modelled"));
  const Ran tests =
      scratch.run("foretrace nccl-tests all_reduce --processes 4 -b 1M --env NCCL_SHM_DISABLE=1");
  EXPECT_EQ(tests.exit_code, 0);
  EXPECT_THAT(tests.err, HasSubstr("warning: NCCL_SHM_DISABLE=1 is not modelled"));
  const Ran explain = scratch.run("foretrace nccl-explain all_reduce 1M --env NCCL_SHM_DISABLE=1");
  EXPECT_EQ(explain.exit_code, 0);
  EXPECT_THAT(explain.err, HasSubstr("note: NCCL_SHM_DISABLE is no setting by which"));
}

TEST(Settings, MayHoldNcclsLists) {
  const Scratch scratch;
  scratch.write("x.yaml", scenario("NCCL_ALGO: 'ring,tree;broadcast:ring', NCCL_PROTO: ^LL128"));
  const Ran ran = scratch.run("foretrace simulate x.yaml");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.err, IsEmpty());
}

// ---- other commands -----------------------------------------------------------------------------

class BadUse : public testing::TestWithParam<Wrong> {};
INSTANTIATE_TEST_SUITE_P(
    All, BadUse,
    testing::Values(
        Wrong{"ExplainWithoutSize", "nccl-explain all_reduce", "all_reduce: a size is needed"},
        Wrong{"ExplainNothing", "nccl-explain", "calls is required"},
        Wrong{"ExplainOperation", "nccl-explain all_redcue 1M", "did you mean 'all_reduce'?"},
        Wrong{"ExplainNoRank", "nccl-explain all_reduce 1M --ranks 0", "--processes 0"},
        Wrong{"ExplainNegativeRanks", "nccl-explain all_reduce 1M --ranks -2", "--ranks = -2"},
        Wrong{"ExplainTooManyRanks", "nccl-explain all_reduce 1M --ranks 9 --nodes 1",
              "has 8 GPUs a node"},
        Wrong{"ExplainUnevenNodes", "nccl-explain all_reduce 1M --ranks 9",
              "9 ranks cannot be spread evenly over 2 nodes"},
        Wrong{"ExplainHalfAnElement", "nccl-explain all_reduce 6", "a multiple of 4 bytes"},
        Wrong{"ExplainNoPartForEach", "nccl-explain all_to_all 1M --ranks 3",
              "a multiple of 12 bytes"},
        Wrong{"ExplainNoPartInAGroup", "nccl-explain all_reduce 1M all_gather 1M --ranks 3",
              "a multiple of 12 bytes"},
        Wrong{"ExplainNoName", "nccl-explain all_reduce 1M --env =1", "it is NAME=VALUE"},
        Wrong{"ExplainManyProducts", "explain-kernel gemm 64x64x64 --batch 18446744073709551616",
              "--batch"},
        Wrong{"PlanOfNoCost", "plan gpt2 --gpus 2 --cost-per-gpu-hour nan",
              "--cost-per-gpu-hour nan: more than 0"},
        Wrong{"SetNothing", "simulate scenarios/nccl/all_reduce.yaml --set", "NAME=VALUE missing"},
        Wrong{"SetNoValue", "simulate scenarios/nccl/all_reduce.yaml --set ranks",
              "--set needs name=value, and this is 'ranks'"},
        Wrong{"SetUnknown", "simulate scenarios/nccl/all_reduce.yaml --set rank=2",
              "the scenario has no parameter 'rank'\n  hint: did you mean 'ranks'?"},
        Wrong{"SetEmpty", "simulate scenarios/nccl/all_reduce.yaml --set ranks=", "--set ranks="},
        Wrong{"SetUnit", "simulate scenarios/nccl/all_reduce.yaml --set ranks=2us", "ranks"},
        Wrong{"SetNegative", "check scenarios/nccl/all_reduce.yaml --set ranks=-1", "-1"},
        Wrong{"WithUnknown", "simulate scenarios/nccl/all_reduce.yaml --with nvlnk=0.5x",
              "--with nvlnk=0.5x: 'nvlnk' is nothing that can be changed\n  hint: did you mean "
              "'nvlink'?"},
        Wrong{"WithNoUnit", "nccl-tests all_reduce --processes 8 --with nvlink=3", "expected"},
        Wrong{"MistypedFidelity", "simulate x.yaml --fidelity flwo",
              "--fidelity: 'flwo' is none of flow, chunk\n  hint: did you mean 'flow'?"},
        Wrong{"MistypedFormat", "explain . --format jsn", "did you mean 'json'?"},
        Wrong{"MistypedList", "list machinse", "did you mean 'machines'?"},
        Wrong{"MistypedPage", "man nonsense", "hint: foretrace --help lists them"},
        Wrong{"MistypedKeep", "plan gpt2 --gpus 8 --keep tensr=1", "did you mean 'tensor'?"},
        Wrong{"MistypedModel", "plan llama3-70 --gpus 8",
              "error: unknown model 'llama3-70'\n  hint: did you mean 'llama3-70b'?"},
        Wrong{"MissingModel", "plan nowhere.json --gpus 8", "nowhere.json: there is no such"},
        Wrong{"EmptyNodes", "simulate scenarios/nccl/all_reduce.yaml --nodes ''",
              "--nodes: its value is empty"},
        Wrong{"EmptyPicture", "report run --svg ''", "--svg: its value is empty"},
        Wrong{"NegativeUntil", "report run --svg x.svg --svg-until=-5us",
              "--svg-until: a time of more than 0 is needed"},
        Wrong{"SetTooMany", "simulate scenarios/nccl/all_reduce.yaml --set ranks=9 --nodes 1",
              "needs 1 node(s) with 9 GPU(s) each"}),
    name_of);

TEST_P(BadUse, IsRefusedWithItsCause) {
  const Scratch scratch;
  const Ran ran = scratch.run(std::string{"foretrace "} + GetParam().command);
  EXPECT_EQ(ran.exit_code, 2) << ran.out;
  EXPECT_THAT(ran.err, HasSubstr(GetParam().says));
  EXPECT_THAT(ran.err, Not(HasSubstr("hint: \n")));
  EXPECT_THAT(ran.out, IsEmpty());
}

TEST(Numbers, ThatBeginWithAZeroAreDecimal) {
  const Scratch scratch;
  const auto ten = scratch.run("foretrace nccl-tests all_reduce -b 1M --processes 10");
  EXPECT_EQ(scratch.run("foretrace nccl-tests all_reduce -b 1M --processes 010").out, ten.out);
  EXPECT_THAT(ten.out, HasSubstr("Rank  9"));
}

TEST(Values, ThatAreWrittenInTheWrongWordsGetTheRightOne) {
  const Scratch scratch;
  scratch.write("x.yaml",
                "schema_version: 1\nname: x\nparameters:\n  n: mim(4, 3)\n"
                "streams: {s: {flags: non_blocking}}\nthreads:\n  main:\n"
                "    - spin: {stream: s, duration: 5 msec}\n");
  const Ran ran = scratch.run("foretrace check x.yaml");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("x.yaml:4:6: error: unknown function 'mim'"));
  EXPECT_THAT(ran.err, HasSubstr("hint: did you mean 'min'?"));
  EXPECT_THAT(ran.err, HasSubstr("x.yaml:8:37: error: unknown unit 'msec'"));
  EXPECT_THAT(ran.err, HasSubstr("hint: did you mean 'ms'?"));
}

TEST(Values, OfABrokenParameterAreNoFurtherErrors) {
  const Scratch scratch;
  scratch.write("x.yaml",
                "schema_version: 1\nname: x\nparameters: {a: $b, c: $a * 2}\n"
                "streams: {s: {flags: non_blocking, count: $a}}\nthreads:\n  main:\n"
                "    - spin: {stream: s(3), duration: 1us * $c}\n");
  const Ran ran = scratch.run("foretrace check x.yaml");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("x.yaml:3:17: error: unknown parameter '$b'"));
  EXPECT_EQ(ran.err.find("error:"), ran.err.rfind("error:")) << ran.err;
}

TEST(EmptyFile, IsRefusedAtItsBeginning) {
  const Scratch scratch;
  scratch.write("x.yaml", "");
  const Ran ran = scratch.run("foretrace check x.yaml");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("x.yaml:1:1: error: the file holds no scenario"));
}

TEST(Names, ThatWouldLeaveTheDirectoryOfResultsAreRefused) {
  const Scratch scratch;
  scratch.write("x.yaml", "schema_version: 1\nname: ..\nthreads: {main: []}\n");
  const Ran ran = scratch.run("foretrace check x.yaml");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("x.yaml:2:7: error: '..' names a directory"));
}

TEST(BadMachine, WithoutAParameterThatIsNeededIsNamed) {
  const Scratch scratch;
  scratch.write(
      "bare.yaml",
      "schema_version: 2\nname: bare\nnode: {gpu: NVIDIA H200, gpus: 8}\nparameters: {}\n");
  scratch.write("x.yaml", scenario(""));
  for (const char* command :
       {"foretrace simulate x.yaml --machine bare.yaml",
        "foretrace nccl-tests all_reduce --processes 4 -b 1M --machine bare.yaml"}) {
    const Ran ran = scratch.run(command);
    EXPECT_EQ(ran.exit_code, 2) << command << ran.out;
    EXPECT_THAT(ran.err, HasSubstr("machine 'bare' has no parameter '")) << command;
    EXPECT_THAT(ran.out, IsEmpty());
  }
}

}  // namespace
}  // namespace foretrace::test
