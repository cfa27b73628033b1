// A program as text: what a step has reads the same again, and nothing else is written.
#include "scenarios/write/program_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/scenarios/reading.h"

namespace foretrace::reading_test {
namespace {

using ::testing::HasSubstr;

/// The program's text reads as the same program.
std::string written(const std::string& text) {
  const Program program = read(text);
  std::string again = scenario_text(program);
  EXPECT_EQ(read(again).hash, program.hash) << again;
  return again;
}

std::string scenario_of(const std::string& head, const std::string& ops) {
  return "# of what: it is\nschema_version: 1\nname: a\ntags: [one, two]\nprocesses: 4\n" + head +
         "buffers: {x: {memory: device, size: 4KiB}, y: {memory: device, size: 4KiB, contents: "
         "normal}, z: {memory: device, size: 4KiB}, h: {memory: pinned, size: 4KiB}}\nthreads:\n  "
         "main:\n    ops: [" +
         ops + "]\n";
}

TEST(ProgramText, HasTheCallsOfTorchThatTheProgramWasReadFrom) {
  const std::string text = written(scenario_of(
      "process_groups: {w: {init: eager}, two: {ranks: [1, 2], init: eager}}\n",
      "all_reduce: {id: sum, group: w, buffer: x, size: 1KiB, type: bfloat16, async: true, work: "
      "part}, work_wait: {work: part}, all_gather: {group: w, input: x, output: y, size: 512B, "
      "type: float32}, read_scalar: {src: x}"));
  for (const char* line :
       {"tags: [one, two]\nprocesses: 4\n", "  w: {ranks: all, init: eager}\n",
        "  two: {ranks: [1, 2], init: eager}\n",
        "- all_reduce: {id: sum, group: w, buffer: x, size: 1024B, type: bfloat16, async: true, "
        "work: part}\n",
        "- work_wait: {work: part}\n",
        "- all_gather: {group: w, input: x, output: y, size: 512B, type: float32}\n",
        "- read_scalar: {src: x}\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(ProgramText, HasTheCallsOfCudaAndNcclThatCapturesHave) {
  const std::string text = written(scenario_of(
      "communicators: {w: {members: all_devices, init: rank}}\nstreams: {s: {flags: non_blocking, "
      "priority: -1}}\nevents: {e: {timing: false}}\ngraphs: {g: {}}\n",
      "graph_capture: {graph: g, stream: s, ops: [memset_async: {stream: s, dst: x, size: 8B}]}, "
      "repeat: {times: 3, ops: [region: {name: r, per: 2, ops: [graph_launch: {graph: g, stream: "
      "s}, event_record: {event: e, stream: s}, stream_wait_event: {event: e}, event_query: "
      "{event: "
      "e}, event_synchronize: {event: e}, stream_query: {stream: s}, stream_synchronize: {stream: "
      "s}]}]}, gemm: {m: 8, n: 4, k: 2, batch: 3, beta: 1, type: float16, a: x, b: y, c: z}, "
      "memcpy_async: {src: x, dst: h, size: 4B}, nccl_group: {ops: [nccl_broadcast: {comm: w, "
      "send_buffer: x, recv_buffer: y, size: 8B, type: int32, root: 0}, nccl_all_reduce: {comm: w, "
      "stream: s, buffer: x, size: 8B, type: int32, op: max}]}, library_kernel: {kernel: captured, "
      "size: 5B, name: k.f32, grid: 2, block: 64}, framework_call: {work: captured, count: 3, "
      "queries: 2}, device_synchronize: {}"));
  for (const char* line :
       {"  s: {flags: non_blocking, priority: -1}\n", "  e: {timing: false}\n", "  g: {}\n",
        "  w: {members: all_devices, init: rank}\n",
        "      - graph_capture:\n          graph: g\n          stream: s\n          ops:\n",
        "- gemm: {m: 8, n: 4, k: 2, batch: 3, beta: 1, type: float16, a: x, b: y, c: z}\n",
        "send_buffer: x, recv_buffer: y, size: 8B, type: int32, root: 0}\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(ProgramText, RefusesWhatNoExpansionHas) {
  const Program program = read(scenario_of("", "host_compute: {duration: 1us}"));
  EXPECT_THROW(static_cast<void>(scenario_text(program)), std::logic_error);
}

}  // namespace
}  // namespace foretrace::reading_test
