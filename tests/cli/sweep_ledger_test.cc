// What a sweep keeps on the disk remembers what it was made from, and nothing of it is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "scenarios/base/text/data_directory.h"
#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

using testing::HasSubstr;

const std::string kTwoPoints =
    "foretrace sweep scenarios/nccl/all_reduce.yaml --set ranks=2,3 --set large=1MiB -j 1 ";

TEST(SweepLedger, OfAConfigThatWasEditedIsAnotherSweep) {
  const Scratch scratch;
  scratch.write("step.yaml",
                "schema_version: 1\nname: step\nparameters: {micro: 1}\nprocesses: 1\n"
                "training_step: {model: {config: config.json}, optimizer: adamw,\n"
                "  batch: {sequence: 128, micro: $micro, global: 2}}\n");
  const auto config = [&](const std::string& layers) {
    ASSERT_EQ(scratch
                  .run("sed 's/\"n_layer\": 12/\"n_layer\": " + layers +
                       "/' scenarios/architectures/gpt2.json >config.json && grep -c '" + layers +
                       "' config.json")
                  .exit_code,
              0);
  };
  config("2");
  const std::string sweep = "foretrace sweep step.yaml --set micro=1,2 -o s.jsonl";
  ASSERT_EQ(scratch.run(sweep).exit_code, 0);
  EXPECT_THAT(scratch.run(sweep).err, HasSubstr("2 of 2 points were done"));
  const std::string before = read_file(scratch.path() / "s.jsonl");
  config("3");
  const Ran edited = scratch.run(sweep);
  EXPECT_EQ(edited.exit_code, 2) << edited.out;
  EXPECT_THAT(edited.err, HasSubstr("predicted from 'config.json', which changed since"));
  EXPECT_EQ(read_file(scratch.path() / "s.jsonl"), before);
}

/// The program with another id: one bit of the note that its linker wrote.
void write_another_build(const std::filesystem::path& file) {
  std::string program = read_file(tested_program());
  constexpr std::string_view kNote{"\3\0\0\0GNU\0", 8};  // its type and whose it is
  const std::size_t note = program.find(kNote);
  ASSERT_NE(note, std::string::npos) << "the program has no build id";
  program[note + kNote.size()] ^= 1;
  std::ofstream{file, std::ios::binary} << program;
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
}

TEST(SweepLedger, OfAnotherBuildIsAnotherSweep) {
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path() / "other");
  write_another_build(scratch.path() / "other" / "foretrace");
  ASSERT_EQ(scratch.run(kTwoPoints + "-o s.jsonl").exit_code, 0);
  const std::string data = "FORETRACE_DATA='" + data_directory().string() + "' ";
  const Ran other =
      scratch.run_with(scratch.path() / "other" / "foretrace", data + kTwoPoints + "-o s.jsonl");
  EXPECT_EQ(other.exit_code, 2) << other.out << other.err;
  EXPECT_THAT(other.err, HasSubstr("foretrace itself or a machine file changed since"));
}

/// What is predicted again is as if nothing had failed.
TEST(SweepLedger, TriesAPointAgainWhoseProcessWasKilled) {
  const Scratch scratch;
  ASSERT_EQ(scratch.run(kTwoPoints + "-o whole.jsonl").exit_code, 0);
  scratch.write("edit.sh",
                "head -1 whole.jsonl; sed -n 2p whole.jsonl\n"
                "echo '{\"point\":1,\"machine\":\"h200-nvswitch-8\",\"set\":{\"ranks\":\"3\","
                "\"large\":\"1MiB\"},\"error\":\"its process was killed by signal 9\",\"tries\":1}'"
                "\n");
  ASSERT_EQ(scratch.run("sh edit.sh >s.jsonl").exit_code, 0);
  const Ran again = scratch.run(kTwoPoints + "-o s.jsonl");
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("note: 1 of 2 points were done"));
  EXPECT_EQ(read_file(scratch.path() / "s.jsonl"), read_file(scratch.path() / "whole.jsonl"));
}

