#include <gtest/gtest.h>

#include <cstdint>
#include <new>
#include <stdexcept>

#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/data_directory.h"
#include "sim/cli/commands.h"

namespace foretrace {
namespace {

void add_greet(CLI::App& app, int& exit_code) {
  CLI::App& command = add_subcommand(app, "greet", "Greets", "tool greet --name you");
  static std::string name;
  command.add_option("--name", name, "Whom");
  command.callback([&exit_code] {
    if (name == "usage") throw UsageError{"a.yaml: error: wrong\n"};
    if (name == "here") throw CannotHereError{"no GPU"};
    if (name == "disk") throw IoError{"disk full"};
    if (name == "other") throw std::runtime_error{"CUDA failed"};
    if (name == "bad") exit_code = kBadAnswer;
    if (name == "bug") FORETRACE_CHECK(1 == 2, "numbers work");
  });
}

struct Result {
  int exit_code;
  std::string out, err;
};

int run_plainly(std::vector<std::string> words, const std::vector<AddCommand>& commands) {
  words.insert(words.begin(), "/usr/bin/tool");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return run_command_line(static_cast<int>(words.size()), argv.data(), "A tool.", "1.2.3",
                          commands);
}

Result run(std::vector<std::string> words, std::vector<AddCommand> commands = {add_greet}) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int exit_code = run_plainly(std::move(words), commands);
  return {exit_code, ::testing::internal::GetCapturedStdout(),
          ::testing::internal::GetCapturedStderr()};
}

TEST(CommandLine, HelpAndVersionEndWithZero) {
  const Result help = run({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_NE(help.out.find("greet"), std::string::npos);
  const Result version = run({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_EQ(version.out, "tool 1.2.3\n");
}

TEST(CommandLine, HelpOfACommandBeginsWithAnExample) {
  const Result help = run({"greet", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_TRUE(help.out.starts_with("Example:\n  tool greet --name you\n")) << help.out;
}

TEST(CommandLine, AnUnknownCommandGetsASuggestion) {
  const Result result = run({"gret"});
  EXPECT_EQ(result.exit_code, kWrongUse);
  EXPECT_EQ(result.err,
            "error: unknown command 'gret'\n  hint: did you mean 'greet'?\n"
            "Run 'tool --help' for its flags.\n");
}

TEST(CommandLine, AnUnknownFlagGetsASuggestion) {
  const Result result = run({"greet", "--nmae=x"});
  EXPECT_EQ(result.exit_code, kWrongUse);
  EXPECT_EQ(result.err,
            "error: unknown flag '--nmae=x'\n  hint: did you mean '--name'?\n"
            "Run 'tool greet --help' for its flags.\n");
}

TEST(CommandLine, NeedsACommand) {
  const Result result = run({});
  EXPECT_EQ(result.exit_code, kWrongUse);
  EXPECT_EQ(result.err,
            "error: a command is needed\n  hint: known here: greet, completion, man\n"
            "Run 'tool --help' for its flags.\n");
}

TEST(CommandLine, FailuresBecomeExitCodes) {
  EXPECT_EQ(run({"greet", "--name", "you"}).exit_code, kDone);
  EXPECT_EQ(run({"greet", "--name", "bad"}).exit_code, kBadAnswer);
  const Result usage = run({"greet", "--name", "usage"});
  EXPECT_EQ(usage.exit_code, kWrongUse);
  EXPECT_EQ(usage.err, "a.yaml: error: wrong\n");
  const Result here = run({"greet", "--name", "here"});
  EXPECT_EQ(here.exit_code, kCannotHere);
  EXPECT_EQ(here.err, "error: no GPU\n");
  EXPECT_EQ(run({"greet", "--name", "disk"}).exit_code, kBroke);
  EXPECT_EQ(run({"greet", "--name", "other"}).exit_code, kBroke);
}

TEST(CommandLine, AFailedCheckOfOursEndsWithSeventy) {
  EXPECT_EXIT(run_plainly({"greet", "--name", "bug"}, {add_greet}),
              ::testing::ExitedWithCode(kOurBug), "internal check failed: numbers work");
}

TEST(CheckCommand, PrintsOneLineForEachGoodFile) {
  const std::string file = data_directory().string() + "/tests/scenarios/data/everything.yaml";
  const Result result = run({"check", file}, {add_check_command});
  EXPECT_EQ(result.exit_code, kDone);
  EXPECT_TRUE(
      result.out.starts_with("ok: everything, 2 processes, 2 devices each, 68 operations read, "
                             "executed "))
      << result.out;
  EXPECT_EQ(result.err, "");
}

TEST(CheckCommand, GoesOnAfterAWrongFileAndEndsWithTwo) {
  const std::string file = data_directory().string() + "/tests/scenarios/data/everything.yaml";
  const Result result = run({"check", "nowhere.yaml", file}, {add_check_command});
  EXPECT_EQ(result.exit_code, kWrongUse);
  EXPECT_TRUE(result.out.starts_with("ok: everything"));
  EXPECT_TRUE(result.err.starts_with("nowhere.yaml: error: there is no such file\n")) << result.err;
}

/// In a library's function that throws nothing, say: there the program would abort.
TEST(CommandLineDeathTest, SaysThatMemoryIsNotEnoughWhereverItIs) {
#ifdef __has_feature
#if __has_feature(address_sanitizer)
  GTEST_SKIP() << "AddressSanitizer ends what asks for more than there is";
#endif
#endif
  const auto takes_all = []() noexcept {
    volatile std::size_t most = PTRDIFF_MAX;
    ::operator delete(::operator new(most));
  };
  EXPECT_EXIT(takes_all(), testing::ExitedWithCode(kBroke), "^error: not enough memory\n$");
  const auto is_wrong = []() noexcept { return std::string{}.at(1); };
  EXPECT_DEATH(is_wrong(), "out_of_range") << "a defect stays one";
}

TEST(CheckCommand, SetsParameters) {
  const std::string file = data_directory().string() + "/tests/scenarios/data/everything.yaml";
  const Result plain = run({"check", file}, {add_check_command});
  const Result set =
      run({"check", file, "--set", "size=2MiB", "--set", "iterations=8"}, {add_check_command});
  EXPECT_EQ(set.exit_code, kDone) << set.err;
  EXPECT_NE(plain.out, set.out);
  EXPECT_EQ(run({"check", file, "--set", "size"}, {add_check_command}).err,
            "error: --set needs name=value, and this is 'size'\n");
}

TEST(CheckCommand, WritesJson) {
  const std::string file = data_directory().string() + "/tests/scenarios/data/everything.yaml";
  const Result result = run({"check", file, "--format", "json"}, {add_check_command});
  EXPECT_NE(result.out.find("\"schema_version\": 1"), std::string::npos);
  EXPECT_NE(result.out.find("\"operations\": 68"), std::string::npos);
}

}  // namespace
}  // namespace foretrace
