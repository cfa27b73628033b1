#include "tests/cli/shell.h"

#include <gtest/gtest.h>
#include <stdlib.h>  // mkdtemp
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

#include "scenarios/base/text/data_directory.h"

namespace foretrace::test {

namespace fs = std::filesystem;

namespace {

const fs::path kRoot = data_directory();

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string{"'\\''"} : std::string{c};
  return result + "'";
}

const char* sanitized_program() { return std::getenv("FORETRACE_SANITIZED_PROGRAM"); }

std::vector<Shipped> read_shipped_scenarios() {
  std::vector<Shipped> result;
  for (const auto& entry : fs::recursive_directory_iterator{kRoot / "scenarios"}) {
    if (entry.path().extension() != ".yaml") continue;
    const std::string file = entry.path().lexically_relative(kRoot).string();
    // The d2l book's figures are from a computer with V100s; everything else is measured on H200s.
    const bool is_d2l = file.find("/d2l_") != std::string::npos;
    const std::string text = read_file(entry.path());
    const bool hangs = file.find("scenarios/hangs/") == 0;
    result.push_back({.file = file,
                      .machine = is_d2l ? "v100-pcie-4" : "h200-nvswitch-8",
                      .hangs = hangs,
                      .fails = file.find("/fault_") != std::string::npos,
                      .warns = hangs || text.find(", warned]\n") != std::string::npos,
                      .states = text.find("\nexpect:") != std::string::npos});
  }
  std::ranges::sort(result, {}, &Shipped::file);
  return result;
}

}  // namespace

fs::path tested_program() {
  const fs::path found = sanitized_program() == nullptr ? FORETRACE_PROGRAM : sanitized_program();
  if (!fs::exists(found)) throw std::runtime_error{found.string() + " is not built"};
  return found;
}

std::string hostile_limits() {
#if defined(FORETRACE_SANITIZED)
  const bool is_sanitized = true;
#else
  const bool is_sanitized = sanitized_program() != nullptr;
#endif
  return is_sanitized ? "ulimit -t 300; " : "ulimit -v 4194304; ulimit -t 100; ";
}

Scratch::Scratch() {
  std::string name = (fs::temp_directory_path() / "foretrace-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error{"mkdtemp failed: " + name};
  path_ = name;
  for (const char* shared : {"scenarios", "models", "reports"}) {
    fs::create_directory_symlink(kRoot / shared, path_ / shared);
  }
}

Scratch::~Scratch() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

Ran Scratch::run(const std::string& command) const { return run_with(tested_program(), command); }

Ran Scratch::run_with(const fs::path& foretrace, const std::string& command) const {
  const std::string shell_line =
      "cd " + quoted(path_.string()) + " && PATH=" + quoted(foretrace.parent_path().string()) +
      ":\"$PATH\" sh -c " + quoted(command) + " >.stdout 2>.stderr </dev/null";
  const int status = std::system(shell_line.c_str());
  return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          .out = read_file(path_ / ".stdout"),
          .err = read_file(path_ / ".stderr")};
}

void Scratch::write(const std::string& name, const std::string& text) const {
  std::ofstream{path_ / name, std::ios::binary} << text;
}

std::string read_file(const fs::path& file) {
  std::ifstream in{file, std::ios::binary};
  if (!in) throw std::runtime_error{"cannot read " + file.string()};
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

const std::vector<Shipped>& shipped_scenarios() {
  static const std::vector<Shipped> kScenarios = read_shipped_scenarios();
  return kScenarios;
}

std::string test_name(const Shipped& scenario) {
  std::string name = scenario.file.substr(std::string{"scenarios/"}.size());
  name.resize(name.size() - std::string{".yaml"}.size());
  std::ranges::replace_if(
      name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

double step_ms(const Ran& ran) {
  const std::string before = "\nstep: ";
  const auto at = ran.out.find(before);
  EXPECT_NE(at, std::string::npos) << ran.out << ran.err;
  if (at == std::string::npos) return 0;
  std::istringstream text{ran.out.substr(at + before.size(), 20)};
  double value = 0;
  std::string unit;
  std::getline(text >> value >> std::ws, unit, ',');
  const std::map<std::string, double> ms{{"us", 1e-3}, {"ms", 1}, {"s", 1e3}};
  EXPECT_TRUE(ms.contains(unit)) << ran.out;
  return ms.contains(unit) ? value * ms.at(unit) : 0;
}

}  // namespace foretrace::test
