#include "sim/applications/local_page/question.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sim/applications/local_page/problem.h"

namespace foretrace::local_page {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kAsked =
    R"({"page": "p1", "model": "llama3-8b", "machine": "8xB200+ib-ndr:64", "gpus": [8, 16])";

Problem problem_of_body(const std::string& body) {
  const auto question = read_plan_question(body);
  EXPECT_FALSE(question.has_value()) << body;
  return question ? Problem{} : question.error();
}

Problem problem_with(const std::string& more) { return problem_of_body(kAsked + more); }

TEST(LocalPageQuestion, BecomesArgumentsOfPlan) {
  const auto question = read_plan_question(
      kAsked + R"(, "global_batch": 128, "with": ["nic=0.5x"], "precision": "float8", "top": 5})");
  ASSERT_TRUE(question.has_value()) << question.error().message;
  EXPECT_THAT(question->arguments,
              ElementsAre("plan", "llama3-8b", "--format=json", "--machine=8xB200+ib-ndr:64",
                          "--global-batch=128", "--gpus=8,16", "--precision=float8", "--top=5",
                          "--with=nic=0.5x"));
  EXPECT_THAT(question->with, ElementsAre("--with=nic=0.5x"));
}

TEST(LocalPageQuestion, OfAConfigReadsTheFileBesideTheCommand) {
  const auto question = read_plan_question(
      R"({"page": "p", "config": "{}", "machine": "h100-nvswitch-8", "gpus": 8, "coarse": true})");
  ASSERT_TRUE(question.has_value()) << question.error().message;
  EXPECT_EQ(question->arguments[1], "config.json");
  EXPECT_THAT(question->arguments, Contains("--coarse"));
  EXPECT_EQ(question->config, "{}");
}

TEST(LocalPageQuestion, NamesNoFilesAndNoFlags) {
  for (const char* name :
       {"/etc/passwd", "../x", "a/../b", "x.yaml", "8x/tmp/x.yaml+ib", "x.yml", "config.json",
        "--help", "-o", ".hidden", "a b", "a\\u0000b", "a\\nb", "~root", "", "$(id)", "a;b"}) {
    const auto machine =
        read_plan_question(R"({"page": "p", "model": "llama3-8b", "gpus": 8, "machine": ")" +
                           std::string{name} + "\"}");
    ASSERT_FALSE(machine.has_value()) << name;
    EXPECT_EQ(machine.error().field, "machine") << name;
    const auto model =
        read_plan_question(R"({"page": "p", "machine": "h100-nvswitch-8", "gpus": 8, "model": ")" +
                           std::string{name} + "\"}");
    ASSERT_FALSE(model.has_value()) << name;
    EXPECT_EQ(model.error().field, "model") << name;
  }
}

TEST(LocalPageQuestion, SaysWhichInputIsWrong) {
  EXPECT_EQ(problem_with(R"(, "global_batch": 0})").field, "global_batch");
  EXPECT_EQ(problem_with(R"(, "global_batch": 1.5})").field, "global_batch");
  EXPECT_EQ(problem_with(R"(, "global_batch": 1e300})").field, "global_batch");
  EXPECT_EQ(problem_with(R"(, "global_batch": null})").field, "global_batch");
  EXPECT_EQ(problem_of_body(R"({"page": "p", "gpus": []})").field, "gpus");
  EXPECT_EQ(problem_with(R"(, "with": "nic=2x"})").field, "with");
  EXPECT_EQ(problem_with(R"(, "with": ["a\nb"]})").field, "with");
  EXPECT_EQ(problem_with(R"(, "with": ["nic=2x", "host=/home/me/host.yaml"]})").field, "with");
  EXPECT_EQ(problem_with(R"(, "with": ["host = host.yaml "]})").field, "with");
  EXPECT_THAT(problem_with(R"(, "page": "other"})").message, HasSubstr("'page' is there twice"));
  EXPECT_EQ(problem_with(R"(, "config": "{}"})").field, "model");  // both
  EXPECT_EQ(problem_with(R"(, "cost_per_gpu_hour": "2"})").field, "cost_per_gpu_hour");
  EXPECT_EQ(problem_of_body(R"({"page": "<b>"})").field, "page");
}

TEST(LocalPageQuestion, SaysWhereItIsNoJson) {
  const auto question = read_plan_question("{\"page\": \"p\",\n  \"gpus\": }");
  ASSERT_FALSE(question.has_value());
  EXPECT_EQ(question.error().line, 2);
  EXPECT_EQ(question.error().column, 11);
}

TEST(LocalPageQuestion, TakesNoNumberThatIsTooLargeToRead) {
  EXPECT_THAT(problem_with(", \"top\": 1e999}").message, HasSubstr("too large"));
}

TEST(LocalPageQuestion, SuggestsTheKeyThatWasMeant) {
  const Problem problem = problem_with(R"(, "gpuss": 8})");
  EXPECT_THAT(problem.message, HasSubstr("gpuss"));
  EXPECT_THAT(problem.hint, HasSubstr("gpus"));
}

TEST(LocalPageQuestion, OfARowHasNumbersAlone) {
  EXPECT_TRUE(read_row_question(R"({"page": "p", "plan": 3, "row": 1})").has_value());
  for (const char* body : {"", "[]", "{}", R"({"page": "p", "plan": "../3", "row": 1})",
                           R"({"page": "p", "plan": 3, "row": 0})",
                           R"({"page": "p", "plan": 3, "row": 1, "file": "x"})"}) {
    EXPECT_FALSE(read_row_question(body).has_value()) << body;
  }
}

TEST(LocalPageProblem, StandsBesideItsInput) {
  const Problem machine = problem_of(
      "note: x\nerror: machine: unknown network 'foo'\n  8xB300+foo\n         ^\n  hint: efa1\n",
      "");
  EXPECT_EQ(machine.field, "machine");
  EXPECT_EQ(machine.message, "machine: unknown network 'foo'");
  EXPECT_EQ(machine.hint, "efa1");
  EXPECT_EQ(problem_of("error: --gpus: Value 0 not in range\nRun 'x' for its flags.\n", "").field,
            "gpus");
  EXPECT_EQ(problem_of("", "").message, "it ended without an answer");
}

TEST(LocalPageProblem, NamesTheLineOfTheConfig) {
  const Problem key = problem_of(
      "config.json:6:19: error: config.json: 'hidden_size' is \"x\": a whole number is needed\n",
      "{\n  \"model_type\": \"llama\",\n  \"hidden_size\": \"x\"}");
  EXPECT_EQ(key.field, "config");
  EXPECT_EQ(key.message, "'hidden_size' is \"x\": a whole number is needed");
  EXPECT_EQ(key.line, 3);
  EXPECT_EQ(key.column, 3);
  const Problem end = problem_of(
      "config.json:6:19: error: config.json: parse error at line 4, column 7: syntax error\n", "");
  EXPECT_EQ(end.line, 4);
  EXPECT_EQ(end.column, 7);
}

TEST(LocalPageProblem, IsJsonWhateverTheTextIs) {
  const std::string json = json_of({.field = "", .message = "\xff<script>\"\n", .hint = ""});
  EXPECT_THAT(json, HasSubstr(R"(<script>\"\n)"));
}

}  // namespace
}  // namespace foretrace::local_page
