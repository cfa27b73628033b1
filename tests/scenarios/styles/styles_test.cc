// Steps in other people's code: equal, call by call, to captures that nothing was learned from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "scenarios/read/scenario.h"
#include "scenarios/styles/formula.h"
#include "scenarios/styles/lists.h"
#include "scenarios/styles/style.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/packed_file.h"
#include "scenarios/write/program_text.h"

namespace foretrace::styles {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

TEST(StyleFormula, IsAProductOfSizesRoundedUp) {
  const Sizes sizes{{"B", 2}, {"S", 1000}, {"H", 4096}};
  const Formulas formulas{Json::parse(R"([{"p": {"B": 1, "S": 1}, "d": 512},
                                          {"p": {"S": 1}, "plus": 1},
                                          {"p": {"B": 1, "S": 1}, "and": {"B": 1}, "d": 1024},
                                          {"p": {"B": 1, "S": 1}, "d": 16, "power2": true, "most": 512},
                                          {"p": {"B": 1, "S": 1}, "d": 1, "most": 270336, "most_by": {"H": 1}},
                                          {"by": {"S": 1}, "steps": [[999, "few"], [null, "many"]]},
                                          {"p": {"H": 1, "S": -1}, "c": 1000},
                                          {"p": {"H": 1}, "d": 300, "times": 32},
                                          {"by": {"B": 1, "S": 1}, "multiple_of": 256, "is": "whole", "else": "not"}])"),
                          sizes};
  EXPECT_EQ(formulas.number("=0"), 4);  // 2000 / 512
  EXPECT_EQ(formulas.number("=1"), 1001);
  EXPECT_EQ(formulas.number("=2"), 2);    // 2002 / 1024
  EXPECT_EQ(formulas.number("=3"), 128);  // 125, and the next power of two
  EXPECT_EQ(formulas.number("=4"), 66);   // 270336 / 4096
  EXPECT_EQ(formulas.filled(Json{{"n", "=5"}, {"s", {"=1", 3}}}),
            (Json{{"n", "many"}, {"s", {1001, 3}}}));
  EXPECT_EQ(formulas.number("=6"), 4096);
  EXPECT_EQ(formulas.number("=7"), 448);  // 14 times 32
  EXPECT_EQ(formulas.filled("=8"), "not");
}

TEST(StyleLists, ALaunchIsFullByTensorsOrByBlocks) {
  EXPECT_THAT(launches_over({2, 320, 100}, {50, 250, 10}), ElementsAre(4, 1));
  // 400 chunks: 320, and the tensor's rest counts as one of the next launch's two tensors.
  EXPECT_THAT(launches_over({2, 320, 1}, {400, 5, 5}), ElementsAre(320, 85, 5));
  EXPECT_THAT(launches_over({128, 0, 1}, std::vector<std::int64_t>(300, 1)),
              ElementsAre(128, 128, 44));
}

TEST(StyleLists, TensorsBeyondTwoGibibytesAreHalved) {
  EXPECT_EQ(pieces_of(std::int64_t{1} << 28, 4), 1);
  EXPECT_EQ(pieces_of(std::int64_t{1} << 29, 4), 2);
  EXPECT_EQ(pieces_of(std::int64_t{1} << 30, 4), 4);
}

std::vector<std::string> calls_of(const std::string& text) {
  std::vector<std::string> calls;
  for (std::size_t at = text.find("- region:"); at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    line.erase(0, line.find_first_not_of(' '));
    if (!line.starts_with("- ") || line.starts_with("- region") || line.starts_with("- repeat"))
      continue;
    if (line.starts_with("- framework_call") || line.starts_with("- device_synchronize")) continue;
    calls.push_back(std::move(line));
  }
  return calls;
}

TEST(Style, WithoutOneTheAnswerSaysHowFarOtherCodeWas) {
  EXPECT_THAT(
      own_code_note(),
      HasSubstr(
          "49 steps of other people's code took longer than they predict: 22 % in the median"));
}

