#include "scenarios/base/values/json_depth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

TEST(JsonDepth, IsOfBracketsInOneAnotherAndNotOfStrings) {
  EXPECT_EQ(json_depth(""), 0U);
  EXPECT_EQ(json_depth("7"), 0U);
  EXPECT_EQ(json_depth(R"({"a": [1, {"b": 2}], "c": [[]]})"), 3U);
  EXPECT_EQ(json_depth(R"(["[[[[", "\"[[[[", "\\", [1]])"), 2U);
  EXPECT_EQ(json_depth("]]]][["), 2U) << "what is closed first opens nothing";
}

TEST(JsonDepth, IsRefusedBeyondWhatAnyFileHas) {
  EXPECT_NO_THROW(refuse_deep_json(std::string(kDeepestJson, '['), "a.json"));
  try {
    refuse_deep_json(std::string(kDeepestJson + 1, '['), "a.json:3");
    ADD_FAILURE() << "taken";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "a.json:3: more than 64 brackets in one another");
  }
}

}  // namespace
}  // namespace foretrace
