#include "scenarios/base/text/yaml_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace foretrace {
namespace {

std::string problems_in(std::string_view text) {
  Problems problems{"test.yaml"};
  parse_yaml(text, problems);
  std::string all;
  for (const Diagnostic& d : problems.take()) {
    all += fmt::format("{}:{} {}{}{}\n", d.at.line, d.at.column, d.message,
                       d.hint.empty() ? "" : " | ", d.hint);
  }
  return all;
}

TEST(YamlReader, KnowsThePositionOfEveryKeyAndValue) {
  Problems problems{"test.yaml"};
  const YamlNode root = parse_yaml("a: 1\nb: {c: x y, d: [1, 2]}\n", problems);
  ASSERT_EQ(root.entries.size(), 2U);
  const YamlNode& b = root.entries[1].value;
  EXPECT_EQ(b.line, 2);
  EXPECT_EQ(b.column, 4);
  ASSERT_EQ(b.entries.size(), 2U);
  EXPECT_EQ(b.entries[0].key.column, 5);
  EXPECT_EQ(b.entries[0].value.text, "x y");
  EXPECT_EQ(b.entries[0].value.column, 8);
  ASSERT_EQ(b.entries[1].value.items.size(), 2U);
  EXPECT_EQ(b.entries[1].value.items[1].column, 20);
}

TEST(YamlReader, PassesOverAByteOrderMark) {
  EXPECT_EQ(problems_in("\xef\xbb\xbf"
                        "a: 1\nb: 2\n"),
            "");
  EXPECT_EQ(problems_in("\xef\xbb\xbf"
                        "a: 1\na: 2\n"),
            "2:1 duplicate key 'a' | first given in line 1\n");
}

TEST(YamlReader, RefusesDuplicateKeysInAnyMap) {
  EXPECT_EQ(problems_in("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\na: 2\n"),
            "5:3 duplicate key 'c' | first given in line 3\n"
            "6:1 duplicate key 'a' | first given in line 1\n");
}

TEST(YamlReader, RefusesAnchorsAliasesAndTags) {
  EXPECT_EQ(problems_in("a: &x 1\nb: *x\nc: !t 2\n"),
            "1:4 anchors (&name) are not part of the language | "
            "write the value out, or use a parameter: $name\n"
            "2:4 aliases (*name) are not part of the language | "
            "write the value out, or use a parameter: $name\n"
            "3:4 tags (!name) are not part of the language\n");
}

TEST(YamlReader, RefusesASecondDocument) {
  EXPECT_EQ(problems_in("a: 1\n---\nb: 2\n"),
            "3:1 a scenario is one YAML document, and this starts another\n");
}

TEST(YamlReader, RefusesMapsAndListsAsKeys) {
  EXPECT_EQ(problems_in("{a: 1}: 2\n"), "1:1 a key must be a word\n");
  EXPECT_EQ(problems_in("[a]: 2\n"), "1:1 a key must be a word\n");
}

TEST(YamlReader, PointsAtSyntaxErrors) {
  EXPECT_EQ(
      problems_in("a: [1, 2\nb: 3\n"),
      "2:2 not valid YAML: did not find expected ',' or ']' while parsing a flow sequence that "
      "begins in line 1\n");
}

TEST(YamlReader, ReadsNothingFromNoText) { EXPECT_EQ(problems_in({}), ""); }

TEST(YamlReader, PointsWhereItBeganAtWhatTheTextEndsIn) {
  EXPECT_EQ(problems_in("a: 1\nb: [1, 2\n\n"),
            "2:4 not valid YAML: did not find expected ',' or ']' while parsing a flow sequence\n");
  EXPECT_EQ(problems_in("a: {b: 1"),
            "1:4 not valid YAML: did not find expected ',' or '}' while parsing a flow mapping\n");
  EXPECT_EQ(problems_in("a: 1\nb: \"no end\nc: 2\n"),
            "2:4 not valid YAML: found unexpected end of stream while scanning a quoted scalar\n");
}

TEST(YamlReader, RefusesWhatIsNotText) {
  EXPECT_EQ(problems_in(std::string_view{"a: 1\nb: \0\n", 10}),
            "2:4 not a text file: byte 0x00 | a scenario is a UTF-8 text file\n");
  EXPECT_EQ(problems_in("a: caf\xe9\n"),
            "1:7 not a text file: invalid UTF-8 | a scenario is a UTF-8 text file\n");
  EXPECT_EQ(problems_in("a: caf\xc3\xa9 \xe2\x82\xac\n"), "");
}

TEST(YamlReader, RefusesDeepNestingBeforeItCostsTheStack) {
  EXPECT_EQ(problems_in(std::string(200'000, '[')), "1:101 nested more than 100 levels deep\n");
  std::string maps;
  for (int i = 0; i < 200'000; ++i) maps += "{a: ";
  EXPECT_EQ(problems_in(maps), "1:401 nested more than 100 levels deep\n");
  std::string dashes;
  for (int i = 0; i < 200'000; ++i) dashes += "- ";
  EXPECT_EQ(problems_in(dashes), "1:201 nested more than 100 levels deep\n");
}

TEST(YamlReader, RefusesAHugeTextWithoutReadingIt) {
  EXPECT_EQ(problems_in(std::string(100'000'000, 'x')), "0:0 larger than 16 MiB: not a scenario\n");
}

TEST(YamlReader, KeepsTheFirstThousandProblems) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "a: 1\n";
  Problems problems{"test.yaml"};
  parse_yaml(text, problems);
  EXPECT_EQ(problems.error_count(), 4999U);
  EXPECT_EQ(problems.take().size(), 1000U);
}

TEST(MapReader, ReportsEveryKeyNobodyAskedFor) {
  Problems problems{"test.yaml"};
  const YamlNode root = parse_yaml("strem: 1\nsize: 2\nfoo: 3\n", problems);
  MapReader map{root, "a copy", problems};
  EXPECT_NE(map.optional("size"), nullptr);
  EXPECT_EQ(map.optional("stream"), nullptr);
  map.finish();
  const Diagnostics all = problems.take();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].message, "unknown key 'strem' in a copy");
  EXPECT_EQ(all[0].hint, "did you mean 'stream'?");
  EXPECT_EQ(all[1].message, "unknown key 'foo' in a copy");
  EXPECT_EQ(all[1].hint, "known here: size, stream");
}

TEST(MapReader, TellsAMissingKeyFromAMissingValue) {
  Problems problems{"test.yaml"};
  const YamlNode root = parse_yaml("size:\n", problems);
  MapReader map{root, "a copy", problems};
  EXPECT_EQ(map.required("size"), nullptr);
  EXPECT_EQ(map.required("dst"), nullptr);
  const Diagnostics all = problems.take();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].message, "'size' has no value");
  EXPECT_EQ(all[1].message, "a copy needs 'dst'");
}

}  // namespace
}  // namespace foretrace
