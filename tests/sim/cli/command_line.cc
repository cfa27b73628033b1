#include "tests/sim/cli/command_line.h"

#include <gtest/gtest.h>

#include "scenarios/base/command_line/command.h"

namespace foretrace::test {

CommandRun run_command(void (*add)(CLI::App&, int&), const std::vector<std::string>& arguments) {
  std::vector<std::string> words{"foretrace"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  CommandRun ran;
  ran.exit_code =
      run_command_line(static_cast<int>(words.size()), argv.data(), "a test", "0", {add});
  std::fflush(nullptr);
  ran.out = testing::internal::GetCapturedStdout();
  ran.err = testing::internal::GetCapturedStderr();
  return ran;
}

}  // namespace foretrace::test
