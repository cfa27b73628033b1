// `when:` and expressions with conditions, as a scenario reads them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenarios/reading.h"

namespace foretrace {
namespace {

using reading_test::problems_of;
using reading_test::read;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Of four processes with one thread, whose operations are `ops`.
std::string four_processes(const std::string& ops) {
  return "schema_version: 1\nname: a\nprocesses: 4\nthreads:\n  main:\n" + ops;
}

std::vector<std::string> kinds_of(const HostThread& thread) {
  std::vector<std::string> kinds;
  for (const Op& op : thread.ops) kinds.push_back(kind_name(op.kind));
  return kinds;
}

TEST(When, IsAThreadForEachGroupOfProcessesThatDoTheSame) {
  const Program program = read(four_processes(
      "    - when: {condition: process == 0, ops: [spin: {duration: 1us}], otherwise: "
      "[host_compute: {duration: 1us}]}\n"
      "    - when: {condition: process < processes - 1, ops: [device_synchronize: {}]}\n"));
  ASSERT_EQ(program.threads.size(), 3U);
  for (const HostThread& thread : program.threads) {
    EXPECT_EQ(thread.name, "main");
    if (thread.processes.front() == 0) {
      EXPECT_THAT(kinds_of(thread), ElementsAre("spin", "device_synchronize"));
    } else if (thread.processes.front() == 1) {
      EXPECT_THAT(thread.processes, ElementsAre(1, 2));
      EXPECT_THAT(kinds_of(thread), ElementsAre("host_compute", "device_synchronize"));
    } else {
      EXPECT_THAT(thread.processes, ElementsAre(3));
      EXPECT_THAT(kinds_of(thread), ElementsAre("host_compute"));
    }
  }
}

TEST(When, WithoutItAThreadStaysOne) {
  const Program program = read(four_processes("    - spin: {duration: 1us}\n"));
  ASSERT_EQ(program.threads.size(), 1U);
  EXPECT_THAT(program.threads[0].processes, ElementsAre(0, 1, 2, 3));
}

TEST(When, MayStandInLoopsAndInEachOther) {
  const Program program = read(four_processes(
      "    - repeat:\n        times: 2\n        ops:\n"
      "          - when:\n              condition: process >= 2\n              ops:\n"
      "                - when: {condition: process % 2 == 1, ops: [spin: {duration: 1us}]}\n"));
  ASSERT_EQ(program.threads.size(), 4U);
  std::size_t spins = 0;
  for (const HostThread& thread : program.threads) {
    const auto& loop = std::get<Repeat>(thread.ops.at(0).kind);
    spins += loop.ops.size();
    if (!loop.ops.empty()) {
      EXPECT_THAT(thread.processes, ElementsAre(3));
    }
  }
  EXPECT_EQ(spins, 1U);
}

TEST(When, SaysOnceWhatIsWrongWithItsConditionOrItsOperations) {
  EXPECT_EQ(problems_of(
                four_processes("    - when: {condition: process, ops: [spin: {duration: 1us}]}\n")),
            "6:25 error: 'process' must be between 0 and 1: it is 2 for process = 2\n");
  EXPECT_EQ(problems_of(four_processes(
                "    - repeat: {index: i, times: 2, ops: [when: {condition: i == 0, ops: []}]}\n")),
            "6:60 error: unknown name 'i' | known here: process, devices, nodes, processes\n");
  EXPECT_EQ(problems_of(four_processes("    - when: {condition: process == 0, ops: []}\n"
                                       "    - spin: {duration: 1us, strem: x}\n")),
            "7:29 error: unknown key 'strem' in spin | did you mean 'stream'?\n");
  EXPECT_EQ(problems_of(four_processes("    - when: {condition: process == 9, ops: []}\n")),
            "6:25 warning: this holds in none of the thread's processes, so its operations are "
            "not even read\n");
}

TEST(When, RefusesMoreConditionsThanAnybodyNeeds) {
  std::string text = "schema_version: 1\nname: a\nprocesses: 4096\nthreads:\n  main:\n";
  for (int i = 0; i < 300; ++i) text += "    - when: {condition: process == 0, ops: []}\n";
  EXPECT_THAT(problems_of(text),
              HasSubstr("the conditions of 'when' times the processes are more"));
}

TEST(Expressions, WithACommaSayThatItEndsTheValue) {
  const std::string problems = problems_of(four_processes(
      "    - repeat: {index: i, times: 4, ops: [spin: {duration: min(1, 2) * 1us}]}\n"));
  EXPECT_THAT(problems, HasSubstr("inside of {...} a comma ends the value"));
}

TEST(Suggestions, TakeTheBeginningsOfNames) {
  EXPECT_THAT(problems_of(four_processes("    - device_sync: {}\n")),
              HasSubstr("did you mean 'device_synchronize'?"));
  EXPECT_THAT(problems_of(four_processes("    - host_comp: {duration: 1us}\n")),
              HasSubstr("did you mean 'host_compute'?"));
  EXPECT_THAT(problems_of(four_processes("    - quux_and_more: {}\n")),
              HasSubstr("'foretrace list ops --keys' prints all of them"));
  EXPECT_EQ(
      suggest("h200", {"a100-nvswitch-8", "h200-nvswitch-8", "one-copy-engine", "v100-pcie-4"}),
      "did you mean 'h200-nvswitch-8'?");
}

}  // namespace
}  // namespace foretrace
