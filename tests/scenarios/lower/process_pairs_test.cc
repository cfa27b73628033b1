// Transfers outside of a batch: whose communicator and stream they take.
#include <gtest/gtest.h>

#include "scenarios/check/happens_before.h"
#include "tests/scenarios/reading.h"

namespace foretrace {
namespace {

using reading_test::problems_of;

/// Each of three ranks receives from the next before it sends to the one before.
std::string ring(const std::string& init, const std::string& warmup = "1") {
  return "schema_version: 1\nname: ring\nprocesses: 3\nwarmup: " + warmup +
         "\nprocess_groups: {world: {ranks: all, init: " + init +
         "}}\nbuffers: {x: {memory: device, size: 256MiB}, y: {memory: device, size: 256MiB}}\n"
         "threads:\n  main:\n"
         "    - irecv: {group: world, buffer: y, type: float32, src: (process + 1) % 3, work: a}\n"
         "    - isend: {group: world, buffer: x, type: float32, dst: (process + 2) % 3, work: b}\n"
         "    - work_wait: {work: a}\n    - work_wait: {work: b}\n    - device_synchronize: {}\n";
}

TEST(Pairs, OfALazyGroupHaveAStreamEach) {
  EXPECT_EQ(problems_of(ring("lazy")), "");
  EXPECT_NE(problems_of(ring("eager")).find("waits here for ever"), std::string::npos)
      << "the group's one stream holds the send behind the receive";
}

TEST(Pairs, OfALazyGroupOfManyRanksTakeTheGroups) {
  std::string many = ring("lazy");
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"processes: 3", "processes: 65"},
                                 {"+ 1) % 3", "+ 1) % 65"},
                                 {"+ 2) % 3", "+ 64) % 65"}}) {
    many.replace(many.find(from), from.size(), to);
  }
  EXPECT_NE(problems_of(many).find("waits here for ever"), std::string::npos);
}

/// The first of them makes the pair's communicator, which the third rank is not needed for.
TEST(Pairs, OfAColdGroupMeetInTwos) {
  EXPECT_EQ(problems_of("schema_version: 1\nname: two_of_three\nprocesses: 3\nwarmup: 0\n"
                        "process_groups: {world: {ranks: all}}\nbuffers: {x: {memory: device, "
                        "size: 4KiB}}\nthreads:\n"
                        "  r0: {process: 0, ops: [{send: {group: world, buffer: x, type: float32, "
                        "dst: 1}}, {device_synchronize: {}}]}\n"
                        "  r1: {process: 1, ops: [{recv: {group: world, buffer: x, type: float32, "
                        "src: 0}}, {device_synchronize: {}}]}\n"),
            "");
}

}  // namespace
}  // namespace foretrace
