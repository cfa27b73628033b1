// Programs that never end: who waits, at which line, and for what.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/base/text/data_directory.h"
#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

using testing::HasSubstr;

int line_of(const std::string& file, const std::string& text) {
  const std::string all = read_file(data_directory() / file);
  const auto at = all.find(text);
  if (at == std::string::npos) return 0;
  return 1 + static_cast<int>(std::count(all.begin(), all.begin() + static_cast<long>(at), '\n'));
}

struct Hang {
  std::string file;
  std::string waits_at;  ///< text of the line where the host thread of rank 1 waits
  friend std::ostream& operator<<(std::ostream& out, const Hang& h) { return out << h.file; }
};
class RecvWithoutSend : public testing::TestWithParam<Hang> {
 protected:
  Scratch scratch_;
};
INSTANTIATE_TEST_SUITE_P(
    Forms, RecvWithoutSend,
    testing::Values(Hang{"scenarios/hangs/recv_without_send_warm.yaml", "print_the_tensor"},
                    Hang{"scenarios/hangs/recv_without_send_cold.yaml", "never_sent"}),
    [](const auto& tested) {
      return std::string{tested.param.waits_at == "never_sent" ? "Cold" : "Warm"};
    });

TEST_P(RecvWithoutSend, IsAnErrorOfCheckAtTheRecv) {
  const Ran check = scratch_.run("foretrace check " + GetParam().file);
  EXPECT_EQ(check.exit_code, 1);
  const std::string recv =
      GetParam().file + ":" + std::to_string(line_of(GetParam().file, "never_sent")) + ":";
  EXPECT_THAT(check.err, HasSubstr(recv));
  EXPECT_THAT(check.err, HasSubstr("error:"));
}

TEST_P(RecvWithoutSend, IsExplainedBySimulateWithProcessLineAndReason) {
  const Ran simulate =
      scratch_.run("foretrace simulate " + GetParam().file + " --machine h200-nvswitch-8 -o run");
  EXPECT_EQ(simulate.exit_code, 1);
  EXPECT_THAT(simulate.err, HasSubstr("process 1"));
  const std::string name = std::filesystem::path{GetParam().file}.filename().string();
  EXPECT_THAT(
      simulate.err,
      HasSubstr(name + ":" + std::to_string(line_of(GetParam().file, GetParam().waits_at))));
  EXPECT_THAT(simulate.err, HasSubstr("nccl_recv"));
}

struct Ends {
  std::string name;
  std::string text;
  bool ends = true;
  friend std::ostream& operator<<(std::ostream& out, const Ends& e) { return out << e.name; }
};
const std::string kHeadOfEnds = "schema_version: 1\nname: x\n";
const std::string kRanksOfEnds =
    kHeadOfEnds +
    "processes: 2\ncommunicators: {w: {members: all_devices}}\nbuffers: {x: {memory: device, size: "
    "256MiB}}\nthreads:\n  main:\n";
std::string sends_first(const std::string& size) {
  const std::string with =
      ": {comm: w, buffer: x, size: " + size + ", peer: 1 - process, type: float32}\n";
  return kRanksOfEnds + "    - nccl_send" + with + "    - nccl_recv" + with +
         "    - device_synchronize: {}\n";
}
std::string blocked_behind(const std::string& calls) {
  return kHeadOfEnds +
         "signals: {go: {}}\nstreams: {s: {}, t: {}}\nevents: {e: {}}\nbuffers: {x: {memory: "
         "device, "
         "size: 4KiB}}\nthreads:\n  main:\n    - event_record: {event: e, stream: t}\n"
         "    - device_synchronize: {}\n    - host_func: {stream: s, wait: go}\n"
         "    - repeat: {times: 1100, ops: [" +
         calls + "]}\n    - host_signal: {signal: go}\n    - device_synchronize: {}\n";
}

class CheckAndSimulate : public testing::TestWithParam<Ends> {
 protected:
  Scratch scratch_;
};
INSTANTIATE_TEST_SUITE_P(
    Programs, CheckAndSimulate,
    testing::Values(
        Ends{"small_sends_first", sends_first("4KiB")},
        Ends{"large_sends_first", sends_first("256MiB"), false},
        Ends{"reductions_that_differ",
             kRanksOfEnds +
                 "    - when: {condition: process == 0, ops: [nccl_all_reduce: {comm: w, buffer: "
                 "x, type: float32}]}\n    - when: {condition: process == 1, ops: "
                 "[nccl_all_reduce: {comm: w, buffer: x, type: float32, op: max}]}\n"},
        Ends{"waits_for_a_complete_event",
             blocked_behind("stream_wait_event: {event: e, stream: s}")},
        Ends{"calls_of_the_pool",
             blocked_behind("malloc_async: {buffer: x, stream: s}, free_async: {buffer: x, stream: "
                            "s}")},
        Ends{"a_full_queue", blocked_behind("spin: {stream: s, duration: 1us}"), false},
        Ends{"a_signal_that_two_threads_take",
             kHeadOfEnds +
                 "signals: {go: {}, more: {}}\nthreads:\n"
                 "  a: [{host_compute: {duration: 1ms}}, {host_wait: {signal: go}}]\n"
                 "  b: [{host_wait: {signal: go}}, {host_signal: {signal: more}}]\n"
                 "  c: [{host_signal: {signal: go}}, {host_wait: {signal: more}}, {host_signal: "
                 "{signal: go}}]\n"}),
    [](const auto& tested) { return tested.param.name; });

TEST_P(CheckAndSimulate, SayTheSameOfWhetherItEnds) {
  scratch_.write("x.yaml", GetParam().text);
  const int code = GetParam().ends ? 0 : 1;
  const Ran check = scratch_.run("foretrace check x.yaml");
  EXPECT_EQ(check.exit_code, code) << check.err;
  const Ran simulate = scratch_.run("foretrace simulate x.yaml -o run");
  EXPECT_EQ(simulate.exit_code, code) << simulate.err;
  const std::string timeline = read_file(scratch_.path() / "run/predicted.timeline.json");
  EXPECT_THAT(timeline, HasSubstr(GetParam().ends ? "\"completed\"" : "\"deadlock\""));
}

}  // namespace
}  // namespace foretrace::test
