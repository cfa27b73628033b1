#include "reports/page/marked_text.h"

#include <gtest/gtest.h>

#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

constexpr const char* kDocument =
    "# Title\n<!-- begin: rules -->\nold\n<!-- end: rules -->\nmore\n";

TEST(MarkedText, ReplacesWhatStandsBetweenTheMarkers) {
  const std::string once = with_marked_text(kDocument, "rules", "| a |\n", "x.md");
  EXPECT_EQ(once, "# Title\n<!-- begin: rules -->\n\n| a |\n\n<!-- end: rules -->\nmore\n");
  EXPECT_EQ(with_marked_text(once, "rules", "| a |\n", "x.md"), once);
}

TEST(MarkedText, NamesTheFileWhoseMarkersAreMissing) {
  try {
    with_marked_text(kDocument, "rows", "", "x.md");
    FAIL() << "no exception";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "x.md: the lines '<!-- begin: rows -->' and '<!-- end: rows -->' are not there");
  }
}

}  // namespace
}  // namespace foretrace
