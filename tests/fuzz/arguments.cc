#include <CLI/CLI.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "scenarios/base/text/errors.h"
#include "sim/applications/fit/data.h"
#include "sim/applications/nccl_tests/op.h"
#include "sim/cli/commands.h"
#include "sim/cli/options.h"
#include "tests/fuzz/readers.h"

namespace foretrace::fuzz {
namespace {

struct Parsed {};

/// Made once: it takes a hundred times as long as to parse.
CLI::App& all_commands() {
  static int exit_code = 0;
  static CLI::App app{"fuzz", "foretrace"};
  for (const auto add : kCommands) add(app, exit_code);
  app.parse_complete_callback([] { throw Parsed{}; });  // before any command runs
  return app;
}

}  // namespace

void read_as_arguments(std::string_view bytes) {
  std::vector<std::string> words{"foretrace"};
  std::istringstream lines{std::string{bytes}};
  for (std::string line; std::getline(lines, line);)
    words.push_back(line.substr(0, line.find('\0')));
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  static CLI::App& app = all_commands();
  try {
    app.parse(static_cast<int>(argv.size()), argv.data());
  } catch (const Parsed&) {
  } catch (const CLI::Error&) {
  } catch (const UsageError&) {
  }
  for (const std::string& word : words) {
    for (const auto& parse : {+[](const std::string& w) { parse_percent(w, "--tolerance"); },
                              +[](const std::string& w) { parse_nccl_tests_size(w, "-b"); },
                              +[](const std::string& w) { parse_hold_out({w}); }}) {
      try {
        parse(word);
      } catch (const UsageError&) {
      }
    }
  }
}

}  // namespace foretrace::fuzz
