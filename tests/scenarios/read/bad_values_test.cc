// A word, or a number out of range, where a value stands: what is needed there.
#include <gtest/gtest.h>

#include <string>

#include "tests/scenarios/reading.h"

namespace foretrace {
namespace {

using reading_test::problems_of;
using reading_test::scenario_with;

TEST(BadValue, PriorityThatIsNoNumber) {
  const auto with = [](const std::string& priority) {
    return "schema_version: 1\nname: a\nstreams: {s: {priority: " + priority +
           "}}\nthreads: {main: []}\n";
  };
  EXPECT_EQ(
      problems_of(with("high")),
      "3:25 error: unknown name 'high', and a number from -5 to 0 is needed here | known here: "
      "devices, nodes, processes\n");
  EXPECT_EQ(problems_of(with("9999999999")),
            "3:25 error: '9999999999' must be between -2147483648 and 2147483647: it is "
            "9999999999\n");
}

TEST(BadValue, AWordWhereAValueIsNeeded) {
  EXPECT_EQ(problems_of(scenario_with("memset: {dst: x, size: all}")),
            "18:30 error: unknown name 'all', and a size is needed here | known here: process, "
            "devices, nodes, processes, $n, $size\n");
  EXPECT_EQ(problems_of(scenario_with("spin: {duration: long}")),
            "18:24 error: unknown name 'long', and a time is needed here | known here: process, "
            "devices, nodes, processes, $n, $size\n");
  EXPECT_EQ(
      problems_of(scenario_with("spin: {duration: 1us, blocks: all}")),
      "18:37 error: unknown name 'all', and a plain number from 1 to 2147483647 is needed here | "
      "known here: process, devices, nodes, processes, $n, $size\n");
  EXPECT_EQ(
      problems_of(scenario_with("spin: {duration: 2 * long}")),
      "18:28 error: unknown name 'long' | known here: process, devices, nodes, processes, $n, "
      "$size\n");
}

TEST(BadValue, APartOfAnElementNamesTheTypeAndWhetherItIsTheDefault) {
  EXPECT_EQ(problems_of(scenario_with("elementwise: {src: x, dst: y, size: 197B}")),
            "18:43 error: the size is not a whole number of elements of 4 B, which is float32, the "
            "default type | name the elements' type: type: float16\n");
  EXPECT_EQ(problems_of(scenario_with("elementwise: {src: x, dst: y, size: 197B, type: float16}")),
            "18:43 error: the size is not a whole number of elements of 2 B, which is float16\n");
  EXPECT_EQ(problems_of(scenario_with("host_fill: {dst: host, size: 197B}")),
            "18:36 error: the size is not a whole number of elements of 4 B, which is float32\n");
  EXPECT_EQ(problems_of("schema_version: 1\nname: a\nbuffers: {x: {memory: device, size: 197B}}\n"
                        "threads:\n  main:\n    - elementwise: {dst: x, type: float16}\n"),
            "6:35 error: the size is not a whole number of elements of 2 B, which is float16\n");
}

TEST(BadParameters, SayARefusedNameOnceHoweverOftenItIsUsed) {
  const std::string head = "schema_version: 1\nname: a\nparameters: {";
  const std::string uses =
      "}\nbuffers: {x: {memory: device, size: $nodes * 1KiB}}\nthreads:\n  main:\n"
      "    - repeat: {times: $nodes, ops: [memset: {dst: x}]}\n"
      "    - memset: {dst: x, size: $nodes * 4B}\n";
  EXPECT_EQ(problems_of(head + "nodes: 12" + uses),
            "3:14 error: 'nodes' cannot be a parameter's name | letters, digits and '_', and not "
            "process, processes, devices, nodes\n");
  EXPECT_EQ(problems_of(head + "devices: 2}\nthreads: {main: []}\n"),
            "3:14 error: 'devices' cannot be a parameter's name | letters, digits and '_', and not "
            "process, processes, devices, nodes\n");
}

TEST(BadParameters, SayAListForAValueOnceHoweverOftenItIsUsed) {
  EXPECT_EQ(problems_of("schema_version: 1\nname: a\nparameters: {n: [1, 2]}\nthreads:\n  main:\n"
                        "    - repeat: {times: $n, ops: [host_compute: {duration: $n * 1us}]}\n"),
            "3:17 error: parameter 'n' needs a single value\n");
}

}  // namespace
}  // namespace foretrace
