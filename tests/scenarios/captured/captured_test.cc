// A record of a captured step: read, refused with its line, and written as a scenario.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "scenarios/base/text/errors.h"
#include "scenarios/captured/expand.h"
#include "scenarios/captured/kernel_name.h"
#include "scenarios/captured/record.h"
#include "scenarios/captured/work.h"
#include "scenarios/read/scenario.h"
#include "scenarios/write/program_text.h"

namespace foretrace::captured {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr const char* kHead =
    R"({"foretrace_calls":1,"torch":"2.11","depth":"emulated","rank":0,"world_size":WORLD,"host":{"torch_loop_ns":1000000},"assumptions":["one value was guessed"]})"
    "\n";
constexpr const char* kBody =
    R"x({"k":"begin","region":"step","instance":2,"t":0}
{"k":"name","i":7,"n":"void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int)"}
{"k":"sig","i":0,"n":"aten::add","in":[{"d":"bf16","s":[64,1024]},{"d":"bf16","s":[1024]},1]}
{"k":"op","i":0,"q":0,"ph":"forward"}
{"k":"launch","n":7,"g3":[64,1,1],"b3":[128,1,1],"sm":0,"t":50000,"s":0,"op":0}
{"k":"gemm","f":"cublasGemmEx","m":512,"n":64,"kk":1024,"batch":1,"ta":true,"tb":false,"a":"bf16","compute":"f32","beta":0,"t":60000,"s":0}
{"k":"gemm","f":"cublasSgemm","m":512,"n":64,"kk":1024,"batch":1,"ta":true,"tb":false,"a":"f32","compute":"tf32","beta":0,"t":60000,"s":0}
{"k":"end","region":"step","instance":2,"t":70000,"memory":{"allocated":[1,300,2],"reserved":[1,400,2],"peak_before":[350,360]},"steps_cpu_ns":[40000,41000,35000]}
)x";

class Records : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& text) {
    const auto path = std::filesystem::path{::testing::TempDir()} / name;
    std::ofstream{path} << text;
    return path;
  }
  static std::string head(int world) {
    std::string text = kHead;
    return text.replace(text.find("WORLD"), 5, std::to_string(world));
  }
  std::string refusal(const std::string& text) {
    try {
      read_record(write("refused.calls.jsonl", text));
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  }
};

