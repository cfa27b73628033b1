#include "reports/compare/order_check.h"

#include <gtest/gtest.h>

#include <fstream>

#include "reports/timeline/timeline_json.h"
#include "scenarios/read/scenario.h"
#include "sim/cli/commands.h"
#include "tests/reports/timeline_builder.h"
#include "tests/sim/cli/command_line.h"

namespace foretrace::test {
namespace {

// Operation 0 is a kernel on stream a, 1 its record, 2 the wait of stream b, 3 a kernel on b.
const std::string kScenario =
    "schema_version: 1\nname: ordered\ndevices: 2\nstreams: {a: {device: 0, flags: non_blocking}, "
    "b: {device: 1, flags: non_blocking}}\nevents: {e: {}}\nthreads:\n  main:\n"
    "    - spin: {stream: a, duration: 1us}\n    - event_record: {stream: a, event: e}\n"
    "    - stream_wait_event: {stream: b, event: e}\n"
    "    - spin: {stream: b, duration: 1us, blocks: 2}\n"
    "    - spin: {stream: b, duration: 1us, blocks: 3}\n";

/// The three kernels of kScenario, from and to these times in ns.
struct Times {
  std::int64_t first_end = 10, second_begin = 20, second_end = 30, third_begin = 30;
  std::int64_t bound = 0;
};

Timeline timeline_of(const Program& program, const Times& times) {
  TimelineBuilder builder{true, program.hash};
  builder.timeline.origin.file = "ordered.yaml";
  builder.timeline.origin.clock_error_bound_ns = times.bound;
  const auto a = builder.stream("a", 0, 0);
  const auto b = builder.stream("b", 0, 1);
  for (const Op& op : program.threads[0].ops) builder.op(kind_name(op.kind), op.line);
  builder.span(0, a, 0, times.first_end, 1);
  builder.span(3, b, times.second_begin, times.second_end, 1);
  builder.span(4, b, times.third_begin, times.third_begin + 10, 1);
  return std::move(builder.timeline);
}

/// What it finds points into the program.
OrderCheck check(const Times& times) {
  static const Program program = read_scenario(kScenario, "ordered.yaml")->program;
  return check_order(program, happens_before(program), timeline_of(program, times));
}

TEST(OrderCheck, CountsWhatIsInOrder) {
  const OrderCheck result = check({});
  EXPECT_TRUE(result.violations.empty());
  EXPECT_EQ(result.spans, 3U);
  EXPECT_EQ(result.held, 3U) << "a before both of b, and b's first before its second";
  EXPECT_EQ(result.neighbours, 1U);
}

TEST(OrderCheck, FindsTheKernelThatDidNotWaitForItsEvent) {
  const OrderCheck result =
      check({.first_end = 1500, .second_begin = 300, .second_end = 1600, .third_begin = 1600});
  ASSERT_EQ(result.violations.size(), 1U);
  EXPECT_EQ(describe(result.violations[0]),
            "process 0: line 11 (spin) begins 1.200 us before line 8 (spin) has ended");
}

TEST(OrderCheck, LeavesOpenWhatIsWithinTheClocksOfTwoGpus) {
  const OrderCheck result = check({.first_end = 22, .bound = 5});
  EXPECT_TRUE(result.violations.empty());
  EXPECT_EQ(result.undecided, 1U);
  EXPECT_EQ(result.held, 2U);
}

TEST(OrderCheck, FindsTwoKernelsOfOneStreamThatOverlap) {
  const OrderCheck result = check({.third_begin = 29, .bound = 5});
  ASSERT_EQ(result.violations.size(), 2U) << "as an order and as neighbours";
  EXPECT_TRUE(result.violations[1].is_overlap);
}

TEST(OrderCommand, JudgesEveryRunAndEndsWithOneWhenOneIsWrong) {
  const TemporaryDirectory directory;
  std::ofstream{directory / "ordered.yaml"} << kScenario;
  const Program program = load_scenario(directory / "ordered.yaml");
  for (const std::string run : {"good", "bad"}) {
    std::filesystem::create_directory(directory / run);
    write_timeline(timeline_of(program, {.second_begin = run == "good" ? 20 : 5}),
                   directory / run / "measured.timeline.json");
  }
  const Ran good = run_command(add_order_command, {"order", (directory / "good").string()});
  EXPECT_EQ(good.exit_code, kDone) << good.err;
  const Ran both = run_command(
      add_order_command, {"order", (directory / "good").string(), (directory / "bad").string()});
  EXPECT_EQ(both.exit_code, kBadAnswer) << both.err;
  EXPECT_NE(both.out.find("line 11 (spin) begins 5 ns before line 8"), std::string::npos)
      << both.out;
}

}  // namespace
}  // namespace foretrace::test
