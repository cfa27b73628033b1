// torch.distributed: what its operations read as, each against the same program written by hand.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/base/text/data_directory.h"
#include "tests/scenarios/reading.h"

namespace foretrace {
namespace {

using reading_test::problems_of;
using reading_test::read;
using ::testing::ElementsAre;

constexpr std::string_view kFourProcesses =
    "schema_version: 1\nname: a\nprocesses: 4\n"
    "buffers: {x: {memory: device, size: 4KiB}, y: {memory: device, size: 4KiB}, "
    "part: {memory: device, size: 1KiB}}\n";

/// A scenario of four processes; the operations are in line 6 from column 16 on.
std::string torch(std::string_view ops, std::string_view group = "{ranks: all, init: eager}") {
  return fmt::format("{}process_groups: {{world: {}}}\nthreads: {{main: [{}]}}\n", kFourProcesses,
                     group, ops);
}

/// The same with what a process group owns, by its usual names, and a work w.
std::string by_hand(std::string_view ops, std::string_view init = "rank") {
  return fmt::format(
      "{}communicators: {{c: {{members: all_devices, init: {}}}}}\n"
      "streams: {{pg: {{flags: non_blocking}}}}\n"
      "events: {{ready: {{timing: false}}, done: {{timing: false}}, w: {{timing: false}}}}\n"
      "threads: {{main: [{}]}}\n",
      kFourProcesses, init, ops);
}

/// Both without the line of the work, which only some programs have.
void expect_same_program(std::string torchs, std::string by_hands, bool has_work = true) {
  Program lowered = read(torchs);
  Program written = read(by_hands);
  if (!has_work) written.events.pop_back();
  EXPECT_EQ(canonical_text(lowered), canonical_text(written));
}

const std::string kBegin =
    "{event_record: {event: ready}}, {stream_wait_event: {stream: pg, event: ready}}, ";

TEST(TorchLowering, ASynchronousCollectiveHoldsTheCurrentStream) {
  expect_same_program(
      torch("{all_reduce: {group: world, buffer: x, type: float32, op: max}}"),
      by_hand(kBegin +
              "{nccl_all_reduce: {comm: c, stream: pg, buffer: x, type: float32, op: max}},"
              "{event_record: {event: done, stream: pg}},"
              "{stream_wait_event: {event: done}}"),
      false);
}

TEST(TorchLowering, AnAsynchronousOneHoldsNothingUntilTheWait) {
  expect_same_program(
      torch("{all_reduce: {group: world, buffer: x, type: float32, async: true, work: w}}, "
            "{work_is_completed: {work: w}}, {work_wait: {work: w}}"),
      by_hand(kBegin + "{nccl_all_reduce: {comm: c, stream: pg, buffer: x, type: float32}},"
                       "{event_record: {event: w, stream: pg}}, {event_query: {event: w}},"
                       "{stream_wait_event: {event: w}}"));
}

TEST(TorchLowering, AWaitWithATimeoutPollsOnTheHost) {
  const std::string send = "{isend: {group: world, buffer: x, type: float32, peer: 1, work: w}}, ";
  const std::string sent = kBegin +
                           "{nccl_send: {comm: c, stream: pg, buffer: x, type: float32, peer: 1}},"
                           "{event_record: {event: w, stream: pg}}, ";
  expect_same_program(torch(send + "{work_wait: {work: w, timeout: 2s}}"),
                      by_hand(sent + "{event_wait_for: {event: w, timeout: 2s, poll: 1ms}}"));
  expect_same_program(torch(send + "{work_wait: {work: w, timeout: 2s, poll: 5us}}"),
                      by_hand(sent + "{event_wait_for: {event: w, timeout: 2s, poll: 5us}}"));
}

TEST(TorchLowering, EveryCollectiveIsItsNcclTwin) {
  const auto expect_twin = [](const std::string& torchs, const std::string& nccls) {
    SCOPED_TRACE(torchs);
    const auto split = [](const std::string& text) {
      const auto colon = text.find(": ");
      return std::pair{text.substr(0, colon), text.substr(colon + 2)};
    };
    const auto [name, keys] = split(torchs);
    const auto [nccl_name, nccl_keys] = split(nccls);
    expect_same_program(
        torch(fmt::format("{{{}: {{group: world, type: float32, {}}}}}", name, keys)),
        by_hand(fmt::format("{}{{{}: {{comm: c, stream: pg, type: float32, {}}}}},"
                            "{{event_record: {{event: done, stream: pg}}}},"
                            "{{stream_wait_event: {{event: done}}}}",
                            kBegin, nccl_name, nccl_keys)),
        false);
  };
  const std::string moved = "send_buffer: x, recv_buffer: y";
  const std::string gathered = "send_buffer: part, recv_buffer: x";
  const std::string scattered = "send_buffer: x, recv_buffer: part";
  expect_twin("all_reduce: input: x, output: y", "nccl_all_reduce: " + moved);
  expect_twin("broadcast: buffer: x, src: 3", "nccl_broadcast: buffer: x, root: 3");
  expect_twin("reduce: buffer: x, dst: 2, op: min", "nccl_reduce: buffer: x, root: 2, op: min");
  expect_twin("all_gather: input: part, output: x", "nccl_all_gather: " + gathered);
  expect_twin("reduce_scatter: input: x, output: part", "nccl_reduce_scatter: " + scattered);
  expect_twin("all_to_all: input: x, output: y", "nccl_all_to_all: " + moved);
  expect_twin("gather: input: part, output: x, dst: 1", "nccl_gather: root: 1, " + gathered);
  expect_twin("scatter: input: x, output: part, src: 1", "nccl_scatter: root: 1, " + scattered);
  expect_twin("send: buffer: x, dst: (process + 1) % 4, size: 1KiB",
              "nccl_send: buffer: x, peer: (process + 1) % 4, size: 1KiB");
  expect_twin("recv: buffer: x, src: 1", "nccl_recv: buffer: x, peer: 1");
}

TEST(TorchLowering, ABatchIsOneGroupWithOneWork) {
  expect_same_program(
      torch("{batch_isend_irecv: {group: world, work: w, ops: ["
            "{isend: {buffer: x, type: float32, dst: (process + 1) % processes}}, "
            "{irecv: {buffer: y, type: float32, src: (process - 1) % processes}}]}}"),
      by_hand(kBegin +
              "{nccl_group: {ops: ["
              "{nccl_send: {comm: c, stream: pg, buffer: x, type: float32, peer: (process + 1) % "
              "processes}}, "
              "{nccl_recv: {comm: c, stream: pg, buffer: y, type: float32, peer: (process - 1) % "
              "processes}}]}}, {event_record: {event: w, stream: pg}}"));
}

TEST(TorchLowering, ABarrierSumsOneElementAndHoldsTheHost) {
  const Program program = read(torch("{barrier: {group: world}}"));
  std::vector<std::string> kinds;
  for (const Op& op : program.threads[0].ops) kinds.push_back(kind_name(op.kind));
  EXPECT_THAT(kinds, ElementsAre("event_record", "stream_wait_event", "nccl_all_reduce",
                                 "event_record", "stream_wait_event", "stream_synchronize"));
  const auto& sum = std::get<NcclCollective>(program.threads[0].ops[2].kind);
  EXPECT_EQ(program.buffers.at(sum.send.first.value).size.count, 4U);
  EXPECT_EQ(program.op_count, 6U);
}

TEST(TorchLowering, TheCurrentStreamCanBeAnyStream) {
  const Program program = read(
      torch("{broadcast: {group: world, stream: per_thread, buffer: x, type: float32, root: 0}}"));
  EXPECT_EQ(std::get<EventRecord>(program.threads[0].ops[0].kind).stream.first.value, 1U);
  EXPECT_EQ(std::get<StreamWaitEvent>(program.threads[0].ops[4].kind).stream.first.value, 1U);
}

TEST(TorchLowering, ADeclaredFamilyOfEventsHoldsIndexedWorks) {
  const Program program =
      read(torch("{repeat: {index: i, times: 4, ops: [{all_reduce: {group: world, buffer: x, type: "
                 "float32, async: true, work: w(i % 2)}}, {work_wait: {work: w((i + 1) % 2)}}]}}") +
           "events: {w: {count: 2}}\n");
  const auto& loop = std::get<Repeat>(program.threads[0].ops[0].kind);
  EXPECT_EQ(program.events.size(), 2U + 2U);
  EXPECT_EQ(std::get<EventRecord>(loop.ops[3].kind)
                .event.resolve(std::array<std::int64_t, 2>{0, 3})
                .value,
            1U);
  EXPECT_EQ(loop.ops[4].label, "w");
}

TEST(TorchLowering, TheIdGoesToTheNcclOperationAndAWaitIsNamedAfterItsWork) {
  const Program program = read(
      torch("{all_reduce: {id: ar, group: world, buffer: x, type: float32, async: true, work: w}}, "
            "{work_wait: {work: w}}, {work_wait: {id: again, work: w}}"));
  std::vector<std::string> labels;
  for (const Op& op : program.threads[0].ops) labels.push_back(op.label);
  EXPECT_THAT(labels, ElementsAre("", "", "ar", "", "w", "again"));
}

TEST(TorchLowering, EachHostThreadHasEventsOfItsOwn) {
  const Program program = read(std::string{kFourProcesses} +
                               "process_groups: {world: {}}\nthreads:\n"
                               "  one: [{all_reduce: {group: world, buffer: x, type: float32}}]\n"
                               "  two: [{all_reduce: {group: world, buffer: y, type: float32}}]\n");
  ASSERT_EQ(program.events.size(), 4U);
  EXPECT_EQ(program.events[0].name, "world.ready(one, 0)");
  EXPECT_EQ(program.events[3].name, "world.done(two, 0)");
}

// ---- process groups -----------------------------------------------------------------------------

TEST(ProcessGroups, OfSomeRanksCountTheirOwn) {
  const Program program =
      read(std::string{kFourProcesses} +
           "process_groups: {some: {ranks: [1, 3]}}\nthreads: {main: {processes: [1, 3], ops: "
           "[{broadcast: {group: some, buffer: x, type: float32, src: 3}}]}}\n");
  EXPECT_THAT(program.communicators[0].members, ElementsAre(RankPlace{1, 0}, RankPlace{3, 0}));
  EXPECT_EQ(std::get<NcclCollective>(program.threads[0].ops[2].kind).root, Expr{1});
}

TEST(ProcessGroups, OfOneProcessHaveItsDevicesAsRanks) {
  const Program program = read(
      "schema_version: 1\nname: a\ndevices: 2\nprocess_groups: {world: {init: eager}}\n"
      "buffers: {x: {memory: device, size: 1KiB, each: device}}\n"
      "threads:\n"
      "  zero: [{all_reduce: {group: world(0), buffer: x(0), type: float32}}]\n"
      "  one: [{all_reduce: {group: world(1), buffer: x(1), type: float32}}]\n");
  EXPECT_EQ(program.communicators[0].init, CommInit::All);
  EXPECT_THAT(program.communicators[0].members, ElementsAre(RankPlace{0, 0}, RankPlace{0, 1}));
  const auto& call = std::get<NcclCollective>(program.threads[1].ops[2].kind);
  EXPECT_EQ(program.streams[call.stream.resolve({}).value].name, "world.stream(1)");
  EXPECT_EQ(program.streams[call.stream.resolve({}).value].kind, StreamKind::NonBlocking);
}

TEST(ProcessGroups, LazyOnesAreMadeByTheirFirstCallWhenNothingWarmsUp) {
  const std::string op = "{all_reduce: {group: world, buffer: x, type: float32}}";
  const Program warm = read(torch(op, "{init: lazy}"));
  EXPECT_EQ(warm.communicators[0].init, CommInit::Rank);
  EXPECT_EQ(warm.op_count, 5U);

  const Program eager = read(torch(op, "{init: eager}") + "warmup: 0\n");
  EXPECT_EQ(eager.communicators[0].init, CommInit::Rank);
  EXPECT_EQ(eager.op_count, 5U);

  const Program cold = read(torch(op + ", " + op, "{init: lazy}") + "warmup: 0\n");
  EXPECT_EQ(cold.communicators[0].init, CommInit::Op);
  ASSERT_EQ(cold.op_count, 12U);
  EXPECT_TRUE(std::get<NcclCommInit>(cold.threads[0].ops[0].kind).if_needed);
  EXPECT_TRUE(std::get<NcclCommInit>(cold.threads[0].ops[6].kind).if_needed);
}

TEST(ProcessGroups, ReadEveryKey) {
  const Program program =
      load_scenario(data_directory().string() + "/tests/scenarios/data/torch.yaml");
  EXPECT_EQ(program.op_count, 118U);
}

// ---- errors -------------------------------------------------------------------------------------

std::string problems_with(std::string_view op,
                          std::string_view group = "{ranks: all, init: eager}") {
  return problems_of(torch(op, group));
}

TEST(BadTorch, AnAsynchronousOperationWithoutAWork) {
  EXPECT_EQ(problems_with("{all_reduce: {group: world, buffer: x, type: float32, async: true}}"),
            "6:79 error: async: true needs 'work': a name for work_wait\n");
}

TEST(BadTorch, AWorkOfASynchronousOperation) {
  EXPECT_EQ(problems_with("{all_reduce: {group: world, buffer: x, type: float32, work: w}}"),
            "6:78 error: only an asynchronous operation gives a work | add async: true, or leave "
            "'work' out\n");
}

TEST(BadTorch, ATransferThatNobodyCanWaitFor) {
  EXPECT_EQ(problems_with("{isend: {group: world, buffer: x, type: float32, peer: 1}}"),
            "6:26 error: isend needs 'work'\n");
}

TEST(BadTorch, AWorkThatNothingGives) {
  EXPECT_EQ(problems_with("{work_wait: {work: w}}"),
            "6:37 error: no operation gives the work 'w' | an operation with async: true and work: "
            "gives one\n");
  EXPECT_EQ(
      problems_with("{all_reduce: {group: world, buffer: x, type: float32, async: true, work: "
                    "gradients}}, {work_is_completed: {work: gradient}}"),
      "6:131 error: no operation gives the work 'gradient' | did you mean 'gradients'?\n");
}

TEST(BadTorch, AnIndexedWorkThatIsNotDeclared) {
  EXPECT_EQ(problems_with("{all_reduce: {group: world, buffer: x, type: float32, async: true, "
                          "work: w(1)}}"),
            "6:91 error: no family of events has the name 'w' | a work with an index is declared: "
            "events: {w: {count: 2}}\n");
}

TEST(BadTorch, PollingWithoutATimeoutAndAStreamWithOne) {
  const std::string send = "{isend: {group: world, buffer: x, type: float32, peer: 1, work: w}}, ";
  EXPECT_EQ(problems_with(send + "{work_wait: {work: w, poll: 5us}}"),
            "6:115 error: 'poll' belongs to a wait with a timeout | without one the stream waits, "
            "and the host does not\n");
  EXPECT_EQ(problems_with(send + "{work_wait: {work: w, stream: current, timeout: 1s}}"),
            "6:117 error: with a timeout the host waits, and no stream\n");
}

TEST(BadTorch, AnUnknownGroup) {
  EXPECT_EQ(problems_with("{barrier: {group: word}}"),
            "6:36 error: unknown process group 'word' | did you mean 'world'?\n");
}

TEST(BadTorch, ARootUnderBothNames) {
  EXPECT_EQ(problems_with("{broadcast: {group: world, buffer: x, type: float32, root: 1, src: 1}}"),
            "6:85 error: either 'root' or 'src', not both\n");
}

TEST(BadTorch, ARankThatIsNotThere) {
  EXPECT_EQ(problems_with("{recv: {group: world, buffer: x, type: float32, src: process + 1}}"),
            "6:71 error: 'process + 1' must be between 0 and 3: it is 4 for process = 3\n");
  EXPECT_EQ(problems_with("{broadcast: {group: world, buffer: x, type: float32, src: 2}}",
                          "{ranks: [1, 3]}"),
            "6:76 error: rank 2 is not in this group\n");
  EXPECT_EQ(problems_with("{recv: {group: world, buffer: x, type: float32, src: 3 - process}}",
                          "{ranks: [1, 3]}"),
            "6:71 error: 'src' must be the same rank everywhere in a group of some ranks only | "
            "'peer' is the rank within the group\n");
}

TEST(BadTorch, AnythingButTransfersInABatch) {
  EXPECT_EQ(problems_with("{batch_isend_irecv: {group: world, work: w, ops: [{barrier: {}}]}}"),
            "6:69 error: 'barrier' cannot stand in a batch_isend_irecv | only isend and irecv "
            "can\n");
  EXPECT_EQ(problems_with("{batch_isend_irecv: {group: world, work: w, ops: []}}"),
            "6:67 error: 'ops' is a list of isend and irecv\n");
  EXPECT_EQ(problems_with("{batch_isend_irecv: {group: world, work: w, ops: [{isend: {group: "
                          "world, buffer: x, type: float32, peer: 1}}]}}"),
            "6:77 error: unknown key 'group' in isend of a batch | known here: id, buffer, type, "
            "size, dst, peer\n");
}

TEST(BadTorch, InAGroupOfNccl) {
  EXPECT_THAT(problems_with("{nccl_group: {ops: [{barrier: {group: world}}]}}"),
              ::testing::HasSubstr("error: 'barrier' cannot stand in an nccl_group"));
}

TEST(BadTorch, RanksThatAreNotAListInOrder) {
  EXPECT_EQ(problems_with("", "{ranks: [3, 1]}"),
            "5:33 error: ranks are listed once each, in ascending order | torch sorts the ranks of "
            "a group\n");
  EXPECT_EQ(problems_with("", "{ranks: [4]}"),
            "5:34 error: '4' must be between 0 and 3: it is 4\n");
  EXPECT_EQ(problems_with("", "{ranks: none}"),
            "5:33 error: unknown ranks 'none' | known here: all\n");
  EXPECT_EQ(problems_with("", "{ranks: []}"),
            "5:33 error: a process group has at least one rank\n");
  EXPECT_EQ(problems_with("", "{init: late}"),
            "5:32 error: unknown way to initialise 'late' | known here: lazy, eager\n");
}

TEST(BadTorch, ANameThatACommunicatorHas) {
  EXPECT_EQ(problems_of(torch("") + "communicators: {world: {members: all_devices}}\n"),
            "5:18 error: 'world' names a communicator already\n");
}

}  // namespace
}  // namespace foretrace
