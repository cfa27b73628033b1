// Chakra's traces and SimAI's workloads as scenarios, from bytes that are made here.
#include "scenarios/interchange/interchange.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "scenarios/base/text/errors.h"
#include "scenarios/interchange/chakra_nodes.h"
#include "scenarios/read/scenario.h"

namespace foretrace::interchange {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string number(std::uint64_t field, std::uint64_t value) {
  return varint(field * 8) + varint(value);
}
std::string bytes(std::uint64_t field, const std::string& what) {
  return varint(field * 8 + 2) + varint(what.size()) + what;
}
std::string message(const std::string& what) { return varint(what.size()) + what; }
std::string attribute(const std::string& name, std::uint64_t value) {
  return bytes(10, bytes(1, name) + number(9, value));
}
std::string node(std::uint64_t id, NodeType type, const std::string& more) {
  return message(number(1, id) + bytes(2, "n") + number(3, static_cast<std::uint64_t>(type)) +
                 more);
}
const std::string kMetadata = message(bytes(1, "0.0.4"));

std::string wrong(const std::string& et) {
  try {
    static_cast<void>(read_chakra({{"t.et", et}}, {"t", 2, 0, 0}));
  } catch (const UsageError& error) {
    return error.what();
  }
  return {};
}

TEST(Chakra, KeepsKernelsCollectivesAndWhatTheyWaitFor) {
  const std::string et =
      kMetadata + node(0, NodeType::Comp, number(7, 100)) +
      node(1, NodeType::CommColl,
           attribute("comm_type", 0) + attribute("comm_size", 1 << 20) + number(5, 0)) +
      node(2, NodeType::Comp,
           number(7, 50) + bytes(5, varint(0) + varint(1)) + attribute("colour", 3));
  const Scenario scenario = read_chakra({{"t.et", et}}, {"t", 2, 0, 0});
  EXPECT_THAT(scenario.text, HasSubstr("spin: {stream: compute, duration: 100000ns"));
  EXPECT_THAT(scenario.text,
              HasSubstr("          - event_record: {stream: compute, event: done(0)}\n"
                        "          - stream_wait_event: {stream: comm, event: done(0)}\n"
                        "          - nccl_all_reduce: {comm: world, stream: comm, send_buffer: a, "
                        "recv_buffer: b, size: 1048576B"));
  EXPECT_THAT(scenario.text, HasSubstr("stream_wait_event: {stream: compute, event: done(0)}"));
  EXPECT_THAT(scenario.notes, Contains("not read: attribute 'colour', 1 times"));
  EXPECT_THAT(scenario.notes,
              Contains("read: 2 kernels, 1 collectives, 0 sends and receives, 0 copies"));
  EXPECT_TRUE(read_scenario(scenario.text, "t.yaml").has_value()) << scenario.text;
}

TEST(Chakra, OrdersByDependenciesThroughNodesWithoutWork) {
  // 5 depends on 9, an operator of the CPU, and that on the copy 7.
  const std::string et =
      kMetadata + node(5, NodeType::Comp, number(7, 1) + number(4, 9)) +
      node(9, NodeType::Comp, number(7, 1) + attribute("is_cpu_op", 1) + number(5, 7)) +
      node(7, NodeType::MemLoad, attribute("tensor_size", 64));
  const std::string text = read_chakra({{"t.et", et}}, {"t", 0, 0, 0}).text;
  EXPECT_LT(text.find("memcpy_async"),
            text.find("stream_wait_event: {stream: compute, event: done(0)}"));
  EXPECT_LT(text.find("stream_wait_event"), text.find("spin: "));
  EXPECT_TRUE(read_scenario(text, "t.yaml").has_value()) << text;
}

/// The order in which kernels of 1 us, 2 us ... come, of files of these names.
std::string order_of(const std::vector<std::string>& names) {
  std::vector<RankFile> files;
  for (const std::string& name : names) {
    files.push_back({name, kMetadata + node(0, NodeType::Comp, number(7, files.size() + 1))});
  }
  std::string order;
  const Scenario scenario = read_chakra(files, {"t", 0, 0, 0});
  for (std::size_t at = 0; (at = scenario.text.find("duration: ", at)) != std::string::npos;) {
    order += scenario.text[at += sizeof("duration: ") - 1];
  }
  const bool is_said = std::ranges::any_of(
      scenario.notes, [](const std::string& note) { return note.ends_with("in their order"); });
  return order + (is_said ? ", said" : "");
}

TEST(Chakra, TakesRanksFromTheNamesOfTheirFiles) {
  std::vector<std::string> names;  // as a shell sorts them: 0, 1, 10, 2 ...
  for (const int rank : {0, 1, 2, 3}) names.push_back(fmt::format("d/t.{}.et", rank));
  std::ranges::swap(names[2], names[3]);
  EXPECT_EQ(order_of(names), "1243");
  EXPECT_EQ(order_of({"b.et", "a.et"}), "12, said");
  EXPECT_THAT(
      [] {
        order_of({"a/t.0.et", "b/t.0.et"});
      },
      testing::ThrowsMessage<UsageError>(HasSubstr("are both of rank 0")));
  EXPECT_THAT(
      [] {
        order_of({"t.3.et", "t.4.et"});
      },
      testing::ThrowsMessage<UsageError>(HasSubstr("t.3.et: 2 traces, and none is of rank 0")));
}

TEST(Chakra, PricesOperationsWithoutADuration) {
  const std::string et =
      kMetadata +
      node(0, NodeType::Comp, attribute("num_ops", 2'000'000) + attribute("tensor_size", 3000));
  // 2e6 operations at 1e12 a second: 2 us; 3 kB at 1 GB/s: 3 us.
  EXPECT_THAT(read_chakra({{"t.et", et}}, {"t", 0, 1e12, 1e9}).text, HasSubstr("duration: 3000ns"));
  EXPECT_THAT(read_chakra({{"t.et", et}}, {"t", 0, 1e12, 0}).text, HasSubstr("duration: 2000ns"));
}

TEST(Chakra, CountsWhatItsFilesLeaveOut) {
  // As PyTorch's converted traces have it: calls into the library are nodes of the CPU.
  const std::string et =
      kMetadata + node(0, NodeType::CommColl, attribute("is_cpu_op", 1) + number(5, 3));
  const Scenario scenario = read_chakra({{"t.et", et}}, {"t", 2, 0, 0});
  EXPECT_THAT(scenario.notes,
              Contains("1 dependencies on nodes that are not in the file: left out"));
  EXPECT_THAT(scenario.notes,
              Contains("1 operators of the CPU: left out, what they order stays ordered"));
}

TEST(Chakra, TakesDataDependenciesAloneWhereControlFormsACircle) {
  const std::string et = kMetadata + node(0, NodeType::Comp, number(7, 3) + number(4, 1)) +
                         node(1, NodeType::Comp, number(7, 5) + number(5, 0));
  const Scenario scenario = read_chakra({{"t.et", et}}, {"t", 2, 0, 0});
  EXPECT_LT(scenario.text.find("3000ns"), scenario.text.find("5000ns"));
  EXPECT_THAT(scenario.notes, Contains(HasSubstr("control dependencies form a circle")));
}

TEST(Chakra, WaitsForWhatIsNeededAndNothingQueuedLater) {
  // The collective 3 needs kernel 0; kernel 1 is queued before it and goes on beside it.
  const std::string et =
      kMetadata + node(0, NodeType::Comp, number(7, 100)) +
      node(1, NodeType::Comp, number(7, 200)) +
      node(3, NodeType::CommColl,
           attribute("comm_type", 0) + attribute("comm_size", 64) + number(5, 0));
  const std::string text = read_chakra({{"t.et", et}}, {"t", 2, 0, 0}).text;
  EXPECT_LT(text.find("event_record"), text.find("200000ns"));
  EXPECT_LT(text.find("200000ns"), text.find("stream_wait_event"));
}

TEST(Chakra, GroupsWhatIsLaunchedAtOnce) {
  const std::string launch = attribute("launch", 4) + attribute("stream", 2);
  const std::string et =
      kMetadata + node(0, NodeType::Metadata, attribute("launch", 4)) +
      node(1, NodeType::CommSend, attribute("comm_dst", 1) + attribute("comm_size", 64) + launch) +
      node(2, NodeType::CommRecv, attribute("comm_src", 1) + attribute("comm_size", 64) + launch) +
      node(3, NodeType::Comp, number(7, 5) + launch);
  const std::string text = read_chakra({{"t.et", et}}, {"t", 2, 0, 0}).text;
  EXPECT_THAT(text, HasSubstr("          - nccl_group:\n              ops:\n                - "
                              "nccl_send: {comm: world, stream: stream_2"));
  EXPECT_THAT(text, HasSubstr("                - nccl_recv: "));
  EXPECT_THAT(text, HasSubstr("          - spin: {stream: stream_2, duration: 5000ns"));
  EXPECT_TRUE(read_scenario(text, "t.yaml").has_value()) << text;
}

TEST(Chakra, KeepsTheStreamsThatATraceNames) {
  const std::string et = kMetadata +
                         node(0, NodeType::Comp, number(7, 100) + attribute("stream", 7)) +
                         node(1, NodeType::Comp, number(7, 200) + attribute("stream", 20));
  const std::string text = read_chakra({{"t.et", et}}, {"t", 0, 0, 0}).text;
  EXPECT_THAT(text, HasSubstr("spin: {stream: stream_7, duration: 100000ns"));
  EXPECT_THAT(text, HasSubstr("spin: {stream: stream_20, duration: 200000ns"));
}

TEST(Chakra, KeepsTheRanksOfProcessGroups) {
  // As PyTorch lists them; rank 2's collective is with rank 0 alone, of 64 bytes each.
  const std::string list =
      "[[{\"pg_name\": \"0\", \"ranks\": []}, {\"pg_name\": \"7\", \"ranks\": [0, 2]}]]";
  const auto trace = [&](const std::string& group) {
    return kMetadata +
           node(0, NodeType::Metadata, bytes(2, kGroupsNode) + bytes(8, bytes(1, list))) +
           node(1, NodeType::CommColl,
                attribute("comm_type", 7) + attribute("comm_size", 128) +
                    bytes(10, bytes(1, "pg_name") + bytes(29, group)));
  };
  const Scenario scenario = read_chakra(
      {{"0.et", trace("7")}, {"1.et", trace("9")}, {"2.et", trace("7")}}, {"t", 0, 0, 0});
  EXPECT_THAT(scenario.text, HasSubstr("members: [[0, 0], [2, 0]], init: rank"));
  EXPECT_THAT(scenario.text, HasSubstr("size: 64B"));
  EXPECT_THAT(scenario.notes,
              Contains("assumed: 1 process groups (pg_name) without a list are all ranks"));
}

TEST(Chakra, ReadsWhatItWrites) {
  ChakraTrace trace;
  trace.version = "1.0.0";
  trace.numbers[kHostInLine] = 1;
  ChakraNode first;
  first.id = 4;
  first.name = "gemm";
  first.type = NodeType::Comp;
  first.duration_us = 3;
  first.numbers = {{"is_cpu_op", 0}, {"duration_ns", 2600}, {"tensor_size", 1 << 20}};
  ChakraNode second;
  second.id = 5;
  second.type = NodeType::CommRecv;
  second.data = {4, 1'000'000};
  second.numbers = {{"comm_src", 3}, {"comm_size", std::int64_t{1} << 40}};
  second.texts = {{"pg_name", "2"}};
  trace.nodes = {first, second};
  const ChakraTrace back = read_chakra_nodes("t.et", chakra_bytes(trace));
  EXPECT_EQ(back.version, "1.0.0");
  EXPECT_EQ(back.numbers, trace.numbers);
  ASSERT_EQ(back.nodes.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(back.nodes[i].id, trace.nodes[i].id);
    EXPECT_EQ(back.nodes[i].name, trace.nodes[i].name);
    EXPECT_EQ(back.nodes[i].type, trace.nodes[i].type);
    EXPECT_EQ(back.nodes[i].duration_us, trace.nodes[i].duration_us);
    EXPECT_EQ(back.nodes[i].data, trace.nodes[i].data);
    EXPECT_EQ(back.nodes[i].numbers, trace.nodes[i].numbers);
    EXPECT_EQ(back.nodes[i].texts, trace.nodes[i].texts);
  }
}

TEST(Chakra, TakesNanosecondsWhereTheyAreSaid) {
  const std::string et = kMetadata +
                         node(0, NodeType::Comp, number(7, 3) + attribute("duration_ns", 2600)) +
                         node(1, NodeType::Comp, number(7, 9) + attribute("duration_ns", 2600));
  const std::string text = read_chakra({{"t.et", et}}, {"t", 0, 0, 0}).text;
  EXPECT_THAT(text, HasSubstr("duration: 2600ns"));
  EXPECT_THAT(text, HasSubstr("duration: 9000ns")) << "of two that differ, the schema's own holds";
}

TEST(Chakra, RefusesWhatIsBroken) {
  EXPECT_THAT(wrong(""), HasSubstr("the file is empty"));
  EXPECT_THAT(wrong(kMetadata + varint(100) + "x"),
              HasSubstr("100 bytes are announced, 1 are there"));
  EXPECT_THAT(wrong(kMetadata + std::string(11, '\xff')), HasSubstr("more than 64 bits"));
  EXPECT_THAT(wrong(kMetadata + node(0, NodeType::Comp, number(5, 1)) +
                    node(1, NodeType::Comp, number(5, 0))),
              HasSubstr("waits for itself"));
  EXPECT_THAT(wrong(kMetadata + node(0, NodeType::CommColl, attribute("comm_type", 77))),
              HasSubstr("comm_type 77"));
  EXPECT_THAT(wrong(kMetadata + node(0, NodeType::CommSend, attribute("comm_dst", 2))),
              HasSubstr("none of 2 ranks"));
  EXPECT_THAT(wrong(kMetadata + node(0, NodeType::Comp, {}) + node(0, NodeType::Comp, {})),
              HasSubstr("of another node"));
}

const std::string kFirst =
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 "
    "all_gpus: 4\n";

TEST(SimAi, ReadsRowsAndGroups) {
  const std::string file = kFirst +
                           "2\n"
                           "attention -1 1000 ALLREDUCE 4096 2000 ALLREDUCE 4096 500 NONE 0 100\n"
                           "mlp -1 3000 NONE 0 1 NONE 0 1 REDUCESCATTER 65536 100\n";
  EXPECT_TRUE(is_simai(file));
  const Scenario scenario = read_simai({"w.txt", file}, {"w", 0, 0, 0});
  EXPECT_THAT(scenario.text, HasSubstr("processes: 4"));
  EXPECT_THAT(scenario.text, HasSubstr("TP: {split: {color: process / 2}, init: rank}"));
  // Two data-parallel ranks: of 64 KiB each keeps 32 KiB.
  EXPECT_THAT(scenario.text, HasSubstr("nccl_reduce_scatter: {comm: DP, stream: gradients, "
                                       "send_buffer: a, recv_buffer: b, size: 32768B"));
  // Backward in reverse order.
  EXPECT_LT(scenario.text.find("comm: DP"), scenario.text.rfind("comm: TP"));
  EXPECT_TRUE(read_scenario(scenario.text, "w.yaml").has_value()) << scenario.text;
}

TEST(SimAi, RefusesWhatItDoesNotKnow) {
  const auto says = [](const std::string& file) -> std::string {
    try {
      static_cast<void>(read_simai({"w.txt", file}, {"w", 0, 0, 0}));
    } catch (const UsageError& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_THAT(says(kFirst + "1\na -1 1 ALLDANCE 1 1 NONE 0 1 NONE 0 1\n"),
              HasSubstr("w.txt:3: word 4: 'ALLDANCE'"));
  EXPECT_THAT(says(kFirst + "2\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n"), HasSubstr("1 of 2 rows"));
  EXPECT_THAT(says(kFirst + "1\na -1 x NONE 0 1 NONE 0 1 NONE 0 1\n"),
              HasSubstr("'x' is no number"));
  EXPECT_THAT(says("HYBRID_TRANSFORMER tp: 2\n1\n"), HasSubstr("'tp' is not known"));
}

}  // namespace
}  // namespace foretrace::interchange
