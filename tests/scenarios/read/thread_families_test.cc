// Families of host threads: one description, a thread for each index.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenarios/reading.h"

namespace foretrace {
namespace {

using reading_test::problems_of;
using reading_test::read;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string with_threads(const std::string& text) {
  return "schema_version: 1\nname: a\ndevices: 2\nstreams: {s: {count: 3}, d: {each: device}}\n"
         "threads:\n" +
         text;
}

std::vector<std::string> thread_names(const Program& program) {
  std::vector<std::string> all;
  for (const HostThread& thread : program.threads) all.push_back(thread.name);
  return all;
}

const std::string kWorkers =
    "  worker:\n    count: 3\n    ops:\n"
    "      - region: {name: step, ops: [{spin: {stream: s(index), duration: 1us * (index + 1)}}, "
    "{stream_synchronize: {stream: s(index)}}]}\n";

TEST(ThreadFamilies, AreThreadsWithANumberEach) {
  const Program program =
      read(with_threads(kWorkers + "  main: [host_compute: {duration: 1us}]\n"));
  EXPECT_THAT(thread_names(program), ElementsAre("worker(0)", "worker(1)", "worker(2)", "main"));
  const auto& region = std::get<Region>(program.threads.at(2).ops.at(0).kind);
  EXPECT_EQ(region.name, "step.2");
  const std::array variables{std::int64_t{0}};
  const auto& spin = std::get<Spin>(region.ops.at(0).kind);
  EXPECT_EQ(program.streams.at(spin.stream.resolve(variables).value).name, "s(2)");
  EXPECT_EQ(spin.duration.eval(variables), Duration{3'000'000});
}

TEST(ThreadFamilies, HaveOneForEachDevice) {
  EXPECT_THAT(thread_names(read(
                  with_threads("  gpu: {each: device, ops: [spin: {stream: d(device), duration: "
                               "1us}, device_synchronize: {device: device}]}\n"))),
              ElementsAre("gpu(0)", "gpu(1)"));
  EXPECT_THAT(thread_names(read(
                  with_threads("  gpu: {each: device, count: 2, ops: [host_compute: {duration: "
                               "1us * (1 + device + index)}]}\n"))),
              ElementsAre("gpu(0, 0)", "gpu(0, 1)", "gpu(1, 0)", "gpu(1, 1)"));
}

TEST(ThreadFamilies, DecideByTheirNumberWhatTheyDo) {
  const std::string text = with_threads(
      "  worker: {count: 2, ops: [when: {condition: index == 0, ops: [host_compute: "
      "{duration: 1us}]}, repeat: {times: index, ops: [host_compute: {duration: 1us}]}]}\n");
  EXPECT_EQ(problems_of(text), "") << "that one of them never does it is no mistake";
  const Program program = read(text);
  EXPECT_EQ(program.threads.at(0).ops.size(), 2U);
  EXPECT_EQ(std::get<Repeat>(program.threads.at(1).ops.at(0).kind).times, 1U);
}

TEST(ThreadFamilies, SayOfAConditionThatItHoldsInNoneOfThem) {
  EXPECT_THAT(problems_of(with_threads("  worker: {count: 2, ops: [when: {condition: index == 5, "
                                       "ops: [host_compute: {duration: 1us}]}]}\n")),
              HasSubstr("warning: this holds in none of the thread's processes"));
}

TEST(ThreadFamilies, SayAMistakeOnce) {
  EXPECT_EQ(
      problems_of(with_threads("  worker: {count: 3, ops: [host_compute: {duration: 1ms * w}]}\n")),
      "6:59 error: unknown name 'w' | known here: process, devices, index, nodes, processes\n");
  EXPECT_THAT(problems_of(with_threads("  worker: {count: 0, ops: []}\n")),
              HasSubstr("between 1 and"));
  EXPECT_THAT(problems_of(with_threads("  worker: {each: process, ops: []}\n")),
              HasSubstr("unknown value of each 'process' | known here: device"));
  EXPECT_THAT(
      problems_of(with_threads("  worker: {count: 2, ops: [repeat: {index: index, times: 2, ops: "
                               "[]}]}\n")),
      HasSubstr("'index' has a meaning here already"));
}

}  // namespace
}  // namespace foretrace