/// Each would be another step's answer, a line of YAML, or all memory.
TEST_F(Records, AreRefusedWhereTheySayWhatNoGpuDoes) {
  const std::string begin = "{\"k\":\"begin\",\"region\":\"step\",\"instance\":2,\"t\":0}\n";
  const std::string comm = R"({"k":"comm","i":0,"size":2,"rank":0,"n":"w"})"
                           "\n";
  const std::string coll = R"({"k":"coll","f":"all_reduce","c":0,"n":8,"d":"f32","t":1)";
  const std::string name = R"({"k":"name","i":0,"n":"k"})"
                           "\n";
  const struct {
    std::string line, why;
  } bad[] = {
      {R"({"k":"name","i":16777215,"n":"x"})", "an id of 16777215"},
      {name +
           R"({"k":"launch","n":0,"g3":[2147483647,2147483647,2147483647],"b3":[1,1,1],"t":1,"s":0})",
       "more blocks than a GPU takes"},
      {name + R"({"k":"launch","n":0,"g3":[-1,1,1],"b3":[1,1,1],"t":1,"s":0})",
       "size is out of range"},
      {name + R"({"k":"launch","n":0,"g3":[1,1,1,1],"b3":[1,1,1],"t":1,"s":0})", "three sizes"},
      {name + R"({"k":"launch","n":0,"g3":[1,1,1],"b3":[64,64,1],"t":1,"s":0})",
       "a block of more than 1024 threads"},
      {R"({"k":"gemm","m":9223372036854775807,"n":2,"kk":2,"t":1,"s":0})", "below 2^31"},
      {R"({"k":"gemm","m":2147483647,"n":2147483647,"kk":2147483647,"t":1,"s":0})", "no GPU ends"},
      {R"({"k":"copy","dir":"h2d","n":18446744073709551615,"t":1,"s":0})", "more than 2^40"},
      {comm + coll + R"(,"root":2})", "no such rank"},
      {comm + coll + R"(,"peer":-1})", "no such rank"},
      {comm + coll + R"(,"f":"all_reduce: {}\n    - spin"})", "a collective of an unknown kind"},
      {comm + coll + R"(,"op3":"sum}\n"})", "a reduction of an unknown kind"},
      {R"({"k":"sig","i":0,"n":"x","in":[{"d":"f32","s":[1099511627776,32]}]})",
       "than any memory holds"},
      {R"({"k":"sig","i":0,"n":"x","in":[{"d":"f32}\n#","s":[8]}]})", "type is a word"},
      {R"({"k":"memset","n":1e23,"t":1,"s":0})", "a number beyond 2^53"},
      {R"({"k":"memset","n":8,"t":9223372036854775807,"s":0})", "more than 10,000 s"},
      {R"({"k":"memset","n":8,"t":900,"s":0})"
       "\n"
       R"({"k":"memset","n":8,"t":899,"s":0})",
       "times go backwards: 899 ns behind 900 ns"},
      {R"({"k":"end","region":"step","t":9,"memory":{"allocated":[1,-1,2]}})", "below 0"},
      {R"({"k":"end","region":"step","t":9,"memory":{"allocated":[1]}})",
       "not as it should be: array index 1 is out of range"}};
  for (const auto& [line, why] : bad) {
    const std::string said = refusal(head(2) + begin + line + "\n");
    EXPECT_THAT(said, HasSubstr(why)) << line;
    EXPECT_THAT(said, Not(HasSubstr("exception"))) << line;
  }
  EXPECT_THAT(refusal(head(1) + R"({"k":"begin","region":"a: {b}","t":0})"
                                "\n"),
              HasSubstr("a region's name is of letters"));
  const auto unknown =
      parse_record(head(1) +
                       R"({"k":"sig","i":7,"n":"aten::x","in":[{"d":"float8_e8m0fnu","s":[8]}]})"
                       "\n" +
                       kBody,
                   "x");
  EXPECT_THAT(unknown.assumptions,
              ::testing::Contains("elements of type 'float8_e8m0fnu' count as 4 bytes each"));
  const std::string mask =
      R"({"k":"sig","i":7,"n":"aten::where","in":[{"d":"bf16","s":[8]},-3.3895313892515355e+38,[1e300]]})"
      "\n";
  EXPECT_EQ(refusal(head(1) + mask + kBody), "accepted") << "a call's arguments are any numbers";
  std::string fast = head(1);
  fast.replace(fast.find("1000000}"), 7, "0.001");
  EXPECT_THAT(refusal(fast + kBody), HasSubstr("not between 0.1 ms and 10 s"));
}

