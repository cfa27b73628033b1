// Communicators and process groups by expression, and exchanges of unequal parts, as they are read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/scenarios/reading.h"

namespace foretrace {
namespace {

using reading_test::problems_of;
using reading_test::read;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Of four processes whose communicator or group `c` is split so, and whose thread is `ops`.
std::string split_by(const std::string& section, const std::string& split, const std::string& ops) {
  return "schema_version: 1\nname: a\nprocesses: 4\nbuffers: {x: {memory: device, size: 1MiB}}\n" +
         section + ": {c: {split: " + split + "}}\nthreads:\n  main:\n" + ops;
}
constexpr const char* kReduceOverAll =
    "    - nccl_all_reduce: {comm: c, buffer: x, type: float32}\n";

/// The communicator of each process in the first operation: "01 01 23 23".
std::string members_seen(const Program& program) {
  std::string text;
  for (const HostThread& thread : program.threads) {
    const auto& op = std::get<NcclCollective>(thread.ops.at(0).kind);
    for (const std::uint32_t process : thread.processes) {
      const CommHandle& handle =
          program.comms[op.comm.resolve(std::array{std::int64_t{process}}).value];
      text += text.empty() ? "" : " ";
      for (const RankPlace& place : program.communicators[handle.communicator].members) {
        text += std::to_string(place.process);
      }
    }
  }
  return text;
}

TEST(Split, MakesACommunicatorForEachColor) {
  EXPECT_EQ(members_seen(read(split_by("communicators", "{color: process / 2}", kReduceOverAll))),
            "01 01 23 23");
  EXPECT_EQ(members_seen(read(split_by("communicators", "{color: process % 2}", kReduceOverAll))),
            "02 13 02 13");
  EXPECT_EQ(
      members_seen(read(split_by("communicators", "{color: 0, key: -process}", kReduceOverAll))),
      "3210 3210 3210 3210");
  const Program program = read(split_by("communicators", "{color: process / 2}", kReduceOverAll));
  EXPECT_EQ(program.communicators.at(1).name, "c(1)");
  EXPECT_EQ(program.threads.size(), 1U);
}

TEST(Split, LeavesOutProcessesWithoutAColor) {
  const std::string some = "{color: 'if(process < 2, 0, -1)'}";
  EXPECT_EQ(problems_of(split_by("communicators", some, kReduceOverAll)),
            "8:31 error: a process is in no part of 'c': its color is -1 for process = 2\n");
  EXPECT_EQ(problems_of(split_by("communicators", some,
                                 "    - when: {condition: process < 2, ops: [nccl_all_reduce: "
                                 "{comm: c, buffer: x, type: float32}]}\n")),
            "");
}

TEST(Split, MakesProcessGroups) {
  const Program program =
      read(split_by("process_groups", "{color: process / 2}",
                    "    - all_reduce: {group: c, buffer: x, type: float32}\n"
                    "    - send: {group: c, buffer: x, type: float32, peer: 1 - process % 2}\n"
                    "    - barrier: {group: c}\n"));
  EXPECT_EQ(program.communicators.size(), 2U);
  EXPECT_THAT(
      problems_of(split_by("process_groups", "{color: process / 2}",
                           "    - broadcast: {group: c, buffer: x, type: float32, src: 0}\n")),
      HasSubstr("'src' counts ranks of the whole program"));
  EXPECT_THAT(problems_of(split_by("process_groups", "{color: 0, key: process}",
                                   "    - barrier: {group: c}\n")),
              HasSubstr("torch sorts the ranks of a group"));
}

TEST(Split, SaysWhatIsWrongWithItsColors) {
  const auto problems = [](const std::string& split) {
    return problems_of(split_by("communicators", split, "    - device_synchronize: {}\n"));
  };
  EXPECT_THAT(problems("{color: process}"), "");
  EXPECT_THAT(problems("{color: process * 2}"),
              HasSubstr("no process has the color 1, and one has 2 | colors are 0, 1, ..."));
  EXPECT_THAT(problems("{color: process / 3}"),
              HasSubstr("color 0 has 3 processes, and color 1 has 1"));
  EXPECT_THAT(problems("{color: -1}"), HasSubstr("no process is in any part of this"));
  EXPECT_THAT(problems("{color: process - 2}"), HasSubstr("must be between -1 and"));
  EXPECT_THAT(problems("{}"), HasSubstr("'color'"));
  EXPECT_THAT(problems("{color: i}"), HasSubstr("unknown name 'i'"));
  EXPECT_THAT(problems("{color: 0}, members: all_devices"),
              HasSubstr("either 'members' or 'split', not both"));
}

// ---- all_to_all_v -------------------------------------------------------------------------------

std::string exchange(const std::string& rest, const std::string& count = "3") {
  return "schema_version: 1\nname: a\nprocesses: 3\ncommunicators: {world: {members: "
         "all_devices}}\nbuffers:\n  out: {memory: device, size: 8MiB, count: " +
         count + "}\n  in: {memory: device, size: 8MiB, count: " + count +
         "}\nthreads:\n  main:\n    - nccl_all_to_all_v: {comm: world, send_buffer: out(to), "
         "recv_buffer: in(from), type: float32, " +
         rest + "}\n";
}

TEST(AllToAllV, ReadsAsSendsAndReceivesInOneGroup) {
  const Program program = read(exchange("size: 1MiB * (from + 2 * to)"));
  const Block& group = std::get<NcclGroup>(program.threads.at(0).ops.at(0).kind).ops;
  ASSERT_EQ(group.size(), 6U);
  const auto variables = std::array{std::int64_t{1}};  // rank 1
  std::vector<std::uint64_t> sent, got;
  for (const Op& op : group) {
    if (const auto* send = std::get_if<NcclSend>(&op.kind)) {
      EXPECT_EQ(send->buffer.index.eval(variables), send->peer.eval(variables));
      sent.push_back(send->size.eval(variables).count >> 20);
    } else {
      got.push_back(std::get<NcclRecv>(op.kind).size.eval(variables).count >> 20);
    }
  }
  EXPECT_THAT(sent, ElementsAre(1, 3, 5)) << "from 1 to 0, 1 and 2";
  EXPECT_THAT(got, ElementsAre(2, 3, 4)) << "from 0, 1 and 2 to 1";
}

TEST(AllToAllV, SaysWhatIsWrongWithItsPartsOnce) {
  EXPECT_THAT(problems_of(exchange("size: 4MiB * (from + to)")),
              HasSubstr("is 12582912 for process = 2"));
  EXPECT_THAT(problems_of(exchange("size: 3B * to")), HasSubstr("float32"));
  EXPECT_THAT(problems_of(exchange("size: 1MiB", "2")),
              HasSubstr("index out of range in 'out(to)'"));
  EXPECT_THAT(problems_of(exchange("id: x")), HasSubstr("'size'"));
  EXPECT_THAT(problems_of(exchange("size: 1MiB * form")), HasSubstr("did you mean 'from'?"));
  EXPECT_THAT(problems_of("schema_version: 1\nname: a\nthreads:\n  main:\n    - host_compute: "
                          "{duration: 1us * to}\n"),
              HasSubstr("unknown name 'to'"));
}

TEST(AllToAllV, KnowsTheRanksOfAPart) {
  std::string text = exchange("size: 1MiB * (from + to)", "2");
  text.replace(text.find("processes: 3"), 12, "processes: 4");
  text.replace(text.find("{members: all_devices}"), 22, "{split: {color: process / 2}}");
  const Program program = read(text);
  const Block& group = std::get<NcclGroup>(program.threads.at(0).ops.at(0).kind).ops;
  ASSERT_EQ(group.size(), 4U);
  const auto& first = std::get<NcclSend>(group[0].kind);  // to rank 0 of the part
  EXPECT_EQ(first.size.eval(std::array{std::int64_t{2}}).count, 0U);
  EXPECT_EQ(first.size.eval(std::array{std::int64_t{3}}).count, 1U << 20);
}

/// One thread with two GPUs: `around` is before its calls.
std::string of_two_gpus(const std::string& around) {
  return "schema_version: 1\nname: a\ndevices: 2\ngraphs: {g: {}}\nstreams: {s: {each: device}}\n"
         "communicators: {w: {members: all_devices}}\nbuffers:\n  out: {each: device, count: 2, "
         "memory: device, size: 8MiB}\n  in: {each: device, count: 2, memory: device, size: 8MiB}\n"
         "threads:\n  main:\n    - " +
         around +
         "for_each: {index: d, in: devices, ops: [nccl_all_to_all_v: {comm: w(d), stream: s(d), "
         "send_buffer: \"out(d, to)\", recv_buffer: \"in(d, from)\", size: 1MiB * (from + 2 * to), "
         "type: float32}]}";
}

TEST(AllToAllV, OfOneThreadAndSeveralGpusStandsInAGroup) {
  const Program program = read(of_two_gpus("nccl_group: {ops: [") + "]}\n");
  const Block& group = std::get<NcclGroup>(program.threads.at(0).ops.at(0).kind).ops;
  const Block& loop = std::get<Repeat>(group.at(0).kind).ops;
  EXPECT_EQ(std::get<NcclGroup>(loop.at(0).kind).ops.size(), 4U);
  EXPECT_EQ(problems_of(of_two_gpus("nccl_group: {ops: [") + "]}\n"), "");
}

TEST(AllToAllV, OfOneThreadAndSeveralGpusIsRefusedWithoutAGroup) {
  EXPECT_EQ(problems_of(of_two_gpus("") + "\n"),
            "12:47 warning: one host thread calls collectives for 2 ranks of 'w' without "
            "nccl_group | the first call waits for the other ranks, which the same thread would "
            "call later\n");
}

TEST(AllToAllV, CanBeCaptured) {
  std::string text = exchange("size: 1MiB * (from + to)");
  text.replace(text.find("threads:"), 8, "graphs: {g: {}}\nstreams: {s: {}}\nthreads:");
  text.replace(text.find("- nccl"), 2, "- graph_capture: {graph: g, stream: s, ops: [");
  text.replace(text.find("comm: world"), 11, "comm: world, stream: s");
  text.replace(text.rfind("}\n"), 2, "}]}\n");
  EXPECT_EQ(problems_of(text), "");
}

// ---- sizes by index -----------------------------------------------------------------------------

std::string of_sizes(const std::string& declaration, const std::string& op) {
  return "schema_version: 1\nname: a\ndevices: 2\nbuffers: {x: {memory: device, " + declaration +
         "}, y: {memory: device, size: 16MiB, count: 2}}\nthreads:\n  main:\n"
         "    - for_each: {index: i, in: 3, ops: [" +
         op + "]}\n";
}

TEST(Buffers, OfAFamilyMayDifferInSizeByTheirIndex) {
  const Program program = read(of_sizes("count: 3, size: 1MiB * 2 ** index",
                                        "memset_async: {dst: x(i), size: 1MiB * 2 ** i}"));
  std::vector<std::uint64_t> sizes;
  for (const Buffer& buffer : program.buffers) sizes.push_back(buffer.size.count >> 20);
  EXPECT_THAT(sizes, ElementsAre(1, 2, 4, 16, 16));
  const Program both =
      read(of_sizes("each: device, count: 3, size: 1MiB * (1 + index + 10 * device)",
                    "memset_async: {dst: 'x(0, 2)'}"));
  EXPECT_EQ(both.buffers.at(5).size.count, std::uint64_t{13} << 20);
  const auto& loop = std::get<Repeat>(both.threads.at(0).ops.at(0).kind);
  EXPECT_EQ(std::get<MemsetAsync>(loop.ops.at(0).kind).size.expr.constant(), 3 << 20)
      << "of that member";
}

TEST(Buffers, OfUnequalSizeAreCheckedEachForItself) {
  const auto problems = [](const std::string& op) {
    return problems_of(of_sizes("count: 3, size: 1MiB * 2 ** index", op));
  };
  EXPECT_THAT(problems("memset_async: {dst: x(i), size: 2MiB * 2 ** i}"),
              HasSubstr("it is 8388608 for i = 2"));
  EXPECT_THAT(problems("memset_async: {dst: x(2 - i), size: 1MiB * 2 ** i}"),
              HasSubstr("buffer 'x(0)' is too small with 1048576 B"));
  EXPECT_THAT(problems("memset_async: {dst: x(i)}"),
              HasSubstr("the buffers of this family differ in size: say 'size'"));
  EXPECT_THAT(problems("gemm: {m: 512, n: 512, k: 1024, a: y(0), b: y(1), c: x(i)}"), "");
  EXPECT_THAT(problems("gemm: {m: 512, n: 1024, k: 512, a: y(0), b: y(1), c: x(i)}"),
              HasSubstr("buffer 'x(0)' is too small with 1048576 B"));
  EXPECT_THAT(
      problems_of(of_sizes("count: 2, size: 1MiB * index", "host_compute: {duration: 1us}")),
      HasSubstr("it is 0 for index = 0"));
}

// ---- small ones ---------------------------------------------------------------------------------

TEST(DeviceSynchronize, OfAllDevicesIsOneForEach) {
  const Program program = read(
      "schema_version: 1\nname: a\ndevices: 3\nthreads:\n  main:\n"
      "    - device_synchronize: {id: end, device: all}\n    - device_synchronize: {id: end, "
      "device: all}\n");
  ASSERT_EQ(program.threads.at(0).ops.size(), 6U);
  for (std::int64_t i = 0; i < 6; ++i) {
    const Op& op = program.threads[0].ops[static_cast<std::size_t>(i)];
    EXPECT_EQ(op.label, "end");
    EXPECT_EQ(std::get<DeviceSynchronize>(op.kind).device.eval(std::array{std::int64_t{0}}), i % 3);
  }
}

TEST(EnablePeerAccess, OfADeviceWithItselfIsRefused) {
  const auto problems = [](const std::string& pair) {
    return problems_of(
        "schema_version: 1\nname: a\ndevices: 2\nthreads:\n  main:\n    - for_each: "
        "{index: d, in: devices, ops: [enable_peer_access: {" +
        pair + "}]}\n");
  };
  EXPECT_EQ(problems("device: d, peer: 1 - d"), "");
  EXPECT_THAT(problems("device: 1, peer: 1"), HasSubstr("a device is no peer of itself"));
  EXPECT_THAT(problems("device: d, peer: 0"), HasSubstr("a device is no peer of itself"));
}

TEST(References, WithoutQuotesInAMapAreHintedAtWhereTheirCommasEndThem) {
  EXPECT_THAT(problems_of("schema_version: 1\nname: a\nthreads:\n  main:\n    - memcpy: {src: x(0, "
                          "0), dst: y(0, 0)}\n"),
              HasSubstr("duplicate key '0)' | inside of {...} a comma ends the value"));
}

}  // namespace
}  // namespace foretrace
