#include <fmt/format.h>
#include <gtest/gtest.h>

#include "scenarios/text/yaml_reader.h"

namespace foretrace {
namespace {

/// Everything that a tree says, with the place of each node.
std::string all_of(const YamlNode& node) {
  std::string text = fmt::format("{} {} {} {} {} {}", static_cast<int>(node.kind), node.quoted,
                                 node.source, node.line, node.column, node.text);
  for (const YamlNode& item : node.items) text += "\n- " + all_of(item);
  for (const auto& [key, value] : node.entries) text += "\n" + all_of(key) + ": " + all_of(value);
  return text;
}

TEST(ParseAlike, GivesTheTreeOfTheWholeText) {
  constexpr std::string_view kText = R"(threads:
  main:
    - kernel: {m: 1, of: "x"}
    - repeat:
        times: 2
        ops:
        - kernel: {m: 1, of: "x"}
        - kernel: {m: 2, list: [1, 2]}
    - kernel: {m: 2, list: [1, 2]}
)";
  Problems problems{"a.yaml"};
  EXPECT_EQ(all_of(parse_alike(kText, problems)), all_of(parse_yaml(kText, problems)));
  EXPECT_EQ(problems.count(), 0U);
}

TEST(ParseAlike, NumbersOnlyWhatIsAlike) {
  Problems problems{"a.yaml"};
  const YamlNode root = parse_alike("- a: {b: 1}\n- a: {b: 2}\n- a: {b: 1}\n- [3]\n", problems);
  ASSERT_EQ(root.items.size(), 4U);
  EXPECT_EQ(root.items[0].alike, root.items[2].alike);
  EXPECT_NE(root.items[0].alike, root.items[1].alike);
  EXPECT_NE(root.items[0].alike, 0U);
  EXPECT_EQ(root.items[3].alike, 0U);
}

TEST(ParseAlike, KeepsOnlyTheKeyOfWhatAnotherOfItsSequenceStandsFor) {
  constexpr std::string_view kText = R"(- a: {b: 1}
- a: {b: 1}
- c: {b: 1}
- c: {b: 1}
- d:
    - a: {b: 1}
    - a: {b: 1}
)";
  Problems problems{"a.yaml"};
  const auto is_a = [](std::string_view key) { return key == "a"; };
  const YamlNode root = parse_alike(kText, problems, is_a);
  ASSERT_EQ(root.items.size(), 5U);
  const auto values_of = [](const YamlNode& item) {
    return item.entries.at(0).value.entries.size();
  };
  EXPECT_EQ(values_of(root.items[0]), 1U);
  EXPECT_EQ(values_of(root.items[1]), 0U);
  EXPECT_EQ(root.items[1].alike, root.items[0].alike);
  EXPECT_EQ(root.items[1].entries[0].key.place(), std::pair(2, 3));
  EXPECT_EQ(values_of(root.items[3]), 1U);
  const YamlNode& inner = root.items[4].entries.at(0).value;
  ASSERT_EQ(inner.items.size(), 2U);
  EXPECT_EQ(values_of(inner.items[0]), 1U);
  EXPECT_EQ(values_of(inner.items[1]), 0U);
  EXPECT_EQ(inner.items[1].entries[0].key.place(), std::pair(7, 7));
}

}  // namespace
}  // namespace foretrace
