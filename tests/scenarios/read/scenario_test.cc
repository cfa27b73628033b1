#include "scenarios/read/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <set>

#include "scenarios/base/text/data_directory.h"
#include "tests/scenarios/reading.h"

namespace foretrace {
namespace {

using namespace literals;
using reading_test::problems_of;
using reading_test::read;
using reading_test::scenario_with;
using ::testing::ElementsAre;

template <class Struct>
const Struct& first_op(const Program& program) {
  return std::get<Struct>(program.threads.at(0).ops.at(0).kind);
}

TEST(ReadScenario, TakesNameSummaryAndCounts) {
  const Program program = read(
      "# What it shows.\nschema_version: 1\nname: a-b.1\nnodes: 2\n"
      "processes: 4\ndevices: 3\nwarmup: 0\nthreads: {main: []}\n");
  EXPECT_EQ(program.name, "a-b.1");
  EXPECT_EQ(program.summary, "What it shows.");
  EXPECT_EQ(program.file, "test.yaml");
  EXPECT_EQ(program.nodes, 2U);
  EXPECT_EQ(program.processes, 4U);
  EXPECT_EQ(program.devices, 3U);
  EXPECT_EQ(program.warmup, 0U);
  ASSERT_EQ(program.threads.size(), 1U);
  EXPECT_THAT(program.threads[0].processes, ElementsAre(0, 1, 2, 3));
}

TEST(ReadScenario, DefaultsToOneOfEverythingAndOneWarmup) {
  const Program program = read("schema_version: 1\nname: a\nthreads: {main: []}\n");
  EXPECT_EQ(program.nodes, 1U);
  EXPECT_EQ(program.processes, 1U);
  EXPECT_EQ(program.devices, 1U);
  EXPECT_EQ(program.warmup, 1U);
}

TEST(ReadScenario, BeginsTheStreamsWithTheDefaultOnesOfEachDevice) {
  const Program program = read(scenario_with("device_synchronize: {}"));
  ASSERT_EQ(program.streams.size(), 5U);
  EXPECT_EQ(program.streams[0].name, "default(0)");
  EXPECT_EQ(program.streams[1].name, "default(1)");
  EXPECT_EQ(program.streams[1].kind, StreamKind::LegacyDefault);
  EXPECT_EQ(program.streams[3].name, "per_thread(1)");
  EXPECT_EQ(program.streams[3].kind, StreamKind::PerThreadDefault);
  EXPECT_EQ(program.streams[3].device, 1U);
  EXPECT_EQ(program.streams[4].name, "s");
  EXPECT_EQ(program.streams[4].kind, StreamKind::NonBlocking);
}

TEST(ReadScenario, AnOmittedStreamIsTheLegacyDefaultOfDeviceZero) {
  const Program program =
      read(scenario_with("spin: {duration: 1us}\n"
                         "spin: {stream: default, duration: 1us}\n"
                         "spin: {stream: current, duration: 1us}\n"
                         "spin: {stream: default(1), duration: 1us}\n"
                         "spin: {stream: per_thread(1), duration: 1us}"));
  std::vector<std::uint32_t> ids;
  const std::array variables{std::int64_t{0}};
  for (const Op& op : program.threads[0].ops) {
    ids.push_back(std::get<Spin>(op.kind).stream.resolve(variables).value);
  }
  EXPECT_THAT(ids, ElementsAre(0, 0, 0, 1, 3));
}

TEST(ReadScenario, FamiliesCountByDeviceThenByNumber) {
  const Program program = read(
      "schema_version: 1\nname: a\ndevices: 2\n"
      "streams: {x: {each: device, count: 3}, y: {each: device}, z: {count: 2, device: 1}, "
      "u: {device: 1}}\nthreads: {main: [{spin: {stream: 'x(1, 2)', duration: 1us}}]}\n");
  ASSERT_EQ(program.streams.size(), 4U + 6 + 2 + 2 + 1);
  EXPECT_EQ(program.streams[4].name, "x(0, 0)");
  EXPECT_EQ(program.streams[9].name, "x(1, 2)");
  EXPECT_EQ(program.streams[9].device, 1U);
  EXPECT_EQ(program.streams[11].name, "y(1)");
  EXPECT_EQ(program.streams[11].device, 1U);
  EXPECT_EQ(program.streams[13].name, "z(1)");
  EXPECT_EQ(program.streams[13].device, 1U);
  EXPECT_EQ(program.streams[14].name, "u");
  EXPECT_EQ(first_op<Spin>(program).stream.resolve(std::array{std::int64_t{0}}).value, 9U);
}

TEST(ReadScenario, IndicesFollowLoopsAndTheProcess) {
  const Program program = read(
      "schema_version: 1\nname: a\nprocesses: 2\nevents: {e: {count: 4}}\nthreads:\n  main:\n"
      "    - repeat: {times: 3, ops: [{repeat: {index: j, times: 5, ops: "
      "[{event_record: {event: e((j + process) % 4)}}]}}]}\n");
  const auto& outer = first_op<Repeat>(program);
  const auto& inner = std::get<Repeat>(outer.ops[0].kind);
  const auto& record = std::get<EventRecord>(inner.ops[0].kind);
  // Slot 0 is the process, 1 the outer loop (without a name), 2 the inner.
  EXPECT_EQ(record.event.resolve(std::array<std::int64_t, 3>{1, 2, 4}).value, 1U);
  EXPECT_EQ(record.event.index.to_string(), "((((v2) + (v0))) % (4))");
}

TEST(ReadScenario, BlocksStayBlocksAndOpsAreNumberedInTheOrderOfTheFile) {
  const Program program = read(scenario_with(
      "region: {name: r, per: 4, ops: [{repeat: {times: 10000000, ops: [{spin: {duration: 1us}}, "
      "{spin: {duration: 2us}}]}}]}\ndevice_synchronize: {}"));
  EXPECT_EQ(program.op_count, 5U);
  const Block& ops = program.threads[0].ops;
  EXPECT_EQ(ops[0].id, OpId{0});
  EXPECT_EQ(ops[1].id, OpId{4});
  const auto& region = std::get<Region>(ops[0].kind);
  EXPECT_EQ(region.per, 4U);
  EXPECT_EQ(std::get<Repeat>(region.ops[0].kind).times, 10'000'000U);
  EXPECT_EQ(ops[0].line, reading_test::kFirstOpLine);
  EXPECT_EQ(ops[0].column, reading_test::kOpColumn);
}

TEST(ReadScenario, ForEachReadsAsARepeat) {
  const Program program = read(
      scenario_with("for_each: {index: d, in: devices, ops: [{device_synchronize: {device: d}}]}"));
  EXPECT_EQ(first_op<Repeat>(program).times, 2U);
}

TEST(ReadScenario, ParametersCanBeSetFromOutside) {
  const std::string text = scenario_with("memset: {dst: x}");
  EXPECT_EQ(first_op<Memset>(read(text)).size.expr, Expr{1 << 20});
  EXPECT_EQ(first_op<Memset>(read(text, {{"size", "16MiB"}})).size.expr, Expr{16 << 20});
  EXPECT_NE(read(text).hash, read(text, {{"size", "16MiB"}}).hash);
}

TEST(ReadScenario, ParametersMayUseEarlierOnesAndHoldWords) {
  const Program program = read(
      "schema_version: 1\nname: a\nparameters: {n: 64, size: $n * $n * 4B, kind: pinned}\n"
      "buffers: {x: {memory: $kind, size: $size}}\nthreads: {main: []}\n");
  EXPECT_EQ(program.buffers[0].size, 16_KiB);
  EXPECT_EQ(program.buffers[0].memory, MemoryKind::Pinned);
}

TEST(ReadScenario, AParameterThatNothingUsesIsAWarning) {
  EXPECT_EQ(problems_of("schema_version: 1\nname: a\nparameters: {n: 64}\nthreads: {main: []}\n"),
            "3:14 warning: parameter 'n' is used nowhere\n");
}

TEST(ReadScenario, SizesDefaultToTheWholeBuffer) {
  const Program program = read(scenario_with("memcpy_async: {stream: s, src: host, dst: x}"));
  const auto& copy = first_op<MemcpyAsync>(program);
  EXPECT_EQ(copy.size.eval({}), 1_MiB);
  EXPECT_EQ(copy.src_offset.eval({}), 0_B);
}

TEST(ReadScenario, ReadScalarIsACopyToPageableMemoryAndAStreamSynchronize) {
  const Program program = read(scenario_with("read_scalar: {id: item, src: x, stream: s}"));
  ASSERT_EQ(program.threads[0].ops.size(), 2U);
  const Op& first = program.threads[0].ops[0];
  const Op& second = program.threads[0].ops[1];
  const auto& copy = std::get<MemcpyAsync>(first.kind);
  EXPECT_EQ(copy.size.eval({}), 4_B);
  EXPECT_EQ(program.buffers.at(copy.dst.first.value).memory, MemoryKind::Pageable);
  EXPECT_EQ(program.buffers.at(copy.dst.first.value).size, 4_B);
  EXPECT_EQ(std::get<StreamSynchronize>(second.kind).stream, copy.stream);
  EXPECT_EQ(first.label, "item");
  EXPECT_EQ(second.label, "item");
  EXPECT_EQ(program.op_count, 2U);
}

TEST(ReadScenario, ACommunicatorHasOneHandleForEachDevice) {
  const Program program = read(
      "schema_version: 1\nname: a\nprocesses: 2\ndevices: 2\ncommunicators:\n"
      "  world: {members: all_devices}\n  pair: {members: [[1, 1], [0, 0]], init: op}\n"
      "threads: {main: []}\n");
  ASSERT_EQ(program.communicators.size(), 2U);
  EXPECT_EQ(program.communicators[0].init, CommInit::Rank);
  EXPECT_THAT(program.communicators[0].members,
              ElementsAre(RankPlace{0, 0}, RankPlace{0, 1}, RankPlace{1, 0}, RankPlace{1, 1}));
  EXPECT_THAT(program.communicators[1].members, ElementsAre(RankPlace{1, 1}, RankPlace{0, 0}));
  ASSERT_EQ(program.comms.size(), 4U);
  EXPECT_EQ(program.comms[3].communicator, 1U);
  EXPECT_EQ(program.comms[3].device, 1U);
}

TEST(ReadScenario, OneProcessInitialisesItsCommunicatorAtOnce) {
  const Program program = read(
      "schema_version: 1\nname: a\ncommunicators: {w: {members: all_devices}}\nthreads: {main: "
      "[{nccl_all_reduce: {comm: w, buffer: x, type: float32}}]}\n"
      "buffers: {x: {memory: device, size: 1KiB}}\n");
  EXPECT_EQ(program.communicators[0].init, CommInit::All);
}

/// With four ranks: what one rank sends or gets, when the operation gives no size.
TEST(ReadScenario, CollectiveSizesDefaultToWhatOneRankHolds) {
  const auto size_of_op = [](const std::string& op) {
    const Program program = read(
        "schema_version: 1\nname: a\nprocesses: 4\ncommunicators: {w: {members: all_devices}}\n"
        "buffers: {small: {memory: device, size: 1KiB}, large: {memory: device, size: 4KiB}}\n"
        "threads: {main: [" +
        op + "]}\n");
    return first_op<NcclCollective>(program).size.eval({}).count;
  };
  EXPECT_EQ(size_of_op("{nccl_all_reduce: {comm: w, buffer: large, type: float32}}"), 4096U);
  EXPECT_EQ(size_of_op("{nccl_all_gather: {comm: w, buffer: large, type: float32}}"), 1024U);
  EXPECT_EQ(size_of_op("{nccl_all_gather: {comm: w, send_buffer: small, recv_buffer: large, type: "
                       "float32}}"),
            1024U);
  EXPECT_EQ(size_of_op("{nccl_reduce_scatter: {comm: w, send_buffer: large, recv_buffer: small, "
                       "type: float32}}"),
            1024U);
  EXPECT_EQ(size_of_op("{nccl_all_to_all: {comm: w, buffer: large, type: float32}}"), 1024U);
}

TEST(ReadScenario, ACollectiveThatFitsNoBufferIsAnError) {
  EXPECT_EQ(problems_of("schema_version: 1\nname: a\nprocesses: 4\n"
                        "communicators: {w: {members: all_devices}}\n"
                        "buffers: {x: {memory: device, size: 1KiB}}\nthreads:\n  main:\n"
                        "    - nccl_all_gather: {comm: w, buffer: x, type: float32, size: 1KiB}\n"),
            "8:66 error: size '1KiB' is larger than what the buffers hold for each rank, 256 B: "
            "it is 1024\n");
}

TEST(ReadScenario, TheNcclStreamDefaultsToTheDeviceOfTheCommunicator) {
  const Program program = read(
      "schema_version: 1\nname: a\ndevices: 2\ncommunicators: {w: {members: all_devices}}\n"
      "buffers: {x: {memory: device, size: 1KiB, each: device}}\nthreads: {main: [{nccl_group: "
      "{ops: [{for_each: {index: d, in: devices, ops: [{nccl_all_reduce: {comm: w(d), buffer: "
      "x(d), type: float32}}]}}]}}]}\n");
  const auto& group = first_op<NcclGroup>(program);
  const auto& loop = std::get<Repeat>(group.ops[0].kind);
  const auto& collective = std::get<NcclCollective>(loop.ops[0].kind);
  EXPECT_EQ(collective.stream.resolve(std::array<std::int64_t, 2>{0, 1}).value, 1U);
}

TEST(ReadScenario, BarriersKnowWhoArrives) {
  const Program program = read(
      "schema_version: 1\nname: a\nprocesses: 3\nthreads:\n"
      "  one: [{host_barrier: {}}, {host_barrier: {name: b}}, {host_barrier: {}}]\n"
      "  two: {processes: [0, 2], ops: [{host_barrier: {name: b}}]}\n");
  ASSERT_EQ(program.barriers.size(), 2U);
  EXPECT_EQ(program.barriers[0].name, "");
  EXPECT_EQ(program.barriers[0].parties.size(), 3U);
  EXPECT_EQ(program.barriers[1].name, "b");
  ASSERT_EQ(program.barriers[1].parties.size(), 5U);
  EXPECT_EQ(program.barriers[1].parties[4].process, 2U);
  EXPECT_EQ(program.barriers[1].parties[4].thread, 1U);
}

TEST(ReadScenario, EventsBelongToTheDeviceThatRecordsThem) {
  const Program program = read(
      "schema_version: 1\nname: a\ndevices: 2\nevents: {e: {count: 2}}\nthreads:\n  main:\n"
      "    - for_each: {index: d, in: 2, ops: [{event_record: {event: e(d), stream: "
      "default(d)}}]}\n");
  EXPECT_EQ(program.events[0].device, 0U);
  EXPECT_EQ(program.events[1].device, 1U);
}

TEST(ReadScenario, BuffersThatTheProgramAllocatesAreMarked) {
  const Program program = read(
      "schema_version: 1\nname: a\nbuffers: {x: {memory: device, size: 1KiB, count: 3}}\n"
      "threads: {main: [{repeat: {index: i, times: 2, ops: [{malloc: {buffer: x(i)}}]}}]}\n");
  EXPECT_TRUE(program.buffers[0].allocated_by_program);
  EXPECT_TRUE(program.buffers[1].allocated_by_program);
  EXPECT_FALSE(program.buffers[2].allocated_by_program);
}

TEST(ReadScenario, ExpectationsCarryTheirNamesAndBounds) {
  const Program program = read(scenario_with("region: {name: r, ops: [{spin: {id: k, duration: "
                                             "1us}}, {memset: {id: m, dst: x}}]}") +
                               "expect:\n"
                               "  - overlap: {spans: [k, m], at_least: 80%}\n"
                               "  - host_free: {after: k, within: 100us}\n"
                               "  - order: {first: k, then: m}\n"
                               "  - total: {region: r, at_most: 1ms}\n"
                               "  - ratio: {regions: [r, r], at_least: 0.9, at_most: 110%}\n");
  ASSERT_EQ(program.expectations.size(), 5U);
  EXPECT_THAT(program.expectations[0].spans, ElementsAre("k", "m"));
  EXPECT_EQ(program.expectations[0].fraction, 0.8);
  EXPECT_EQ(program.expectations[1].at_most, 100_us);
  EXPECT_THAT(program.expectations[2].spans, ElementsAre("k", "m"));
  EXPECT_EQ(program.expectations[3].at_most, 1000_us);
  EXPECT_FALSE(program.expectations[3].at_least);
  EXPECT_EQ(program.expectations[4].fraction, 0.9);
  EXPECT_EQ(program.expectations[4].fraction_at_most, 1.1);
  EXPECT_EQ(program.expectations[4].line, 24);
}

TEST(ReadScenario, ExpectationsAboutCallsAndEndsNameTheirSpansInOrder) {
  const Program program = read(scenario_with("spin: {id: k, duration: 1us}") +
                               "expect:\n"
                               "  - returns_before: {call: k, end_of: k}\n"
                               "  - begins_within: {then: k, after: k, within: 20us}\n"
                               "  - host_blocked: {in: k, at_least: 200us}\n"
                               "  - lasts: {span: k, at_least: 1us, at_most: 2us}\n"
                               "  - hangs: {at: k}\n");
  ASSERT_EQ(program.expectations.size(), 5U);
  EXPECT_THAT(program.expectations[0].spans, ElementsAre("k", "k"));
  EXPECT_EQ(program.expectations[1].at_most, 20_us);
  EXPECT_EQ(program.expectations[2].at_least, 200_us);
  EXPECT_EQ(program.expectations[3].at_most, 2_us);
  EXPECT_THAT(program.expectations[4].spans, ElementsAre("k"));
}

TEST(ReadScenario, ReadsEveryOperationAndKeyOfTheLanguage) {
  const Program program =
      load_scenario(data_directory().string() + "/tests/scenarios/data/everything.yaml");
  EXPECT_EQ(program.op_count, 68U);
}

TEST(ReadScenario, ReadsEveryShippedFileUnderANameOfItsOwn) {
  std::set<std::string> names;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator{data_directory().string() + "/scenarios"}) {
    if (entry.path().extension() != ".yaml") continue;
    const Program program = load_scenario(entry.path());
    EXPECT_TRUE(names.insert(program.name).second) << program.name;
    EXPECT_FALSE(program.summary.empty()) << entry.path();
  }
  EXPECT_FALSE(names.empty());
}

}  // namespace
}  // namespace foretrace