/// Cut off to an int, each would be another number: a stream 0, a size of 2, one rank.
TEST_F(Records, AreRefusedWhereACountIsNotWholeOrDoesNotFit) {
  const std::string begin = "{\"k\":\"begin\",\"region\":\"step\",\"instance\":2,\"t\":0}\n";
  const std::string name = "{\"k\":\"name\",\"i\":0,\"n\":\"k\"}\n";
  for (const char* const line :
       {R"({"k":"memset","n":8,"t":1,"s":4294967296})", R"({"k":"memset","n":8,"t":1,"s":-1})",
        R"({"k":"memset","n":8.5,"t":1,"s":0})", R"({"k":"memset","n":8,"t":1.5,"s":0})",
        R"({"k":"memset","n":8,"t":1,"s":0,"g":4294967296})",
        R"({"k":"gemm","m":2.7,"n":2,"kk":2,"t":1,"s":0})",
        R"({"k":"gemm","m":2,"n":2,"kk":2,"batch":1.5,"t":1,"s":0})",
        R"({"k":"launch","n":0,"g3":[1.5,1,1],"b3":[1,1,1],"t":1,"s":0})",
        R"({"k":"launch","n":4294967296,"g3":[1,1,1],"b3":[1,1,1],"t":1,"s":0})",
        R"({"k":"comm","i":0,"size":1.5,"rank":0,"n":"w"})", R"({"k":"stream","i":4294967296})",
        R"({"k":"end","region":"step","t":9,"counts":{"cudaX":1.5}})",
        R"({"k":"end","region":"step","t":9,"steps_cpu_ns":[1.5]})"}) {
    EXPECT_THAT(refusal(head(1) + begin + name + line + "\n"),
                HasSubstr("is no whole number that is possible here"))
        << line;
  }
  std::string half = head(1);
  half.replace(half.find("\"rank\":0"), 8, "\"rank\":0.5");
  EXPECT_THAT(refusal(half + kBody), HasSubstr("is no whole number that is possible here"));
}

TEST(Tensors, OfAnySizesHaveACountThatFits) {
  const std::int64_t most = std::int64_t{1} << 40;
  EXPECT_EQ((Tensor{"f32", {most, most, most}, {}, false}.elements()), std::int64_t{1} << 44);
  EXPECT_EQ((Tensor{"f32", {most, most, 0}, {}, false}.elements()), 0);
  EXPECT_EQ((Tensor{"f32", {most, most}, {0, 1}, false}.different_elements()), most);
}

TEST(Work, OfAnySizesIsACountThatFits) {
  const std::int64_t most = std::int64_t{1} << 40;
  const Signature add{
      "aten::add", {{"f32", {most, 1}, {}, false}, {"f32", {1, most}, {}, false}}, false, {}};
  EXPECT_GT(work_of(add, 0).bytes, most);
  const Signature taken{
      "aten::index_select", {{"f32", {1, most}, {}, false}, {"i64", {most}, {}, false}}, false, {}};
  EXPECT_GT(work_of(taken, 0).bytes, most);
  const Tensor image{"f32", {1, 1, most, 1}, {}, false};
  Signature convolution{"aten::cudnn_convolution", {image, image}, false, {}};
  convolution.plain = {"", "", "[9223372036854775807]", "[1]", "[-9223372036854775807]"};
  EXPECT_GE(closed_work_of(convolution).flops, 0);
  const Signature injected{"aten::a: {b}\n#", {{"f32", {8}, {}, false}}, false, {}};
  EXPECT_EQ(closed_work_of(injected).shape.name, "a___b___.f32");
}

TEST_F(Records, SayEachAssumptionInOneLine) {
  std::string text = head(1);
  text.replace(text.find("one value was"), 13, "one\\nfile.yaml:1: error: was");
  const Record record = read_record(write("lines.calls.jsonl", text + kBody));
  EXPECT_THAT(record.assumptions, ElementsAre("one file.yaml:1: error: was guessed"));
}

TEST(KernelWord, IsTheFamilyAndAHashOfTheNameWithoutItsParameters) {
  const std::string word = kernel_word(
      "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
      "std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)");
  // hw/pytorch/operators/work.py makes the same of it (tests/hw/pytorch/operators_test.py)
  EXPECT_EQ(word, "vectorized_elementwise_kernel.76555a334ea34cfb");
  EXPECT_EQ(family_of(word), "vectorized_elementwise_kernel");
  EXPECT_NE(word, kernel_word("void at::native::vectorized_elementwise_kernel<2, int>(int)"));
}

