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

TEST_F(CheckCommand, RefusesAUseAfterAFreeAndSimulateToo) {
  const std::string text = kHeadOfX +
                           "buffers: {x: {memory: device, size: 1MiB}}\nthreads:\n  main:\n"
                           "    - malloc: {buffer: x}\n    - free: {buffer: x}\n"
                           "    - memset: {dst: x}\n";
  const std::string error =
      "x.yaml:8:7: error: buffer 'x' is used here, and line 7 freed it\n"
      "      - memset: {dst: x}\n        ^\n  hint: free it behind its last use\n";
  for (const Ran& ran : {check(text), simulate(text)}) {
    EXPECT_EQ(ran.exit_code, 2);
    EXPECT_THAT(ran.err, HasSubstr(error));
  }
}

TEST_F(CheckCommand, CallsAHangAnErrorAndEndsWithOneAsSimulateDoes) {
  const std::string text =
      kHeadOfX + "signals: {go: {}}\nthreads: {main: [host_wait: {signal: go}]}\n";
  const std::string error =
      "x.yaml:4:18: error: nothing in this file gives the signal 'go': this waits for ever\n";
  for (const Ran& ran : {check(text), simulate(text)}) {
    EXPECT_EQ(ran.exit_code, 1);
    EXPECT_THAT(ran.err, HasSubstr(error));
    EXPECT_THAT(ran.err, Not(HasSubstr("warning")));
  }
}

TEST_F(CheckCommand, EndsSoonHoweverManyRegionsAndAllocationsThereAre) {
  std::string text = kHeadOfX +
                     "processes: 2000\nbuffers: {x: {memory: device, size: 4KiB, count: 100}}\n"
                     "threads:\n  main:\n"
                     "    - repeat: {index: i, times: 1000000, ops: [malloc: {buffer: x(i % 100)}, "
                     "free: {buffer: x(i % 100)}]}\n";
  for (int i = 0; i < 1000; ++i) {
    text += "    - region: {name: r" + std::to_string(i) + ", ops: [memset: {dst: x(0)}]}\n";
  }
  scratch_.write("x.yaml", text);
  const Ran ran = scratch_.run(hostile_limits() + "foretrace check x.yaml");
  EXPECT_THAT(ran.exit_code, testing::AnyOf(0, 2)) << ran.err.substr(0, 1000);
}

}  // namespace
}  // namespace foretrace::test