/// To copy or print what is nested takes a stack frame for each level.
TEST(SweepLedger, PredictsAgainWhatIsNestedDeeperThanARow) {
  const Scratch scratch;
  ASSERT_EQ(scratch.run(kTwoPoints + "-o whole.jsonl").exit_code, 0);
  const std::string whole = read_file(scratch.path() / "whole.jsonl");
  std::string deep = whole;
  const std::string_view row = "\"point\":1,";
  ASSERT_NE(deep.find(row), std::string::npos);
  deep.insert(deep.find(row) + row.size(),
              "\"x\":" + std::string(300'000, '[') + std::string(300'000, ']') + ",");
  scratch.write("s.jsonl", deep);
  const Ran again = scratch.run(kTwoPoints + "-o s.jsonl");
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("note: 1 of 2 points were done"));
  EXPECT_EQ(read_file(scratch.path() / "s.jsonl"), whole);
}

TEST(SweepLedger, SaysThatAPointWhichMayPassFailed) {
  const Scratch scratch;
  scratch.write(
      "long.yaml",
      "schema_version: 1\nname: long\nparameters: {n: 1}\nstreams: {s: {flags: non_blocking}}\n"
      "threads:\n  main:\n"
      "    - repeat: {times: $n, ops: [spin: {stream: s, duration: 1us}]}\n"
      "    - device_synchronize: {}\n");
  const std::string sweep =
      "ulimit -t 1; foretrace sweep long.yaml --set n=1,8000000 -j 1 -o s.jsonl";
  for (const int tries : {1, 2}) {
    const Ran ran = scratch.run(sweep);
    EXPECT_EQ(ran.exit_code, 4) << ran.out << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("killed by signal"));
    EXPECT_THAT(ran.err, HasSubstr("the same command tries it again"));
    EXPECT_THAT(read_file(scratch.path() / "s.jsonl"),
                HasSubstr("\"tries\":" + std::to_string(tries)));
  }
}

TEST(SweepLedger, NamesAProcessThatDoesNotRunAndGoesOnWithoutIt) {
  const Scratch scratch;
  const std::string rank_0 = "OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 " + kTwoPoints;
  const Ran alone = scratch.run(rank_0 + "-o s.jsonl --wait 1");
  EXPECT_EQ(alone.exit_code, 4) << alone.err;
  EXPECT_THAT(alone.err, HasSubstr("process 1 of 2 has 1 point to predict, and does not run"));
  EXPECT_THAT(alone.err, HasSubstr("unset OMPI_COMM_WORLD_RANK"));
  const Ran after = scratch.run(kTwoPoints + "-o s.jsonl");
  EXPECT_EQ(after.exit_code, 0) << after.err;
  EXPECT_THAT(after.err, HasSubstr("note: 1 of 2 points were done"));
}

TEST(SweepLedger, IsOfOneProcessFromTheFirstLookOn) {
  const Scratch scratch;
  ASSERT_EQ(scratch.run(kTwoPoints + "-o s.jsonl").exit_code, 0);
  const std::string before = read_file(scratch.path() / "s.jsonl");
  const Ran second = scratch.run("flock s.jsonl " + kTwoPoints + "-o s.jsonl");
  EXPECT_EQ(second.exit_code, 2) << "even one that has nothing to append";
  EXPECT_THAT(second.err, HasSubstr("another process is writing it"));
  EXPECT_EQ(read_file(scratch.path() / "s.jsonl"), before);
}

TEST(SweepLedger, NamesTheErrorOfAPointAndNotTheWarningBeforeIt) {
  const Scratch scratch;
  scratch.write("odd.yaml",
                "schema_version: 1\nname: odd\nparameters: {n: 1, unused: 2}\n"
                "streams: {s: {flags: non_blocking}}\nthreads:\n"
                "  main: [{repeat: {times: $n, ops: [spin: {stream: t, duration: 1us}]}}]\n");
  const Ran ran = scratch.run("foretrace sweep odd.yaml --set n=1,2 -o s.jsonl");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("the first that failed: odd.yaml:6:"));
}

}  // namespace
}  // namespace foretrace::test
