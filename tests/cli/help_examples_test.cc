// The examples that --help begins with: each is run as it stands in a directory that has what its
// words stand for; those that take long, or need a GPU, are run by tests of their own, and looked
// at here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <regex>
#include <set>
#include <sstream>
#include <string_view>

#include "scenarios/base/text/data_directory.h"
#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in{text};
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::set<std::string> listed_commands(const Scratch& scratch) {
  const std::string help = scratch.run("foretrace --help").out;
  std::set<std::string> commands;
  for (const std::string& line : lines_of(help.substr(help.find("Subcommands:")))) {
    if (line.empty()) break;  // then the environment
    if (line.starts_with("  ") && line.size() > 2 && line[2] != ' ') {
      commands.insert(line.substr(2, line.find(' ', 2) - 2));
    }
  }
  return commands;
}

/// The lines below "Example:", to the first empty one.
std::vector<std::string> examples_of(const Scratch& scratch, const std::string& command) {
  std::vector<std::string> examples;
  for (const std::string& line : lines_of(scratch.run("foretrace " + command + " --help").out)) {
    if (line.empty()) break;
    if (line.starts_with("  ")) examples.push_back(line.substr(2));
  }
  return examples;
}

/// Files of the repository that a command names, and that are not there.
std::vector<std::string> missing_files(const std::string& command) {
  std::vector<std::string> missing;
  const std::regex file{"(scenarios|models|reports|hw|tests)/[^ \"']*"};
  for (std::sregex_iterator at{command.begin(), command.end(), file}, end; at != end; ++at) {
    if (!fs::exists(data_directory() / at->str())) missing.push_back(at->str());
  }
  return missing;
}

/// Examples that predict for minutes, or until an interrupt, by how they begin: a test of each
/// command runs shorter ones.
constexpr std::array<std::string_view, 8> kLong{
    "foretrace serve ",           "foretrace plan ",        "foretrace plan-serving ",
    "foretrace accuracy -o",      "foretrace table ",       "foretrace training-table ",
    "foretrace fit RUNS/ --new ", "foretrace fit-products "};

bool takes_long(const std::string& example) {
  return std::ranges::any_of(kLong,
                             [&](std::string_view begin) { return example.starts_with(begin); });
}

/// What the words of the examples stand for.
void prepare(const Scratch& scratch) {
  scratch.write("my_scenario.yaml",
                "schema_version: 1\nname: mine\nparameters: {size: 1MiB}\n"
                "buffers: {x: {memory: device, size: $size}}\n"
                "threads: {main: [memset: {dst: x}]}\n");
  const Ran ran = scratch.run(
      "set -e\n"
      "one=scenarios/examples/prefetch_two_streams.yaml\n"
      "two=scenarios/collectives/all_reduce.yaml\n"
      "foretrace simulate $one --machine h200-nvswitch-8 -o run\n"
      "cp -r run predicted_run\n"
      "cp -r run measured_run\n"
      "rm measured_run/predicted.timeline.json\n"
      "cp reports/measured/prefetch_two_streams/measured.timeline.json run\n"
      "cp run/measured.timeline.json measured_run\n"
      "cp -r measured_run measured\n"
      "mkdir runs runs-monday runs-tuesday\n"
      "cp -r run runs/prefetch_two_streams\n"
      "cp -r measured_run runs-monday/prefetch_two_streams\n"
      "cp -r measured_run runs-tuesday/prefetch_two_streams\n"
      "sed -i 's/2026-11-21T/2026-11-24T/' runs-tuesday/prefetch_two_streams/*.json\n"
      "cp -r reports/measured/calibrate_copies RUNS\n"
      "foretrace nccl-tests all_reduce -b 8 -e 1M -f 8 --processes 8 > all_reduce.log\n"
      "mkdir results\n"
      "foretrace nccl-tests all_reduce -b 8 -e 1M -f 8 --processes 8 --machine h100-nvswitch-8 > "
      "results/all_reduce.log\n"
      "foretrace simulate $two --machine h200-nvswitch-8 -o of_two\n"
      "foretrace export of_two --to kineto -o traces\n"
      "for rank in 0 1; do gzip -c traces/predicted/rank$rank.pt.trace.json > rank$rank.json.gz; "
      "done\n"
      "mkdir -p home/.local/share/bash-completion/completions home/.zfunc\n");
  ASSERT_EQ(ran.exit_code, 0) << ran.out << ran.err;
}

TEST(HelpExamples, RunAsTheyStand) {
  const Scratch scratch;
  prepare(scratch);
  // RUN/ is what an example before it made.
  const std::string before =
      "export HOME=\"$PWD/home\"; man() { cat; }; rm -rf RUN; cp -r run RUN; ";
  int ran_examples = 0;
  for (const std::string& command : listed_commands(scratch)) {
    const auto examples = examples_of(scratch, command);
    EXPECT_FALSE(examples.empty()) << command;
    for (const std::string& example : examples) {
      EXPECT_THAT(missing_files(example), testing::IsEmpty()) << example;
      if (takes_long(example)) continue;
      const Ran ran = scratch.run(before + example);
      EXPECT_EQ(ran.exit_code, 0) << example << "\n" << ran.out << ran.err;
      ++ran_examples;
    }
  }
  EXPECT_GE(ran_examples, 25);
}

/// The harness's own, from its sources: it is not built everywhere.
TEST(HelpExamples, OfTheHarnessNameFilesThatAreThere) {
  const fs::path sources = data_directory() / "hw/cli";
  int examples = 0;
  for (const auto& entry : fs::directory_iterator{sources}) {
    std::string text = read_file(entry.path());
    // Strings that go on in the next line are one.
    text = std::regex_replace(text, std::regex{"\"\\s*\n\\s*\""}, "");
    for (const std::string& line : lines_of(text)) {
      const auto at = line.find("foretrace-hw ");
      if (at == std::string::npos || line.find('"') > at) continue;
      EXPECT_THAT(missing_files(line.substr(at)), testing::IsEmpty())
          << entry.path().filename() << ": " << line;
      ++examples;
    }
  }
  EXPECT_GE(examples, 5);
}

}  // namespace
}  // namespace foretrace::test
