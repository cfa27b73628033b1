// The commands in our documents work as they stand: every `$ ` line of a console block is run, in
// the order of the file, in one scratch directory. Lines below a command are lines of its output,
// but for numbers, which move with the model. A yaml block whose first line is "# NAME.yaml:" is
// the file of that name.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>

#include "scenarios/base/text/data_directory.h"
#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

namespace fs = std::filesystem;

struct ShownCommand {
  std::string command;
  std::vector<std::string> output;
};

std::vector<ShownCommand> console_commands(const std::string& markdown) {
  std::vector<ShownCommand> commands;
  bool inside = false;
  std::istringstream lines{markdown};
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("```", 0) == 0) {
      inside = line == "```console";
    } else if (inside && line.rfind("$ ", 0) == 0) {
      commands.push_back({line.substr(2), {}});
    } else if (inside && !commands.empty() && !line.empty()) {
      commands.back().output.push_back(line);
    }
  }
  return commands;
}

/// Numbers, units of time and the widths of columns aside.
std::string without_numbers(const std::string& line) {
  static const std::regex number{R"([0-9][0-9.,]*( (ps|ns|us|ms|s)\b)?)"};
  static const std::regex spaces{" +"};
  return std::regex_replace(std::regex_replace(line, number, "#"), spaces, " ");
}

std::set<std::string> lines_without_numbers(const std::string& text) {
  std::set<std::string> found;
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) found.insert(without_numbers(line));
  return found;
}

void write_shown_files(const std::string& markdown, const Scratch& scratch) {
  const std::string opening = "```yaml\n# ";
  for (auto at = markdown.find(opening); at != std::string::npos;
       at = markdown.find(opening, at + 1)) {
    const auto name = at + opening.size();
    const auto colon = markdown.find_first_of(":\n", name);
    const std::string file = markdown.substr(name, colon - name);
    if (!file.ends_with(".yaml")) continue;
    const auto begin = at + opening.size() - 2;
    scratch.write(file, markdown.substr(begin, markdown.find("```", begin) - begin));
  }
}

class Document : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, Document,
                         testing::Values("README.md", "scenarios/README.md", "sim/cli/README.md",
                                         "reports/gallery/README.md", "models/machines/README.md",
                                         "models/evidence/copies.md",
                                         "sim/applications/accept/acceptance.md"),
                         [](const auto& tested) {
                           const std::string folder = fs::path{tested.param}.parent_path().string();
                           return folder.empty() ? "root"
                                                 : std::regex_replace(folder, std::regex{"/"}, "_");
                         });

TEST_P(Document, HasCommandsThatRunAsTheyStand) {
  const auto commands = console_commands(read_file(data_directory() / GetParam()));
  EXPECT_GE(commands.size(), 3U);
  const Scratch scratch;
  write_shown_files(read_file(data_directory() / GetParam()), scratch);
  for (const auto& [command, output] : commands) {
    const Ran ran = scratch.run(command);
    EXPECT_EQ(ran.exit_code, 0) << command << "\n" << ran.out << ran.err;
    const std::set<std::string> said = lines_without_numbers(ran.out);
    for (const std::string& line : output) {
      EXPECT_TRUE(said.contains(without_numbers(line))) << command << " does not say\n" << line;
    }
  }
}

TEST(Documents, ShowAScenarioThatPassesCheck) {
  const std::string text = read_file(data_directory() / "scenarios" / "README.md");
  const auto begin = text.find("```yaml\n") + 8;
  const Scratch scratch;
  scratch.write("shown.yaml", text.substr(begin, text.find("```", begin) - begin));
  const Ran check = scratch.run("foretrace check shown.yaml");
  EXPECT_EQ(check.exit_code, 0) << check.err;
}

TEST(Documents, HaveARowForEveryMachineFile) {
  const fs::path directory = data_directory() / "models/machines";
  const std::string text = read_file(directory / "README.md");
  for (const auto& entry : fs::directory_iterator{directory}) {
    if (entry.path().extension() != ".yaml") continue;
    const std::string name = entry.path().stem().string();
    EXPECT_NE(text.find("[" + name + "](" + name + ".yaml)"), std::string::npos) << name;
  }
}

TEST(Documents, DeclareNoCommandThatIsNotOffered) {
  const std::string declared = read_file(data_directory() / "sim/cli/commands.h");
  const std::string help = Scratch{}.run("foretrace --help").out;
  const std::regex declaration{"void add_([a-z_]+)_command\\("};
  std::size_t commands = 0;
  for (std::sregex_iterator at{declared.begin(), declared.end(), declaration}, end; at != end;
       ++at) {
    std::string name = (*at)[1];
    std::ranges::replace(name, '_', '-');
    EXPECT_NE(help.find("\n  " + name + " "), std::string::npos) << name;
    ++commands;
  }
  EXPECT_GT(commands, 20U);
}

TEST(Documents, DeclareNoWriterThatExportDoesNotOffer) {
  const std::string command = read_file(data_directory() / "sim/cli/export.cc");
  const std::regex declaration{"void (write_[a-z_]+)\\("};
  std::size_t writers = 0;
  for (const auto& entry : fs::directory_iterator{data_directory() / "reports/export"}) {
    if (entry.path().extension() != ".h") continue;
    const std::string text = read_file(entry.path());
    for (std::sregex_iterator at{text.begin(), text.end(), declaration}, end; at != end; ++at) {
      EXPECT_NE(command.find((*at)[1]), std::string::npos) << (*at)[1];
      ++writers;
    }
  }
  EXPECT_GE(writers, 3U);
}

TEST(Documents, NameOnlyFilesThatExist) {
  const fs::path root = data_directory();
  for (const char* document :
       {"README.md", "CONTRIBUTING.md", "scenarios/README.md", "scenarios/errors.md",
        "scenarios/rules.md", "scenarios/training_steps.md", "scenarios/torch_distributed.md",
        "scenarios/host_and_tasks.md", "sim/cli/README.md", "reports/gallery/README.md"}) {
    const std::string text = read_file(root / document);
    int links = 0;
    // Markdown links: ](target)
    for (auto at = text.find("]("); at != std::string::npos; at = text.find("](", at + 1)) {
      std::string target = text.substr(at + 2, text.find(')', at) - at - 2);
      target = target.substr(0, target.find('#'));
      if (target.empty() || target.find("://") != std::string::npos) continue;
      EXPECT_TRUE(fs::exists((root / document).parent_path() / target))
          << document << ": " << target;
      ++links;
    }
    EXPECT_GE(links, 1) << document;
  }
}

// The cells of CONTRIBUTING's walks begin with `FILE` `NAME`.
TEST(Documents, WalkPastNamesThatStandInTheirFiles) {
  const std::string text = read_file(data_directory() / "CONTRIBUTING.md");
  const auto begin = text.find("## Three questions");
  const std::string walks = text.substr(begin, text.find("\n## ", begin + 1) - begin);
  const std::regex stop{R"(\| `([^`]+)` `([^`]+)`)"};
  int stops = 0;
  for (std::sregex_iterator at{walks.begin(), walks.end(), stop}, end; at != end; ++at, ++stops) {
    const std::string file = (*at)[1];
    const std::string name = (*at)[2];
    EXPECT_NE(read_file(data_directory() / file).find(name), std::string::npos)
        << file << " has no '" << name << "'";
  }
  EXPECT_EQ(stops, 15);
}

}  // namespace
}  // namespace foretrace::test