class Golden : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(Golden, TheStepsCallsAreThoseOfTheCapture) {
  const Json golden = Json::parse(read_packed_text_file(GetParam(), std::size_t{64} << 20));
  const auto directory = std::filesystem::path{::testing::TempDir()} / GetParam().stem().stem();
  std::filesystem::create_directories(directory);
  const auto name = GetParam().stem().stem().string();
  std::ofstream{directory / (name + ".json")} << golden.at("config").dump();
  const auto step = read_captured(golden.at("description").get<std::string>(),
                                  (directory / (name + ".yaml")).string());
  ASSERT_TRUE(step);
  const std::vector<std::string> made = calls_of(scenario_text(step->expansion.program));
  const auto captured = golden.at("calls").get<std::vector<std::string>>();
  ASSERT_EQ(made.size(), captured.size());
  std::size_t equal = 0;
  for (std::size_t i = 0; i < made.size(); ++i) equal += made[i] == captured[i] ? 1 : 0;
  EXPECT_GE(equal, golden.at("equal").get<std::size_t>());
  const auto allocated = golden.at("allocated").get<double>();
  EXPECT_LT(std::abs(static_cast<double>(step->expansion.memory.allocated_peak) / allocated - 1),
            0.01);
}

std::vector<std::filesystem::path> goldens() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator{FORETRACE_STYLE_GOLDENS})
    files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

INSTANTIATE_TEST_SUITE_P(Styles, Golden, ::testing::ValuesIn(goldens()),
                         [](const auto& info) { return info.param.stem().stem().string(); });

std::string refusal(
    const std::string& with,
    const std::string& model = "{layers: 4, hidden: 2048, heads: 16, ffn: 5632, vocab: 32000}") {
  const auto read =
      read_scenario("schema_version: 1\nname: a\nprocesses: 2\ntraining_step:\n  model: " + model +
                        "\n  batch: {sequence: 1024}\n" + with,
                    "a.yaml");
  std::string all;
  if (!read) {
    for (const Diagnostic& one : read.error())
      all += std::to_string(one.at.line) + ":" + std::to_string(one.at.column) + " " + one.message +
             " | " + one.hint + "\n";
  }
  return all;
}

TEST(Style, AnUnknownOneIsRefusedWithThoseThatThereAre) {
  EXPECT_THAT(refusal("  code: hugingface\n"), HasSubstr("7:9 unknown code 'hugingface'"));
  EXPECT_THAT(refusal("  code: hugingface\n"), HasSubstr("did you mean 'huggingface'?"));
}

TEST(Style, AnActivationThatNoTemplateHasIsRefused) {
  const auto gpt2 = [](const std::string& activation) {
    const auto file = std::filesystem::path{::testing::TempDir()} / "gpt2_activation.json";
    std::ofstream{file} << R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12,
                               "attn_pdrop": 0, "resid_pdrop": 0, "embd_pdrop": 0,
                               "activation_function": ")"
                        << activation << R"("})";
    const auto read = read_scenario(
        "schema_version: 1\nname: a\nprocesses: 1\ntraining_step:\n  model: {config: " +
            file.string() + "}\n  code: huggingface\n  batch: {sequence: 1024}\n",
        "a.yaml");
    return read ? std::string{} : read.error().front().message;
  };
  EXPECT_THAT(gpt2("relu"), HasSubstr("with 'activation: \"gelu_new\"'; this one has \"relu\""));
  EXPECT_EQ(gpt2("gelu_new"), "");
}

TEST(Style, WhatNoTemplateHasIsRefusedByItsName) {
  const std::string tensor = refusal("  code: huggingface\n  parallel: {tensor: 2}\n");
  EXPECT_THAT(tensor, HasSubstr("8:22 'code: huggingface' has no 'tensor' parallelism"));
  EXPECT_THAT(refusal("  code: huggingface\n"),
              HasSubstr("'code: huggingface' has one GPU's step"));
  EXPECT_THAT(refusal("  code: huggingface\n",
                      "{layers: 4, hidden: 2048, heads: 16, ffn: 5632, vocab: 32000, tied: true}"),
              HasSubstr("models of the family 'llama' with 'tied: false'; this one has true"));
  EXPECT_THAT(refusal("  clip_gradients: true\n"),
              HasSubstr("clipping is expanded in other people's code only"));
}

}  // namespace
}  // namespace foretrace::styles