TEST(Work, CountsArgumentsOnceAndTheResultAsLargeAsTheyBroadcast) {
  const Signature add{
      "aten::add", {{"bf16", {64, 1024}, {}, false}, {"bf16", {1024}, {}, false}}, false, {}};
  const Work work = work_of(add, 0);
  EXPECT_EQ(work.bytes, 2 * (64 * 1024 + 1024 + 64 * 1024));
  EXPECT_EQ(work.shape.inner, 1024U);
  EXPECT_EQ(work.shape.joined, 1024U);  // of the row
  EXPECT_EQ(work.shape.channels, 1024U);
}

TEST(Work, AnElementOfStrideZeroLiesInMemoryOnce) {
  const Signature copy{
      "aten::copy_", {{"f32", {8, 16}, {}, false}, {"f32", {8, 16}, {1, 0}, false}}, false, {}};
  EXPECT_EQ(work_of(copy, 0).bytes, 4 * (8 * 16 + 8));
}

TEST(Work, OfAttentionWithABiasIsItsArgumentsAndAResultLikeItsQueries) {
  const Tensor q{"f32", {1, 2048, 32, 64}, {}, false};
  const Tensor bias{"f32", {1, 32, 2048, 2048}, {4194304, 0, 2048, 1}, false};
  const Signature attention{"aten::_efficient_attention_forward", {q, q, q, bias}, false, {}};
  EXPECT_EQ(work_of(attention, 0).bytes, 4 * (4 * 2048 * 32 * 64 + 2048 * 2048));
}

TEST(Work, OfAttentionWithAMaskOrDropoutHasAWordOfItsOwn) {
  const Tensor q{"bf16", {2, 8, 512, 64}, {}, false};
  const Tensor bias{"bf16", {2, 1, 512, 512}, {}, false};
  const auto word = [&](bool masked, const char* drop) {
    Signature forward{"aten::_cudnn_attention_forward",
                      {q, q, q},
                      false,
                      {"", "", "", "", "", "", "512", "512", "true", drop, "false"}};
    if (masked) forward.tensors.push_back(bias);
    return closed_work_of(forward).shape.name;
  };
  EXPECT_EQ(word(false, "0.0"), "cudnn_attention_forward.bf16_64");
  EXPECT_EQ(word(true, "0.0"), "cudnn_attention_forward.bf16_64_masked");
  EXPECT_EQ(word(false, "0.1"), "cudnn_attention_forward.bf16_64_dropout");
}

TEST(Work, OfIndicesThatNoProfilerShowsIsWhatTheLaunchTakes) {
  const Signature index{
      "aten::index", {{"bf16", {2, 2048, 34, 64}, {}, false}}, false, {"", "null"}};
  EXPECT_EQ(work_of(index, 512 * 128).bytes, 2 * 512 * 128 * 4 * 2);
}

TEST(Work, OfArgumentsThatDoNotBroadcastIsThemAndAResultLikeTheFirst) {
  const Signature rows{
      "aten::take_rows", {{"f32", {64, 16}, {}, false}, {"i64", {24}, {}, false}}, false, {}};
  EXPECT_EQ(work_of(rows, 0).bytes, 2 * 4 * 64 * 16 + 8 * 24);
}

TEST(Work, OfIndexSelectIsTheWholeSliceOfEachIndex) {
  // A cache of 16 beams whose order changes: 16 heads of 512 tokens of 64 for each.
  const Signature beams{"aten::index_select",
                        {{"bf16", {16, 16, 512, 64}, {}, false}, {"i64", {16}, {}, false}},
                        false,
                        {"", "0", ""}};
  EXPECT_EQ(work_of(beams, 0).bytes, 2 * 2 * 16 * 16 * 512 * 64 + 8 * 16);
  Signature columns = beams;
  columns.plain[1] = "-2";
  EXPECT_EQ(work_of(columns, 0).bytes, 16 * (2 * 2 * 16 * 16 * 64 + 8));
}

