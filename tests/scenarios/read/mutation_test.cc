// Random damage to valid scenarios: the reader never crashes, and either accepts the text or says
// what is wrong and where. The seed is fixed, so a failure comes back.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "scenarios/read/scenario.h"
#include "scenarios/base/text/data_directory.h"

namespace foretrace {
namespace {

constexpr int kMutations = 6000;

std::vector<std::string> valid_texts() {
  std::vector<std::filesystem::path> files{data_directory().string() +
                                           "/tests/scenarios/data/everything.yaml"};
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator{data_directory().string() + "/scenarios"}) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::vector<std::string> texts;
  for (const auto& file : files) {
    std::ifstream stream{file, std::ios::binary};
    texts.emplace_back(std::istreambuf_iterator<char>{stream}, std::istreambuf_iterator<char>{});
  }
  return texts;
}

class Mutator {
 public:
  explicit Mutator(std::vector<std::string> texts) : texts_{std::move(texts)} {}

  std::string next() {
    std::string text = pick(texts_);
    for (int i = below(4); i >= 0; --i) damage(text);
    return text;
  }

 private:
  int below(int n) { return std::uniform_int_distribution<int>{0, n - 1}(random_); }
  template <class T>
  const T& pick(const std::vector<T>& all) {
    return all[static_cast<std::size_t>(below(static_cast<int>(all.size())))];
  }
  std::size_t position(const std::string& text) {
    return static_cast<std::size_t>(below(static_cast<int>(text.size()) + 1));
  }

  /// A stretch of another scenario, so that pieces meet that never stood together.
  std::string stretch(int longest) {
    const std::string& from = pick(texts_);
    return from.substr(position(from), static_cast<std::size_t>(below(longest)));
  }

  void damage(std::string& text) {
    static const std::vector<std::string> kTokens{"{",
                                                  "}",
                                                  "[",
                                                  "]",
                                                  ":",
                                                  ",",
                                                  "\n",
                                                  "  ",
                                                  "- ",
                                                  "$",
                                                  "(",
                                                  ")",
                                                  "%",
                                                  "**",
                                                  "/",
                                                  "-1",
                                                  "0",
                                                  "0B",
                                                  "1us",
                                                  "18446744073709551616",
                                                  "9223372036854775807B",
                                                  "i",
                                                  "process",
                                                  "\"",
                                                  "'",
                                                  "&a",
                                                  "*a",
                                                  "!t",
                                                  "\t",
                                                  "#",
                                                  "|",
                                                  ">",
                                                  "~",
                                                  "null",
                                                  "true",
                                                  "\xff",
                                                  "ops",
                                                  "d",
                                                  "e2(3)"};
    const std::size_t at = position(text);
    const auto length = static_cast<std::size_t>(below(12));
    switch (below(5)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, pick(kTokens));
        break;
      case 2:
        text.replace(at, length, pick(kTokens));
        break;
      case 3:
        text.insert(at, stretch(80));
        break;
      default:
        text.replace(at, length, stretch(30));
        break;
    }
  }

  std::vector<std::string> texts_;
  std::mt19937_64 random_{20240229};
};

TEST(ScenarioReader, SurvivesRandomDamageAndAlwaysPointsAtALine) {
  Mutator mutator{valid_texts()};
  int accepted = 0;
  for (int i = 0; i < kMutations; ++i) {
    const std::string text = mutator.next();
    const auto lines = std::ranges::count(text, '\n') + 1;
    const auto result = read_scenario(text, "mutated.yaml");
    accepted += result ? 1 : 0;
    if (!result) {
      ASSERT_FALSE(result.error().empty()) << text;
    }
    for (const Diagnostic& d : result ? result->warnings : result.error()) {
      ASSERT_FALSE(d.message.empty());
      // Only what is true of the whole file has no line: nothing in it, buffers too large together.
      const bool of_the_file = d.at.line == 0 && (d.message.starts_with("the file") ||
                                                  d.message.starts_with("all buffers"));
      ASSERT_TRUE(of_the_file || (d.at.line >= 1 && d.at.line <= lines && d.at.column >= 1))
          << d.at.line << ":" << d.at.column << " " << d.message << "\n"
          << text;
    }
    if (!result) {
      ASSERT_FALSE(render(result.error(), text).empty());
    }
  }
  // Damage in a comment or a size is no error; damage elsewhere is.
  EXPECT_GT(accepted, kMutations / 100);
  EXPECT_LT(accepted, kMutations / 2);
}

}  // namespace
}  // namespace foretrace
