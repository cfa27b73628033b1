// What `foretrace check` says, and that `simulate` says the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class CheckCommand : public testing::Test {
 protected:
  Ran check(const std::string& text, const std::string& options = {}) {
    scratch_.write("x.yaml", text);
    return scratch_.run("foretrace check x.yaml" + options);
  }
  Ran simulate(const std::string& text, const std::string& options = {}) {
    scratch_.write("x.yaml", text);
    return scratch_.run("foretrace simulate x.yaml" + options);
  }
  Scratch scratch_;
};

const std::string kHeadOfX = "schema_version: 1\nname: x\n";
const std::string kIssueOnly =
    kHeadOfX +
    "streams: {s: {}}\nthreads:\n  main:\n"
    "    - region: {name: step, ops: [spin: {stream: s, duration: 50us}]}\n"
    "    - device_synchronize: {}\n";

TEST_F(CheckCommand, WarnsOfARegionThatTimesIssuingAndSimulateToo) {
  const std::string warning =
      "x.yaml:6:7: warning: region 'step' ends while the work that it issued may still run: it "
      "times issuing only\n"
      "      - region: {name: step, ops: [spin: {stream: s, duration: 50us}]}\n"
      "        ^\n"
      "  hint: add stream_synchronize: {stream: s} before its end; if issuing is what you time, "
      "add issue_only: true\n";
  const Ran checked = check(kIssueOnly);
  EXPECT_EQ(checked.exit_code, 0);
  EXPECT_EQ(checked.err, warning);
  const Ran simulated = simulate(kIssueOnly);
  EXPECT_EQ(simulated.exit_code, 0);
  EXPECT_EQ(simulated.err, warning);
}

}  // namespace
}  // namespace foretrace::test