TEST(Work, OfAConvolutionIsTwoFlopsATapAndAChannel) {
  const Signature convolution{
      "aten::cudnn_convolution",
      {{"bf16", {2, 64, 56, 56}, {}, false}, {"bf16", {128, 64, 3, 3}, {}, false}},
      false,
      {"", "", "[1, 1]", "[2, 2]", "[1, 1]", "1"}};
  const Work work = closed_work_of(convolution);
  EXPECT_EQ(work.flops, std::int64_t{2} * 2 * 28 * 28 * 128 * 64 * 9);
  EXPECT_EQ(work.shape.name, "cudnn_convolution.bf16_nchw_t9_s2_dense");
}

TEST_F(Records, BecomeOperationsWithTheHostsOwnWorkBetweenThem) {
  const auto path = write("one.calls.jsonl", head(1) + kBody);
  const Record record = read_record(path);
  EXPECT_DOUBLE_EQ(record.own_share, 0.5);  // 35 us of CPU in 70 us by the clock
  const Expansion made = expand({{{record, {0}}}, 1});
  const std::string text = scenario_text(made.program);
  EXPECT_THAT(text, HasSubstr("framework_call: {work: captured, count: 25000, loop_us: 1000}"))
      << "25 us of 1 ms";
  EXPECT_THAT(text, HasSubstr("library_kernel: {id: add, kernel: captured, size: 264192B, name: "
                              "vectorized_elementwise_kernel."));
  EXPECT_THAT(
      text,
      HasSubstr("gemm: {id: gemm, m: 512, n: 64, k: 1024, transpose_a: true, type: bfloat16"));
  EXPECT_THAT(text,
              HasSubstr("name: product.tf32_tn, grid: 512, block: 0, inner: 1024, channels: 64"));
  EXPECT_THAT(made.notes, ElementsAre("one value was guessed"));
  EXPECT_EQ(made.memory.allocated_peak, 300);
  EXPECT_EQ(made.memory.reserved_peak, 400);
  EXPECT_EQ(made.memory.first_peak, 350);
}

TEST_F(Records, AreReadBySimulateAsAnyScenario) {
  write("two.calls.jsonl", head(1) + kBody);
  const std::string scenario =
      "schema_version: 1\nname: two\nprocesses: 1\ncaptured_step: {calls: two.calls.jsonl}\n";
  const auto path = write("two.yaml", scenario);
  const auto read = read_scenario(scenario, path.string());
  ASSERT_TRUE(read.has_value());
  EXPECT_THAT(read->warnings, SizeIs(1));  // what was guessed
  ASSERT_THAT(read->program.threads, SizeIs(1));
  EXPECT_FALSE(read->program.hash.empty());
}

TEST_F(Records, OfTooFewRanksAreRefusedWhereTheyStand) {
  write("three.calls.jsonl", head(2) + kBody);
  const std::string scenario =
      "schema_version: 1\nname: three\nprocesses: 4\ncaptured_step: {calls: three.calls.jsonl}\n";
  const auto read = read_scenario(scenario, write("three.yaml", scenario).string());
  ASSERT_FALSE(read.has_value());
  EXPECT_THAT(read.error().front().message,
              HasSubstr("the record is of 2 ranks, the scenario of 4 processes"));
}

TEST_F(Records, RepeatACommunicatorOverTheRanksThatTheyStandFor) {
  const std::string comm = R"({"k":"comm","i":0,"size":2,"rank":0,"ranks":[0,2]})"
                           "\n";
  const std::string call =
      R"({"k":"coll","f":"all_reduce","n":16,"d":"bf16","op3":"sum","c":0,"t":65000,"s":0})"
      "\n";
  std::string body = kBody;
  body.insert(body.find("{\"k\":\"end\""), comm + call);
  const Record record = read_record(write("four.calls.jsonl", head(4) + body));
  const Expansion made = expand({{{record, {0, 1, 2, 3}}}, 4});
  const std::string text = scenario_text(made.program);
  EXPECT_THAT(text, HasSubstr("ranks_0_2: {members: [[0, 0], [2, 0]], init: rank}"));
  EXPECT_THAT(text, HasSubstr("ranks_1_3: {members: [[1, 0], [3, 0]], init: rank}"));
  EXPECT_THAT(text, HasSubstr("nccl_all_reduce: {id: coll, comm: ranks_1_3, send_buffer: part, "
                              "recv_buffer: own, size: 32B, type: bfloat16}"));
}

