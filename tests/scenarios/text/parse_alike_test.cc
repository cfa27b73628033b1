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

}  // namespace
}  // namespace foretrace
