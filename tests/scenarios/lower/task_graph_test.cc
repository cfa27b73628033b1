// task_graph: where tasks are placed, and what a graph reads as.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <utility>

#include "scenarios/lower/place_tasks.h"
#include "tests/scenarios/reading.h"

namespace foretrace {
namespace {

using reading_test::problems_of;
using reading_test::read;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::optional<std::uint32_t> kHost;

// ---- placing ------------------------------------------------------------------------------------

TEST(PlaceTasks, AChainStaysOnOneStream) {
  const auto placed = place_tasks({{0, {}}, {0, {0}}, {0, {1}}});
  EXPECT_THAT(placed.stream, ElementsAre(0, 0, 0));
  EXPECT_THAT(placed.waits, ElementsAre(IsEmpty(), IsEmpty(), IsEmpty()));
  EXPECT_THAT(placed.ends, ElementsAre(2));
}

TEST(PlaceTasks, IndependentTasksGetStreamsOfTheirOwn) {
  const auto placed = place_tasks({{0, {}}, {0, {}}, {1, {}}});
  EXPECT_THAT(placed.stream, ElementsAre(0, 1, 2));
  EXPECT_THAT(placed.devices, ElementsAre(0, 0, 1));
  EXPECT_THAT(placed.ends, ElementsAre(0, 1, 2));
}

//     0
//   1   2    1 continues the stream of 0, and 2 begins one and waits for 0;
//     3      3 continues the stream of 1 and waits for 2.
TEST(PlaceTasks, ADiamondNeedsTwoWaits) {
  const auto placed = place_tasks({{0, {}}, {0, {0}}, {0, {0}}, {0, {1, 2, 0}}});
  EXPECT_THAT(placed.stream, ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(placed.waits, ElementsAre(IsEmpty(), IsEmpty(), ElementsAre(0), ElementsAre(2)));
  EXPECT_THAT(placed.ends, ElementsAre(3));
}

TEST(PlaceTasks, AStreamWhoseLastTaskEndedBeforeIsTakenAgain) {
  // 3 comes after 2, 2 after 0 and 1: 0 was the last of stream 0, so 3 can have it.
  const auto placed = place_tasks({{0, {}}, {1, {0}}, {1, {1}}, {0, {2}}});
  EXPECT_THAT(placed.stream, ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(placed.waits, ElementsAre(IsEmpty(), ElementsAre(0), IsEmpty(), ElementsAre(2)));
}

TEST(PlaceTasks, AChainAcrossDevicesChangesTheStream) {
  const auto placed = place_tasks({{0, {}}, {1, {0}}});
  EXPECT_THAT(placed.stream, ElementsAre(0, 1));
  EXPECT_THAT(placed.waits, ElementsAre(IsEmpty(), ElementsAre(0)));
}

TEST(PlaceTasks, TheHostWorksAfterEverythingThatCanBeIssued) {
  // 0 and 3 are the host's; 1 waits for nothing, 2 for the host.
  const auto placed = place_tasks({{kHost, {}}, {0, {}}, {0, {0}}, {kHost, {1}}});
  EXPECT_THAT(placed.order, ElementsAre(1, 0, 2, 3));
  EXPECT_THAT(placed.waits[2], IsEmpty());  // the host had done 0 when it issued 2
  EXPECT_THAT(placed.waits[3], ElementsAre(1));
  EXPECT_THAT(placed.ends, ElementsAre(2));
}

TEST(PlaceTasks, OfItsOwnTasksTheHostBeginsWithTheLongestChain) {
  const auto placed = place_tasks({{kHost, {}}, {kHost, {}}, {0, {1}}, {0, {2}}});
  EXPECT_THAT(placed.order, ElementsAre(1, 2, 3, 0));
}

/// What must have ended before each task begins, as placed: through its stream, its waits, and the
/// host thread, which issues in order.
std::vector<std::set<std::size_t>> ended_before(const std::vector<TaskNode>& tasks,
                                                const TaskPlacement& placed) {
  std::vector<std::set<std::size_t>> before(tasks.size());
  std::map<std::size_t, std::size_t> last;  // of each stream
  std::set<std::size_t> host;
  for (const std::size_t task : placed.order) {
    std::set<std::size_t> mine = host;
    const auto add = [&](std::size_t other) {
      mine.insert(other);
      mine.insert(before[other].begin(), before[other].end());
    };
    for (const std::size_t other : placed.waits[task]) add(other);
    if (tasks[task].device) {
      const auto [found, is_first] = last.try_emplace(placed.stream[task], task);
      if (!is_first) add(std::exchange(found->second, task));
    } else {
      host = mine;
      host.insert(task);
    }
    before[task] = std::move(mine);
  }
  return before;
}

TEST(PlaceTasks, KeepsEveryDependenceOfAnyGraphAndAddsNoneOnItsStreams) {
  std::mt19937 random{1};
  const auto below = [&random](std::size_t n) { return random() % n; };
  for (int graph = 0; graph < 500; ++graph) {
    std::vector<TaskNode> tasks(1 + below(12));
    for (std::size_t task = 0; task < tasks.size(); ++task) {
      if (below(4) != 0) tasks[task].device = static_cast<std::uint32_t>(below(2));
      for (std::size_t i = 0; i < task; ++i) {
        if (below(4) == 0) tasks[task].after.push_back(i);
      }
    }
    const TaskPlacement placed = place_tasks(tasks);
    ASSERT_EQ(placed.order.size(), tasks.size());
    const auto before = ended_before(tasks, placed);
    for (std::size_t task = 0; task < tasks.size(); ++task) {
      for (const std::size_t other : tasks[task].after) {
        EXPECT_TRUE(before[task].contains(other)) << graph << ": " << other << ", " << task;
      }
      if (!tasks[task].device) continue;
      EXPECT_EQ(placed.devices[placed.stream[task]], *tasks[task].device);
    }
    // On one stream each task depends on the one before it.
    std::vector<std::set<std::size_t>> ancestors(tasks.size());
    std::map<std::size_t, std::size_t> last;
    for (std::size_t task = 0; task < tasks.size(); ++task) {
      for (const std::size_t other : tasks[task].after) {
        ancestors[task].insert(other);
        ancestors[task].insert(ancestors[other].begin(), ancestors[other].end());
      }
    }
    for (const std::size_t task : placed.order) {
      if (!tasks[task].device) continue;
      const auto [found, is_first] = last.try_emplace(placed.stream[task], task);
      if (is_first) continue;
      EXPECT_TRUE(ancestors[task].contains(std::exchange(found->second, task))) << graph;
    }
  }
}

// ---- lowering -----------------------------------------------------------------------------------

constexpr std::string_view kHead =
    "schema_version: 1\nname: a\ndevices: 2\n"
    "buffers: {x: {each: device, memory: device, size: 1KiB}, "
    "y: {each: device, memory: device, size: 1KiB}, z: {memory: device, size: 1KiB}, "
    "host: {memory: pinned, size: 1KiB}}\n";

/// The tasks are in line 5 from column 40 on.
std::string graph(std::string_view tasks) {
  return fmt::format("{}threads: {{main: [task_graph: {{tasks: [{}]}}]}}\n", kHead, tasks);
}

std::string by_hand(std::string_view ops, std::string_view streams, std::string_view events = "") {
  return fmt::format("{}streams: {{{}}}\nevents: {{{}}}\nthreads: {{main: [{}]}}\n", kHead, streams,
                     events, ops);
}

void expect_same(const std::string& graphs, const std::string& by_hands) {
  EXPECT_EQ(canonical_text(read(graphs)), canonical_text(read(by_hands)));
}

TEST(TaskGraph, BuffersSayWhatWaitsForWhat) {
  // Read after write: relu. Write after read: the memset waits for relu. Both are one chain.
  expect_same(graph("memcpy_async: {src: host, dst: x(0)}, elementwise: {src: x(0), dst: y(0)}, "
                    "memset_async: {dst: x(0)}"),
              by_hand("memcpy_async: {stream: s, src: host, dst: x(0)}, "
                      "elementwise: {stream: s, src: x(0), dst: y(0)}, "
                      "memset_async: {stream: s, dst: x(0)}, stream_synchronize: {stream: s}",
                      "s: {}"));
}

TEST(TaskGraph, ReadersOfOneBufferRunAtOnceAndTheNextWriterWaitsForBoth) {
  expect_same(graph("elementwise: {dst: x(0)}, elementwise: {src: x(0), dst: y(0)}, "
                    "elementwise: {src: x(0), dst: z}, elementwise: {dst: x(0)}"),
              by_hand("elementwise: {stream: s, dst: x(0)}, "
                      "event_record: {event: e, stream: s}, "
                      "elementwise: {stream: s, src: x(0), dst: y(0)}, "
                      "stream_wait_event: {stream: t, event: e}, "
                      "elementwise: {stream: t, src: x(0), dst: z}, "
                      "event_record: {event: f, stream: t}, "
                      "stream_wait_event: {stream: s, event: f}, "
                      "elementwise: {stream: s, dst: x(0)}, "
                      "stream_synchronize: {stream: s}",
                      "s: {}, t: {}", "e: {timing: false}, f: {timing: false}"));
}

TEST(TaskGraph, ADeviceFollowsFromTheBuffersOrIsGiven) {
  expect_same(graph("elementwise: {dst: x(1)}, spin: {device: 1, duration: 1us}"),
              by_hand("elementwise: {stream: s, dst: x(1)}, "
                      "spin: {stream: t, duration: 1us}, stream_synchronize: {stream: s}, "
                      "stream_synchronize: {stream: t}",
                      "s: {device: 1}, t: {device: 1}"));
}

TEST(TaskGraph, PrioritiesMakeEachDevicesFirstStreamTheMostUrgent) {
  std::string by_priority = graph("elementwise: {dst: x(0)}, elementwise: {dst: y(0)}");
  by_priority.insert(by_priority.find("tasks:"), "priorities: true, ");
  expect_same(by_priority,
              by_hand("elementwise: {stream: s, dst: x(0)}, "
                      "elementwise: {stream: t, dst: y(0)}, "
                      "stream_synchronize: {stream: s}, stream_synchronize: {stream: t}",
                      "s: {priority: -5}, t: {priority: -4}"));
}

TEST(TaskGraph, HostTasksSynchronizeWithWhatTheyComeAfter) {
  expect_same(graph("memcpy_async: {id: down, src: x(0), dst: host}, "
                    "host_compute: {id: add, duration: 1us, after: [down]}, "
                    "memcpy_async: {src: host, dst: y(1), after: [add]}"),
              by_hand("memcpy_async: {stream: s, src: x(0), dst: host}, "
                      "event_record: {event: e, stream: s}, "
                      "event_synchronize: {event: e}, host_compute: {duration: 1us}, "
                      "memcpy_async: {stream: t, src: host, dst: y(1)}, "
                      "stream_synchronize: {stream: t}",
                      "s: {device: 0}, t: {device: 1}", "e: {timing: false}"));
}

TEST(TaskGraph, LabelsAndLinesAreThoseOfTheTasks) {
  const Program program = read(
      std::string{kHead} +
      "threads:\n  main:\n    - task_graph:\n        id: graph\n        tasks:\n"
      "          - elementwise: {id: fill, dst: x(0)}\n          - elementwise: {dst: y(0)}\n");
  const Block& ops = program.threads[0].ops;
  ASSERT_EQ(ops.size(), 4U);
  EXPECT_EQ(ops[0].label, "fill");
  EXPECT_EQ(ops[0].line, 10);
  EXPECT_EQ(ops[1].line, 11);
  EXPECT_EQ(ops[2].label, "graph");
  EXPECT_EQ(ops[2].line, 7);
  EXPECT_EQ(program.op_count, 4U);
}

TEST(TaskGraph, GraphsOfOneThreadShareTheirStreams) {
  const std::string one = "task_graph: {tasks: [elementwise: {dst: x(0)}, elementwise: {dst: z}]}";
  const Program program =
      read(fmt::format("{}threads: {{main: [{}, {}], other: [{}]}}\n", kHead, one, one,
                       "task_graph: {tasks: [elementwise: {dst: y(0)}]}"));
  EXPECT_EQ(program.streams.size(), 4U + 2U + 1U);
}

TEST(TaskGraph, IndicesOfLoopsAroundItAreFollowed) {
  // In every iteration x(i) and x(1 - i) are different buffers: no dependence.
  const Program program = read(
      std::string{kHead} +
      "threads: {main: [repeat: {index: i, times: 2, ops: [task_graph: {tasks: ["
      "memset_async: {device: 0, dst: x(i)}, memset_async: {device: 0, dst: x(1 - i)}]}]}]}\n");
  EXPECT_EQ(std::get<Repeat>(program.threads[0].ops[0].kind).ops.size(), 4U);
  EXPECT_TRUE(program.events.empty());
}

// ---- errors -------------------------------------------------------------------------------------

TEST(BadTaskGraph, WhatCannotBeATask) {
  EXPECT_EQ(problems_of(graph("gem: {m: 1}")),
            "5:39 error: 'gem' cannot be a task | did you mean 'gemm'?\n");
  EXPECT_EQ(
      problems_of(graph("host_barrier: {}")),
      "5:39 error: 'host_barrier' cannot be a task | known here: host_compute, host_fill, "
      "host_parallel, read_file, spin, gemm, elementwise, reduction, memcpy_async, memset_async\n");
  EXPECT_EQ(problems_of(graph("spin")),
            "5:39 error: a task is one operation with its keys: 'name: {...}'\n");
}

TEST(BadTaskGraph, AStream) {
  EXPECT_EQ(problems_of(graph("spin: {stream: default, duration: 1us}")),
            "5:54 error: a task has no stream: it is placed on one | 'device' says on which GPU it "
            "runs\n");
}

TEST(BadTaskGraph, ADeviceThatIsNotThereOrNotMeant) {
  EXPECT_EQ(problems_of(graph("spin: {device: 2, duration: 1us}")),
            "5:54 error: '2' must be between 0 and 1: it is 2\n");
  EXPECT_EQ(problems_of(graph("host_compute: {device: 0, duration: 1us}")),
            "5:54 error: unknown key 'device' in host_compute of a task_graph | known here: id, "
            "duration, after\n");
}

TEST(BadTaskGraph, AnUnknownOrLaterTask) {
  EXPECT_EQ(problems_of(graph("spin: {id: one, duration: 1us}, "
                              "spin: {duration: 1us, after: [on]}, spin: {id: on, duration: 1us}")),
            "5:101 error: no task before this one has the id 'on' | did you mean 'one'?\n");
  EXPECT_EQ(problems_of(graph("spin: {duration: 1us, after: one}")),
            "5:68 error: 'after' is a list of ids: [a, b]\n");
}

TEST(BadTaskGraph, BuffersThatChangeTheDevice) {
  EXPECT_EQ(
      problems_of(std::string{kHead} +
                  "threads: {main: [repeat: {index: i, times: 2, ops: [task_graph: {tasks: "
                  "[memset_async: {dst: x(i)}]}]}]}\n"),
      "5:88 error: the task's buffers do not always lie on one device | write one task for each\n");
}

TEST(BadTaskGraph, MoreTasksThanAnyoneWrites) {
  std::string tasks;
  for (int i = 0; i < 1001; ++i) tasks += "spin: {duration: 1us}, ";
  EXPECT_EQ(problems_of(graph(tasks)), "5:38 error: more than 1000 tasks\n");
}

TEST(BadTaskGraph, TasksThatAreNoList) {
  EXPECT_EQ(problems_of(std::string{kHead} + "threads: {main: [task_graph: {tasks: {}}]}\n"),
            "5:38 error: tasks are a list: '- name: {...}' in each line\n");
  EXPECT_EQ(problems_of(std::string{kHead} + "threads: {main: [task_graph: {}]}\n"),
            "5:30 error: task_graph needs 'tasks'\n");
}

}  // namespace
}  // namespace foretrace