TEST_F(Records, ThatStandForOneRankKeepTheirGroupsAsTheyAre) {
  const std::string comm = R"({"k":"comm","i":0,"size":2,"rank":0,"ranks":[1,2]})"
                           "\n";
  const std::string call =
      R"({"k":"coll","f":"all_reduce","n":16,"d":"bf16","op3":"sum","c":0,"t":65000,"s":0})"
      "\n";
  std::string body = kBody;
  body.insert(body.find("{\"k\":\"end\""), comm + call);
  const Record record = read_record(write("six.calls.jsonl", head(4) + body));
  const std::string text = scenario_text(expand({{{record, {1}}}, 4}).program);
  EXPECT_THAT(text, HasSubstr("ranks_1_2: {members: [[1, 0], [2, 0]], init: rank}"));
  EXPECT_THAT(text, Not(HasSubstr("ranks_0_1")));
}

TEST_F(Records, HaveGroupsWhoseCallsBeginTogetherBehindWhatElseIsCalledInThem) {
  const std::string inside =
      R"({"k":"comm","i":0,"size":2,"rank":0,"ranks":[0,1]}
{"k":"group","end":false,"t":65000}
{"k":"coll","f":"send","n":16,"d":"bf16","peer":1,"c":0,"t":65000,"s":0}
{"k":"record","e":3,"t":65000,"s":0}
{"k":"coll","f":"recv","n":16,"d":"bf16","peer":1,"c":0,"t":65000,"s":0}
{"k":"group","end":true,"t":65000}
)";
  std::string body = kBody;
  body.insert(body.find("{\"k\":\"end\""), inside);
  const Record record = read_record(write("five.calls.jsonl", head(2) + body));
  Record other = record;
  other.rank = 1;
  const std::string text = scenario_text(expand({{{record, {0}}, {other, {1}}}, 2}).program);
  const auto event = text.find("event_record: {event: e3}"), group = text.find("nccl_group:");
  EXPECT_LT(event, group);
  EXPECT_THAT(text.substr(group), HasSubstr("- nccl_send: {id: coll, comm: world, peer: 1"));
  EXPECT_THROW(expand({{{record, {0, 1}}}, 2}), UsageError) << "one peer cannot be everybody's";
}

TEST_F(Records, ThatAreDamagedAreRefusedWithTheirLine) {
  EXPECT_THAT(refusal(""), HasSubstr("the file is empty"));
  EXPECT_THAT(refusal("{}\n"), HasSubstr(":1: error: no record of 'foretrace capture'"));
  EXPECT_THAT(refusal(head(1)), HasSubstr("no call was recorded"));
  EXPECT_THAT(refusal(head(1) + "{\"k\":\"launch\"\n"), HasSubstr(":2: error: not JSON"));
  EXPECT_THAT(refusal(head(1) + "{\"k\":\"dance\",\"t\":1}\n"),
              HasSubstr(":2: error: a call of an unknown kind 'dance'"));
  EXPECT_THAT(refusal(head(1) + R"({"k":"launch","n":3,"g3":[1,1,1],"b3":[1,1,1],"t":1})"),
              HasSubstr("no such kernel name"));
  EXPECT_THAT(refusal(head(1) + std::string(100'000, '[')), HasSubstr("nested too deeply"));
  EXPECT_THAT(refusal(head(0) + kBody), HasSubstr("rank and world_size do not fit"));
}

}  // namespace
}  // namespace foretrace::captured
