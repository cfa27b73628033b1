#include "scenarios/base/text/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "scenarios/base/text/errors.h"

namespace foretrace::test {
namespace {

std::vector<CsvLine> csv_of(const std::string& text) {
  const std::filesystem::path file =
      std::filesystem::path{testing::TempDir()} /
      (std::string{testing::UnitTest::GetInstance()->current_test_info()->name()} + ".csv");
  std::ofstream{file} << text;
  const std::vector<CsvLine> read = read_csv(file);
  std::filesystem::remove(file);
  return read;
}

std::string csv_error(const std::string& text) {
  try {
    csv_of(text);
  } catch (const UsageError& refused) {
    return refused.what();
  }
  return "";
}

TEST(Csv, GivesCellsByTheNamesOfTheirColumns) {
  const std::vector<CsvLine> csv = csv_of("name,us\r\n\"a, \"\"b\"\"\",12.5\n,\n");
  ASSERT_EQ(csv.size(), 2U);
  EXPECT_EQ(csv[0].text("name"), "a, \"b\"");
  EXPECT_DOUBLE_EQ(csv[0].number("us"), 12.5);
  EXPECT_DOUBLE_EQ(csv[1].number("us"), 0);
  EXPECT_THROW(csv[0].text("ns"), UsageError);
}

TEST(Csv, MayBeginWithTheMarkOfSpreadsheetsAndEndWithEmptyLines) {
  const std::vector<CsvLine> csv = csv_of("\xef\xbb\xbfname,us\r\na,1\r\n\r\n\n");
  ASSERT_EQ(csv.size(), 1U);
  EXPECT_EQ(csv[0].text("name"), "a");
  EXPECT_THAT(csv[0].where(), testing::HasSubstr(":2"));
}

TEST(Csv, TakesTheMarkOfWhatIsNoFormulaAway) {
  const std::vector<CsvLine> csv = csv_of("name,us\n\"'=a+b\",-1.5\n'quoted',2\n");
  EXPECT_EQ(csv[0].text("name"), "=a+b");
  EXPECT_DOUBLE_EQ(csv[0].number("us"), -1.5);
  EXPECT_EQ(csv[1].text("name"), "'quoted'");
}

TEST(Csv, RefusesWhatIsNoTable) {
  EXPECT_THAT(csv_error("a,b\n1\n"), testing::HasSubstr(":2: 1 cells; the table has 2 columns"));
  EXPECT_THAT(csv_error("a,a\n"), testing::HasSubstr(":1: column 'a' twice"));
  EXPECT_THAT(csv_error("a\n\"x\n"), testing::HasSubstr(":2: a quote does not end"));
  EXPECT_THAT(csv_error(""), testing::HasSubstr("an empty file"));
  EXPECT_THROW(csv_of("a\nnan\n")[0].number("a"), UsageError);
}

}  // namespace
}  // namespace foretrace::test
