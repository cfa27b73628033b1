// `when:` and expressions with conditions, as a scenario reads them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>

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
  ASSERT_EQ(program.threads.size(), 3U) << "the first two do the same";
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
                "    - repeat: {index: i, times: 2, ops: [when: {condition: j == 0, ops: []}]}\n")),
            "6:60 error: unknown name 'j' | did you mean 'i'?\n");
  EXPECT_EQ(problems_of(four_processes(
                "    - repeat: {index: i, times: 4, ops: [when: {condition: i - 1, ops: []}]}\n")),
            "6:60 error: 'i - 1' must be between 0 and 1: it is -1 for i = 0\n");
  EXPECT_EQ(problems_of(four_processes("    - when: {condition: 2, ops: []}\n")),
            "6:25 error: '2' must be between 0 and 1: it is 2\n");
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
              HasSubstr("the conditions of 'when' and the lengths of loops, times the processes"));
}

/// "2 spin spin; 1 spin": of each loop of the first thread's, its times and operations.
std::string loops_of(const Program& program) {
  std::string text;
  for (const Op& op : program.threads.at(0).ops) {
    const auto* loop = std::get_if<Repeat>(&op.kind);
    if (loop == nullptr) continue;
    text += (text.empty() ? "" : "; ") + std::to_string(loop->times);
    for (const Op& inside : loop->ops) text += " " + kind_name(inside.kind);
  }
  return text;
}

TEST(When, OnALoopsIndexReadsTheLoopInRunsOfTurnsThatAreAlike) {
  const auto loop = [](const std::string& condition) {
    return loops_of(read(four_processes("    - repeat: {index: i, times: 8, ops: [when: {condition: " +
                                        condition + ", ops: [spin: {duration: 1us}]}, "
                                        "device_synchronize: {}]}\n")));
  };
  EXPECT_EQ(loop("i == 0"), "1 spin device_synchronize; 7 device_synchronize");
  EXPECT_EQ(loop("i < 3 or i == 7"),
            "3 spin device_synchronize; 4 device_synchronize; 1 spin device_synchronize");
  EXPECT_EQ(loop("process >= 0"), "8 spin device_synchronize") << "the turns decide nothing";
}

TEST(When, OnALoopsIndexLeavesTheIndexAsItIsInTheWholeLoop) {
  const Program program = read(
      four_processes("    - repeat: {index: i, times: 6, ops: [when: {condition: i >= 2, ops: "
                     "[host_compute: {duration: 1us * i}]}, when: {condition: i == 1, ops: "
                     "[host_compute: {duration: 1ms * i}]}]}\n"));
  const Block& ops = program.threads.at(0).ops;
  ASSERT_EQ(ops.size(), 3U);
  EXPECT_TRUE(std::get<Repeat>(ops[0].kind).ops.empty());
  const auto duration = [&](std::size_t loop, std::int64_t turn) {
    const Block& inside = std::get<Repeat>(ops[loop].kind).ops;
    return std::get<HostCompute>(inside.at(0).kind).duration.eval(std::array{std::int64_t{0}, turn});
  };
  EXPECT_EQ(duration(1, 0), std::chrono::milliseconds{1});
  EXPECT_EQ(std::get<Repeat>(ops[2].kind).times, 4U);
  EXPECT_EQ(duration(2, 0), std::chrono::microseconds{2});
  EXPECT_EQ(duration(2, 3), std::chrono::microseconds{5});
}

TEST(Loops, MayBeLongerInOneProcessThanInAnother) {
  const Program program = read(
      four_processes("    - repeat: {times: process / 2 + 1, ops: [spin: {duration: 1us}]}\n"));
  ASSERT_EQ(program.threads.size(), 2U);
  for (const HostThread& thread : program.threads) {
    const bool is_first = thread.processes.front() == 0;
    EXPECT_THAT(thread.processes, is_first ? ElementsAre(0, 1) : ElementsAre(2, 3));
    EXPECT_EQ(std::get<Repeat>(thread.ops.at(0).kind).times, is_first ? 1U : 2U);
  }
}

TEST(Loops, MayBeLongerInOneTurnThanInAnother) {
  const Program program =
      read(four_processes("    - repeat:\n        index: i\n        times: 4\n        ops:\n"
                          "          - for_each: {index: j, in: i / 2, ops: [spin: {duration: "
                          "1us * (j + 1)}]}\n"));
  ASSERT_EQ(program.threads.size(), 1U);
  EXPECT_EQ(loops_of(program), "2 repeat; 2 repeat");
  std::vector<std::uint64_t> times;
  for (const Op& op : program.threads[0].ops) {
    times.push_back(
        std::get<Repeat>(std::get<Repeat>(op.kind).ops.at(0).kind).times);
  }
  EXPECT_THAT(times, ElementsAre(0, 1));
}

TEST(Loops, OfLengthsThatCannotBeAreRefusedWhereTheyStand) {
  EXPECT_EQ(problems_of(four_processes(
                "    - repeat: {times: process - 1, ops: [spin: {duration: 1us}]}\n")),
            "6:23 error: 'process - 1' must be between 0 and 4611686018427387904: it is -1 for "
            "process = 0\n");
  EXPECT_EQ(problems_of(four_processes("    - repeat: {index: i, times: 3, ops: [repeat: {times: 4 "
                                       "/ i, ops: [spin: {duration: 1us}]}]}\n")),
            "6:58 error: '4 / i' must be between 0 and 4611686018427387904: it overflows 64 bits "
            "or divides by 0 for i = 0\n");
  EXPECT_THAT(problems_of(four_processes(
                  "    - repeat: {index: i, times: 2000000, ops: [when: {condition: i == 1, ops: "
                  "[spin: {duration: 1us}]}]}\n")),
              HasSubstr("times the processes and the turns of loops, are more than 1048576"));
}

TEST(Loops, WhoseTurnsDifferCheckRangesOfTheWholeIndex) {
  const std::string head =
      "schema_version: 1\nname: a\nbuffers: {x: {memory: device, size: 1MiB, count: 3}}\n"
      "threads:\n  main:\n";
  const std::string loop =
      "    - repeat: {index: i, times: 4, ops: [memset_async: {dst: x(i)}, when: {condition: i == "
      "0, ops: [device_synchronize: {}]}]}\n";
  EXPECT_EQ(problems_of(head + loop),
            "6:62 error: index out of range in 'x(i)': it is 3 for i = 3 | there is buffer "
            "x(0...2)\n");
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
