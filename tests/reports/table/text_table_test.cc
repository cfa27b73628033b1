#include "reports/table/text_table.h"

#include <gtest/gtest.h>

namespace foretrace {
namespace {

TEST(FormatTime, ShowsFourDigitsInAUnitThatFits) {
  EXPECT_EQ(format_time(850), "850 ns");
  EXPECT_EQ(format_time(1'234), "1.234 us");
  EXPECT_EQ(format_time(12'345), "12.35 us");
  EXPECT_EQ(format_time(412'000), "412.0 us");
  EXPECT_EQ(format_time(1'204'000'000), "1.204 s");
  EXPECT_EQ(format_time(-4'000), "-4.000 us");
}

TEST(FormatTime, DoesNotRoundIntoFiveDigits) {
  EXPECT_EQ(format_time(999.9), "1.000 us");
  EXPECT_EQ(format_time(999'960), "1.000 ms");
  EXPECT_EQ(format_time(99'996), "100.0 us");
}

TEST(FormatPercent, AlwaysSaysTheSignOfAnError) {
  EXPECT_EQ(format_signed_percent(0.016), "+1.6 %");
  EXPECT_EQ(format_signed_percent(-0.036), "-3.6 %");
  EXPECT_EQ(format_signed_percent(12.5), "+1250 %");
  EXPECT_EQ(format_percent(0.05), "5.0 %");
  EXPECT_EQ(format_percent(-0.0109), "-1.1 %");
  EXPECT_EQ(format_percent(-0.0001), "0.0 %");
}

TEST(FormatSize, UsesBinaryUnits) {
  EXPECT_EQ(format_size(1000), "1000 B");
  EXPECT_EQ(format_size(4 << 20), "4 MiB");
  EXPECT_EQ(format_size(1536), "1.5 KiB");
}

TEST(FormatCount, GroupsThousands) {
  EXPECT_EQ(format_count(7), "7");
  EXPECT_EQ(format_count(1234567), "1,234,567");
}

TEST(TextTable, IsMarkdown) {
  TextTable table;
  table.column("op", TextTable::Align::Left);
  table.column("error", TextTable::Align::Right);
  table.row({"a|b", "+1.6 %"});
  EXPECT_EQ(table.markdown(),
            "| op   |  error |\n"
            "|------|-------:|\n"
            "| a\\|b | +1.6 % |\n");
}

TEST(TextTable, QuotesCsvCells) {
  TextTable table;
  table.column("name", TextTable::Align::Left);
  table.row({"a,\"b\""});
  EXPECT_EQ(table.csv(), "name\n\"a,\"\"b\"\"\"\n");
}

TEST(TextTable, MarksCsvCellsThatASpreadsheetWouldCompute) {
  EXPECT_EQ(csv_cell("=cmd|' /C calc'!A0"), "\"'=cmd|' /C calc'!A0\"");
  EXPECT_EQ(csv_cell("@SUM(1)"), "\"'@SUM(1)\"");
  EXPECT_EQ(csv_cell("-2+3+cmd|x"), "\"'-2+3+cmd|x\"");
  EXPECT_EQ(csv_cell("+cmd"), "\"'+cmd\"");
  EXPECT_EQ(csv_cell("--x"), "\"'--x\"");
  EXPECT_EQ(csv_cell("\t=1"), "\"'\t=1\"");
}

TEST(TextTable, LeavesNumbersInCsvCellsAsTheyAre) {
  for (const char* text :
       {"-12.5", "+1.6 %", "-4.000 us", "-1e-09", "+3", "-", "+", "", "a=b", "5"}) {
    EXPECT_EQ(csv_cell(text), text);
  }
}

}  // namespace
}  // namespace foretrace
