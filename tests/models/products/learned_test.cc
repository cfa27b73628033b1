// What fit-products wrote is read as it was written, and nothing else is read.
#include "models/products/learned.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/text_file.h"

namespace foretrace::products {
namespace {

using testing::HasSubstr;

std::string written(const std::filesystem::path& file) {
  const std::string text = read_text_file(file);
  constexpr std::string_view kBegin = "foretrace fit-products ";
  const std::size_t begin = text.find(kBegin) + kBegin.size();
  const std::string by = text.substr(begin, text.find('"', begin) - begin);
  return file.parent_path().filename() == "heuristic" ? text_of(read_heuristic(file), by)
                                                      : text_of(read_residual(file), by);
}

TEST(Learned, EveryFileIsReadAndWrittenAgainTheSame) {
  for (const char* folder : {"heuristic", "residual"}) {
    for (const auto& entry : std::filesystem::directory_iterator{learned_directory() / folder}) {
      EXPECT_TRUE(written(entry.path()) == read_text_file(entry.path())) << entry.path();
    }
  }
}

std::string refusal(const std::string& damage_from, const std::string& to) {
  std::string text = read_text_file(learned_directory() / "heuristic" / "float32.json");
  text.replace(text.find(damage_from), damage_from.size(), to);
  const auto file = std::filesystem::path{testing::TempDir()} / "damaged.json";
  std::ofstream{file} << text;
  try {
    read_heuristic(file);
  } catch (const UsageError& error) {
    return error.what();
  }
  return {};
}

TEST(Learned, ADamagedFileIsRefusedByItsName) {
  EXPECT_THAT(refusal("\"inputs\": 33", "\"inputs\": 32"),
              HasSubstr("damaged.json: error: a network's lists are not as long"));
  EXPECT_THAT(refusal("\"operands\":8", "\"operands\":\"8\",\"x\":8"),
              HasSubstr("damaged.json: error: "));
  EXPECT_THAT(refusal("\"tiles\"", "\"tile\""), HasSubstr("damaged.json: error: "));
}

}  // namespace
}  // namespace foretrace::products
