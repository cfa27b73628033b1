#include "scenarios/base/text/diagnostic.h"

#include <gtest/gtest.h>

namespace foretrace {
namespace {

Diagnostic at(int line, int column, std::string message, std::string hint = {}) {
  Diagnostic diagnostic;
  diagnostic.at.file = "a.yaml";
  diagnostic.at.line = line;
  diagnostic.at.column = column;
  diagnostic.message = std::move(message);
  diagnostic.hint = std::move(hint);
  return diagnostic;
}

TEST(Render, ShowsTheLineACaretAndTheHint) {
  EXPECT_EQ(render(at(12, 5, "unknown key 'strem'", "did you mean 'stream'?"), "  - strem: copy"),
            "a.yaml:12:5: error: unknown key 'strem'\n"
            "    - strem: copy\n"
            "      ^\n"
            "  hint: did you mean 'stream'?\n");
}

TEST(Render, LeavesThePositionOutWhenTheWholeFileIsMeant) {
  Diagnostic diagnostic = at(0, 0, "looks wrong");
  diagnostic.severity = Severity::Warning;
  EXPECT_EQ(render(diagnostic, ""), "a.yaml: warning: looks wrong\n");
}

TEST(Grouped, KeepsTheFirstOfAGroupAndNamesTheLinesOfTheOthers) {
  const auto in_group = [](int line, std::string_view group) {
    Diagnostic one = at(line, 5, "line " + std::to_string(line));
    one.severity = Severity::Warning;
    one.group = group;
    return one;
  };
  const Diagnostics kept = grouped({in_group(9, "a"), in_group(4, ""), in_group(2, "a"),
                                    in_group(7, "b"), in_group(5, ""), in_group(9, "a")});
  ASSERT_EQ(kept.size(), 4u);
  EXPECT_EQ(render(kept, ""),
            "a.yaml:2:5: warning: line 2\n"
            "  and 2 more like it, in line 9 (foretrace check --all prints each)\n"
            "a.yaml:4:5: warning: line 4\n"
            "a.yaml:5:5: warning: line 5\n"
            "a.yaml:7:5: warning: line 7\n");
}

TEST(Render, CutsALongLineAroundTheCaret) {
  const std::string line = std::string(500, 'a') + "X" + std::string(500, 'b');
  const std::string text = render(at(1, 501, "here"), line);
  const auto second = text.find('\n') + 1;
  const auto third = text.find('\n', second) + 1;
  const auto caret = text.find('^') - third;
  EXPECT_EQ(text[second + caret], 'X');
  EXPECT_LT(third - second, 120U);
}

TEST(Render, CountsCharactersAndNotBytesBeforeTheCaret) {
  const std::string text = render(at(1, 8, "here"), "\xc3\xa4\xc3\xb6\xc3\xbc: x");
  EXPECT_NE(text.find("\n      ^\n"), std::string::npos) << text;  // two spaces, then "aou:"
}

TEST(Render, PutsDiagnosticsInTheOrderOfTheFile) {
  const Diagnostics all{at(2, 1, "second"), at(1, 1, "first")};
  EXPECT_EQ(render(all, "one\ntwo\n"),
            "a.yaml:1:1: error: first\n  one\n  ^\na.yaml:2:1: error: second\n  two\n  ^\n");
}

TEST(Render, CountsWhatItDoesNotShow) {
  const Diagnostics all(150, at(1, 1, "again"));
  EXPECT_TRUE(render(all, "x").ends_with("... and 50 more\n"));
}

TEST(Suggest, NamesTheClosestWord) {
  EXPECT_EQ(suggest("strem", {"event", "stream", "size"}), "did you mean 'stream'?");
  EXPECT_EQ(suggest("sitze", {"event", "stream", "size"}), "did you mean 'size'?");
  EXPECT_EQ(suggest("isze", {"event", "stream", "size"}), "did you mean 'size'?");
}

TEST(Suggest, ListsTheChoicesWhenNoneIsClose) {
  EXPECT_EQ(suggest("abcdefgh", {"event", "size"}), "known here: event, size");
  EXPECT_EQ(suggest("abcdefgh", std::vector<std::string>(50, "xxxxx")), "");
  EXPECT_EQ(suggest("x", {}), "");
  EXPECT_LT(suggest("x", {std::string(100'000, 'y')}).size(), 100U) << "names of a file's columns";
}

}  // namespace
}  // namespace foretrace
