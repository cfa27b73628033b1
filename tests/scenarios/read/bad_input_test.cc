// What a user gets wrong, one test each, down to line, column and wording.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "scenarios/base/text/errors.h"
#include "tests/scenarios/reading.h"

namespace foretrace {
namespace {

using reading_test::problems_of;
using reading_test::scenario_with;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(BadInput, UnknownTopLevelKey) {
  EXPECT_EQ(problems_of("schema_version: 1\nname: a\nthread: {}\nthreads: {main: []}\n"),
            "3:1 error: unknown key 'thread' in a scenario | did you mean 'threads'?\n");
}

TEST(BadInput, UnknownKeyOfAnOperation) {
  EXPECT_EQ(problems_of(scenario_with("spin: {strem: s, duration: 1us}")),
            "18:14 error: unknown key 'strem' in spin | did you mean 'stream'?\n");
}

TEST(BadInput, UnknownKeyOfAnObject) {
  EXPECT_EQ(problems_of("schema_version: 1\nname: a\nstreams: {s: {flag: blocking}}\n"
                        "threads: {main: []}\n"),
            "3:15 error: unknown key 'flag' in a stream | did you mean 'flags'?\n");
}

TEST(BadInput, DuplicateKey) {
  EXPECT_EQ(problems_of(scenario_with("spin: {stream: s, duration: 1us, stream: s}")),
            "18:40 error: duplicate key 'stream' | first given in line 18\n");
}

TEST(BadInput, UnknownOperation) {
  EXPECT_EQ(problems_of(scenario_with("memcpy_asinc: {src: host, dst: x}")),
            "18:7 error: unknown operation 'memcpy_asinc' | did you mean 'memcpy_async'?\n");
}

TEST(BadInput, SizeWithoutUnit) {
  EXPECT_EQ(problems_of(scenario_with("memcpy_async: {src: host, dst: x, size: 4096}")),
            "18:47 error: a size is needed here, and this is a number without a unit | "
            "did you mean 4096B, 4096KiB or 4096MiB?\n");
}

TEST(BadInput, TimeWithoutUnit) {
  EXPECT_EQ(problems_of(scenario_with("spin: {duration: 5}")),
            "18:24 error: a time is needed here, and this is a number without a unit | "
            "did you mean 5us, 5ms or 5ns?\n");
}

TEST(BadInput, SizePlusTime) {
  EXPECT_EQ(problems_of(scenario_with("spin: {duration: 5us + 1KiB}")),
            "18:28 error: a time + a size has no meaning\n");
}

TEST(BadInput, UnknownStream) {
  EXPECT_EQ(problems_of(scenario_with("spin: {stream: t, duration: 1us}")),
            "18:22 error: unknown stream 't' | did you mean 's'?\n");
}

TEST(BadInput, UnknownEvent) {
  EXPECT_EQ(problems_of(scenario_with("event_record: {event: copied, stream: s}")),
            "18:29 error: unknown event 'copied' | known here: e, e2\n");
}

TEST(BadInput, UnknownBuffer) {
  EXPECT_EQ(problems_of(scenario_with("memset: {dst: hosts}")),
            "18:21 error: unknown buffer 'hosts' | did you mean 'host'?\n");
}

TEST(BadInput, UnknownParameter) {
  EXPECT_EQ(problems_of(scenario_with("memset: {dst: x, size: 2 * $sise}")),
            "18:34 error: unknown parameter '$sise' | did you mean '$size'?\n");
}

TEST(BadInput, UnknownSignalAndCommunicatorWhenNoneIsDeclared) {
  EXPECT_EQ(problems_of(scenario_with("host_signal: {signal: go}")),
            "18:29 error: unknown signal 'go' | the scenario declares no signal\n");
}

TEST(BadInput, NegativeSize) {
  EXPECT_EQ(problems_of(scenario_with("memset: {dst: x, size: 1KiB - 2KiB}")),
            "18:30 error: '1KiB - 2KiB' must be at least 0 B: it is -1024\n");
}

TEST(BadInput, SizeOfTwoToTheSixtyFour) {
  EXPECT_EQ(problems_of(scenario_with("memset: {dst: x, size: 18446744073709551616B}")),
            "18:30 error: out of range: a size can be at most 2^63 - 1 bytes\n");
  EXPECT_EQ(problems_of(scenario_with("memset: {dst: x, size: 1TiB * 2 ** 60}")),
            "18:30 error: out of range: a size can be at most 2^63 - 1 bytes\n");
}

TEST(BadInput, BuffersThatOverflowTogether) {
  EXPECT_EQ(problems_of("schema_version: 1\nname: a\n"
                        "buffers: {x: {memory: device, size: 4194304TiB, count: 5}}\n"
                        "threads: {main: []}\n"),
            "0:0 error: all buffers together have more than 2^64 bytes\n");
}

TEST(BadInput, IndexOutOfRangeNamesTheIteration) {
  EXPECT_EQ(
      problems_of(scenario_with(
          "repeat: {index: i, times: 3, ops: [{event_record: {event: e2(i), stream: s}}]}")),
      "18:65 error: index out of range in 'e2(i)': it is 2 for i = 2 | there is event e2(0...1)\n");
  EXPECT_EQ(problems_of(scenario_with("event_record: {event: e2(2), stream: s}")),
            "18:29 error: index out of range in 'e2(2)': it is 2 | there is event e2(0...1)\n");
}

TEST(BadInput, IndexOfWhatHasNone) {
  EXPECT_EQ(problems_of(scenario_with("event_record: {event: e(0)}")),
            "18:29 error: event 'e' takes no indices, and this has 1 | there is event e\n");
  EXPECT_EQ(problems_of(scenario_with("event_record: {event: e2}")),
            "18:29 error: event 'e2' takes 1 index, and this has 0 | there is event e2(0...1)\n");
}

TEST(BadInput, TwoIndicesWithoutQuotesInsideBraces) {
  EXPECT_EQ(problems_of(scenario_with("event_record: {event: e2(0, 1)}")),
            "18:33 error: ')' is missing | inside of {...} a comma ends the value: write 'x(0, 1)' "
            "in quotes\n"
            "18:35 error: '1)' is no key | inside of {...} a comma ends the value: write it in "
            "quotes\n");
}

TEST(BadInput, CopyLargerThanItsBuffer) {
  EXPECT_EQ(
      problems_of(scenario_with("memcpy_async: {src: host, dst: x, size: 2MiB}")),
      "18:47 error: size '2MiB' is larger than the smaller buffer, 1048576 B: it is 2097152\n");
}

TEST(BadInput, CopyThatGrowsBeyondItsBuffer) {
  EXPECT_EQ(problems_of(scenario_with("repeat: {index: i, times: 4, ops: "
                                      "[{memcpy: {src: host, dst: x, size: 256KiB * 2 ** i}}]}")),
            "18:77 error: size '256KiB * 2 ** i' is larger than the smaller buffer, 1048576 B: "
            "it is 2097152 for i = 3\n");
}

TEST(BadInput, CopyWithAnOffsetBeyondItsBuffer) {
  EXPECT_EQ(problems_of(
                scenario_with("memcpy: {src: host, dst: x, size: 1MiB - 1KiB, dst_offset: 2KiB}")),
            "18:32 error: buffer 'x' is too small with 1048576 B for what is needed: "
            "it is 1049600\n");
}

TEST(BadInput, CopyBetweenBuffersOfDifferentSizeNeedsItsSize) {
  const std::string text =
      "schema_version: 1\nname: a\nbuffers:\n  x: {memory: device, size: 1KiB}\n"
      "  y: {memory: pinned, size: 2KiB}\nthreads:\n  main:\n    - memcpy: {src: y, dst: x}\n";
  EXPECT_EQ(problems_of(text),
            "8:15 error: the copy needs 'size': 'y' has 2048 B, 'x' has 1024 B\n");
}

TEST(BadInput, HostMemoryForAKernel) {
  EXPECT_EQ(problems_of(scenario_with("elementwise: {stream: s, dst: host}")),
            "18:37 error: 'dst' must be device memory, and 'host' is pinned\n");
}

TEST(BadInput, DeviceMemoryWhereTheHostWrites) {
  EXPECT_EQ(problems_of(scenario_with("host_fill: {dst: x}")),
            "18:24 error: 'dst' must be host memory, and 'x' is device\n");
}

TEST(BadInput, WorkForTheCpu) {
  EXPECT_EQ(problems_of(scenario_with("host_parallel: {threads: 2}")),
            "18:22 error: host_parallel needs 'flops', 'bytes' or both\n");
  EXPECT_EQ(problems_of(scenario_with("read_file: {dst: x}")),
            "18:24 error: 'dst' must be host memory, and 'x' is device\n");
}

TEST(BadInput, WhatAProductDoesBesides) {
  EXPECT_EQ(problems_of(scenario_with(
                "gemm: {m: 4, n: 4, k: 4, a: x, b: y, c: x, transpose_a: yes, batch: 0, beta: 2}")),
            "18:63 error: unknown value of transpose_a 'yes' | known here: true, false\n"
            "18:75 error: '0' must be between 1 and 2147483647: it is 0\n"
            "18:84 error: '2' must be between 0 and 1: it is 2\n");
}

TEST(BadInput, ProductOfIntegers) {
  for (const char* type : {"int32", "int64"}) {
    EXPECT_EQ(problems_of(scenario_with(
                  fmt::format("gemm: {{m: 4, n: 4, k: 4, a: x, b: y, c: x, type: {}}}", type))),
              fmt::format("18:56 error: unknown type '{}' | known here: float32, float16, "
                          "bfloat16, float64, int8, float8_e4m3, float8_e5m2, float4_e2m1\n",
                          type));
  }
}

TEST(BadInput, BufferOfAnotherDevice) {
  const std::string text =
      "schema_version: 1\nname: a\ndevices: 2\nbuffers: {x: {memory: device, size: 1KiB, device: "
      "1}}\nthreads:\n  main:\n    - elementwise: {dst: x}\n";
  EXPECT_EQ(problems_of(text),
            "7:7 error: stream 'default(0)' is on device 0, and buffer 'x' on device 1 | "
            "copy it first, or enable_peer_access\n");
}

TEST(BadInput, DeviceThatDoesNotExist) {
  EXPECT_EQ(problems_of(scenario_with("device_synchronize: {device: 2}")),
            "18:36 error: '2' must be between 0 and 1: it is 2\n");
}

TEST(BadInput, MissingKeyOfAnOperation) {
  EXPECT_EQ(problems_of(scenario_with("spin: {stream: s}")),
            "18:13 error: spin needs 'duration'\n");
}

TEST(BadInput, InitialisationThatNeedsOneProcess) {
  EXPECT_EQ(problems_of("schema_version: 1\nname: a\nprocesses: 2\n"
                        "communicators: {w: {members: all_devices, init: all}}\n"
                        "threads: {main: []}\n"),
            "4:49 error: init: all needs one process, and there are 2 | "
            "ncclCommInitAll cannot reach other processes; use init: rank\n");
}

TEST(BadInput, ProcessOfAThreadOutOfRange) {
  EXPECT_EQ(problems_of("schema_version: 1\nname: a\nprocesses: 2\n"
                        "threads: {main: {process: 2, ops: []}}\n"),
            "4:27 error: '2' must be between 0 and 1: it is 2\n");
}

TEST(BadInput, EverythingIsReportedAtOnceInTheOrderOfTheFile) {
  EXPECT_EQ(problems_of(scenario_with("spin: {stream: t, duration: 1}\n"
                                      "memcpy: {src: hots, dst: x}\n"
                                      "event_record: {event: e2(7), stream: s, foo: 1}")),
            "18:22 error: unknown stream 't' | did you mean 's'?\n"
            "18:35 error: a time is needed here, and this is a number without a unit | "
            "did you mean 1us, 1ms or 1ns?\n"
            "19:21 error: unknown buffer 'hots' | did you mean 'host'?\n"
            "20:29 error: index out of range in 'e2(7)': it is 7 | there is event e2(0...1)\n"
            "20:47 error: unknown key 'foo' in event_record | known here: id, event, stream\n");
}

TEST(BadInput, AWrongDeclarationIsNotReportedAgainAtEveryUse) {
  EXPECT_EQ(problems_of("schema_version: 1\nname: a\nbuffers: {x: {memory: device, size: 1}}\n"
                        "threads: {main: [{memset: {dst: x, size: 4KiB}}]}\n"),
            "3:37 error: a size is needed here, and this is a number without a unit | "
            "did you mean 1B, 1KiB or 1MiB?\n");
}

TEST(BadInput, AnEventRecordedOnTwoDevices) {
  EXPECT_EQ(problems_of(scenario_with("event_record: {event: e, stream: default(0)}\n"
                                      "event_record: {event: e, stream: default(1)}")),
            "19:7 error: event 'e' is recorded on device 1 here, and on device 0 in line 18 | "
            "an event belongs to one device: declare one event for each\n");
}

TEST(BadInput, AParameterOnTheCommandLineKeepsItsKind) {
  EXPECT_EQ(problems_of(scenario_with("memset: {dst: x}"), {{"size", "16"}}),
            "0:0 error: --set size=16: the parameter is a size, and this is a plain number | "
            "the file says size: 1MiB\n");
  EXPECT_EQ(problems_of(scenario_with("memset: {dst: x}"), {{"sise", "16MiB"}}),
            "0:0 error: --set sise=16MiB: the scenario has no parameter 'sise' | "
            "did you mean 'size'?\n");
  EXPECT_EQ(problems_of(scenario_with("memset: {dst: x}"), {{"size", "1Mib"}}),
            "0:0 error: --set size=1Mib: unknown unit 'Mib' | did you mean 'MiB'?\n");
}

TEST(BadInput, LoopsThatRunTooOftenTogether) {
  EXPECT_EQ(problems_of(scenario_with("repeat: {times: 2 ** 40, ops: [{repeat: {times: 2 ** 40, "
                                      "ops: []}}]}")),
            "18:55 error: the loops run more than 2^62 times together\n");
}

TEST(BadInput, AnythingButNcclInAGroup) {
  EXPECT_EQ(problems_of(scenario_with("nccl_group: {ops: [{device_synchronize: {}}]}")),
            "18:27 error: 'device_synchronize' cannot stand in an nccl_group | "
            "only NCCL operations, host operations, repeat and for_each can\n");
}

TEST(BadInput, VariablesThatAScenarioMayNotSet) {
  EXPECT_EQ(problems_of("schema_version: 1\nname: a\nenvironment: {NCCL_ALG: Ring, HOME: x}\n"
                        "threads: {main: []}\n"),
            "3:15 error: 'NCCL_ALG' is not among the variables a scenario may set | "
            "did you mean 'NCCL_ALGO'?\n"
            "3:31 error: 'HOME' is not among the variables a scenario may set | "
            "those of CUDA and NCCL are\n");
}

TEST(BadInput, ExpectationsNameWhatIsThere) {
  EXPECT_EQ(problems_of(scenario_with("spin: {id: kernel, duration: 1us}") +
                        "expect:\n  - overlap: {spans: [kernel, copy], at_least: 80%}\n"
                        "  - ovrelap: {}\n"),
            "20:31 error: unknown id 'copy' | known here: kernel\n"
            "21:5 error: unknown expectation 'ovrelap' | did you mean 'overlap'?\n");
}

// ---- files
// ------------------------------------------------------------------------------------------

class BadFile : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() /
                 ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  /// What load_scenario throws about a file with this content.
  std::string failure(const std::string& content) {
    const auto file = directory_ / "a.yaml";
    std::ofstream{file, std::ios::binary} << content;
    return failure_of(file).substr(file.string().size());
  }
  static std::string failure_of(const std::filesystem::path& file) {
    try {
      load_scenario(file);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no failure";
  }

  std::filesystem::path directory_;
};

TEST_F(BadFile, Missing) {
  const auto file = directory_ / "nowhere.yaml";
  EXPECT_EQ(failure_of(file), file.string() + ": error: there is no such file\n");
}

TEST_F(BadFile, Directory) {
  EXPECT_EQ(failure_of(directory_), directory_.string() + ": error: this is a directory\n");
}

TEST_F(BadFile, Empty) {
  EXPECT_EQ(failure(""),
            ":1:1: error: the file holds no scenario\n"
            "  hint: foretrace list scenarios names some to begin with\n");
}

TEST_F(BadFile, NotText) {
  EXPECT_THAT(failure(std::string{"name: a\nx: \x7f"
                                  "ELF\x02\x01\0\0",
                                  19}),
              StartsWith(":2:8: error: not a text file: byte 0x02\n"));
}

TEST_F(BadFile, OneHundredMegabytesOfGarbage) {
  std::string garbage(100'000'000, '\0');
  std::uint32_t state = 1;  // a linear congruential generator: garbage, but the same in each run
  for (char& c : garbage) c = static_cast<char>((state = state * 1664525U + 1013904223U) >> 24U);
  EXPECT_EQ(failure(garbage), ": error: larger than 16 MiB, the most that is read\n");
  EXPECT_THAT(failure(garbage.substr(0, 1'000'000)), HasSubstr("error: not a text file"));
}

TEST_F(BadFile, TwoHundredThousandBrackets) {
  EXPECT_THAT(failure(std::string(200'000, '[')),
              StartsWith(":1:101: error: nested more than 100 levels deep\n"));
}

TEST_F(BadFile, ShowsTheLineAndTheCaret) {
  EXPECT_EQ(failure("schema_version: 1\nname: a\nthreads:\n  main:\n    - spin: {stream: t, "
                    "duration: 1us}\n"),
            ":5:22: error: unknown stream 't'\n"
            "      - spin: {stream: t, duration: 1us}\n"
            "                       ^\n"
            "  hint: known here: current, default, per_thread\n");
}

}  // namespace
}  // namespace foretrace
