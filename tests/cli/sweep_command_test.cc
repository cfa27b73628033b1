// foretrace sweep as a user runs it: its rows, a point that fails, and a sweep that is killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

using testing::HasSubstr;

const std::string kSmallSweep =
    "foretrace sweep scenarios/nccl/all_reduce.yaml --set ranks=2,4,8 --with nvlink=1x,0.5x ";

std::vector<nlohmann::json> rows(const std::string& text) {
  std::vector<nlohmann::json> all;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    all.push_back(nlohmann::json::parse(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return all;
}

TEST(SweepCommand, WritesARowForEveryPointAndATable) {
  const Scratch scratch;
  const Ran ran =
      scratch.run(kSmallSweep + "-j 2 -o s.jsonl --csv s.csv --page s.html --against nvlink=1x");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("6 points, 0 of them failed: s.jsonl"));
  const auto all = rows(read_file(scratch.path() / "s.jsonl"));
  ASSERT_EQ(all.size(), 8u);  // the first line says what it is, the last one from what files
  EXPECT_EQ(all[0]["points"], 6);
  for (std::size_t i = 1; i + 1 < all.size(); ++i) {
    EXPECT_EQ(all[i]["point"], i - 1);
    EXPECT_GT(all[i]["total_us"], 0);
    EXPECT_FALSE(all[i]["regions"].empty());
  }
  EXPECT_GT(all[2]["total_us"], all[1]["total_us"]) << "half the NVLink takes longer";
  // Half the NVLink is half of it however fast it is: the ratio is known better than the times.
  const auto& large = all[2]["regions"][2];
  EXPECT_EQ(all[2]["against"], 0);
  EXPECT_NEAR(large["ratio"].get<double>(), 1.96, 0.05);
  const auto width = [&](const char* of, const char* high) {
    return large[high].get<double>() / large[of].get<double>();
  };
  EXPECT_LT(width("ratio", "ratio_high") - 1, 0.5 * (width("us", "high_us") - 1));
  const std::string page = read_file(scratch.path() / "s.html");
  EXPECT_THAT(page, HasSubstr("<svg"));
  EXPECT_THAT(page, HasSubstr(">ratio<"));
  const std::string csv = read_file(scratch.path() / "s.csv");
  EXPECT_THAT(csv, testing::StartsWith("point,machine,ranks,nvlink,total_us,"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 7);
}

TEST(SweepCommand, IsTheSameWithOneJobAndWithThree) {
  const Scratch scratch;
  ASSERT_EQ(scratch.run(kSmallSweep + "-j 1 -o one.jsonl").exit_code, 0);
  ASSERT_EQ(scratch.run(kSmallSweep + "-j 3 -o three.jsonl").exit_code, 0);
  EXPECT_EQ(read_file(scratch.path() / "one.jsonl"), read_file(scratch.path() / "three.jsonl"));
}

TEST(SweepCommand, KeepsARowWithTheReasonOfAPointThatFails) {
  const Scratch scratch;
  const Ran ran =
      scratch.run("foretrace sweep scenarios/nccl/all_reduce.yaml --set ranks=2,0 -o s.jsonl");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("2 points, 1 of them failed"));
  const auto all = rows(read_file(scratch.path() / "s.jsonl"));
  EXPECT_THAT(all[2]["error"].get<std::string>(), HasSubstr("must be between 1 and"));
}

TEST(SweepCommand, KilledThreeTimesEndsWithTheSameFile) {
  const Scratch scratch;
  const std::string sweep =
      "foretrace sweep scenarios/nccl/all_reduce.yaml --set ranks=2..8 --with nvlink=1x,0.5x,2x ";
  ASSERT_EQ(scratch.run(sweep + "-j 2 -o whole.jsonl").exit_code, 0);
  for (const char* seconds : {"0.2", "0.5", "0.3"}) {
    scratch.run("timeout -s KILL " + std::string{seconds} + " " + sweep + "-j 2 -o killed.jsonl");
  }
  // What a power cut leaves of a line that was being written.
  ASSERT_EQ(scratch.run("test ! -s killed.jsonl || printf '{\"point\":3,\"mach' >> killed.jsonl")
                .exit_code,
            0);
  const Ran ran = scratch.run(sweep + "-j 2 -o killed.jsonl");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(read_file(scratch.path() / "killed.jsonl"), read_file(scratch.path() / "whole.jsonl"));
}

TEST(SweepCommand, PredictsAgainWhatARowThatNoSweepWritesStandsFor) {
  const Scratch scratch;
  ASSERT_EQ(scratch.run(kSmallSweep + "-j 2 -o whole.jsonl").exit_code, 0);
  for (const char* row : {R"({"point":"a"})", R"({"point":99})", R"({"point":0,"regions":[1]})",
                          R"({"point":0,"machine":"h200-nvswitch-8","total_us":1,"regions":[]})",
                          R"({"point":0,"regions":"a","regions":[]})"}) {
    scratch.run("head -1 whole.jsonl > odd.jsonl; echo '" + std::string{row} + "' >> odd.jsonl");
    ASSERT_EQ(scratch.run(kSmallSweep + "-j 2 -o odd.jsonl --csv odd.csv").exit_code, 0) << row;
    EXPECT_EQ(read_file(scratch.path() / "odd.jsonl"), read_file(scratch.path() / "whole.jsonl"));
  }
}

/// Each process finds its rank where mpirun puts it; the first joins the parts.
TEST(SweepCommand, OfTwoProcessesEndsWithTheSameFile) {
  const Scratch scratch;
  ASSERT_EQ(scratch.run(kSmallSweep + "-j 1 -o one.jsonl").exit_code, 0);
  const auto of = [](const char* rank) {
    return "OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=" + std::string{rank} + " ";
  };
  const Ran ran = scratch.run(of("1") + kSmallSweep + "-o two.jsonl & " + of("0") + kSmallSweep +
                              "-o two.jsonl; wait");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("6 points, 0 of them failed"));
  EXPECT_EQ(read_file(scratch.path() / "one.jsonl"), read_file(scratch.path() / "two.jsonl"));
  EXPECT_FALSE(std::filesystem::exists(scratch.path() / "two.jsonl.1"));
}

TEST(SweepCommand, RefusesAFileOfAnotherSweepAndMistakesInItsAxes) {
  const Scratch scratch;
  ASSERT_EQ(scratch.run(kSmallSweep + "-o s.jsonl").exit_code, 0);
  const std::string other = "foretrace sweep scenarios/nccl/all_reduce.yaml ";
  const Ran ran = scratch.run(other + "--set ranks=2 -o s.jsonl");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("s.jsonl is of another sweep"));
  EXPECT_THAT(scratch.run(other + "--with nvlnk=2x -o t.jsonl").err,
              HasSubstr("did you mean 'nvlink'?"));
  EXPECT_THAT(scratch.run(other + "--machine h200 -o t.jsonl").err, HasSubstr("h200"));
  EXPECT_EQ(scratch.run(other + "--set ranks=2").exit_code, 2);
  EXPECT_THAT(scratch.run(other + "--set ranks=2 --against rank=2 -o t.jsonl").err,
              HasSubstr("no axis of that name"));
}

TEST(SweepCommand, OfAMachineFileThatWasEditedIsAnotherSweep) {
  const Scratch scratch;
  const auto machine = [&](const std::string& bandwidth) {
    const Ran made = scratch.run("sed 's|^  nvlink.bandwidth: {value: 450 GB/s|  nvlink.bandwidth: "
                                 "{value: " + bandwidth + "|' models/machines/h200-nvswitch-8.yaml "
                                 ">base.yaml && grep -c 'bandwidth: {value: " + bandwidth +
                                 "' base.yaml");
    ASSERT_EQ(made.exit_code, 0) << made.err;
  };
  const std::string sweep =
      "foretrace sweep scenarios/nccl/all_reduce.yaml --set ranks=2 -m base.yaml -o s.jsonl";
  machine("400 GB/s");
  ASSERT_EQ(scratch.run(sweep).exit_code, 0) << scratch.run(sweep).err;
  EXPECT_EQ(scratch.run(sweep).exit_code, 0) << "nothing changed";
  const std::string before = read_file(scratch.path() / "s.jsonl");
  machine("200 GB/s");
  const Ran edited = scratch.run(sweep);
  EXPECT_EQ(edited.exit_code, 2) << "not the old machine's times";
  EXPECT_THAT(edited.err, HasSubstr("a machine file changed since"));
  EXPECT_EQ(read_file(scratch.path() / "s.jsonl"), before);
}

TEST(SweepCommand, OfBytesThatAreNoTextIsWrongUse) {
  const Scratch scratch;
  for (const char* rest : {"scenarios/nccl/all_reduce.yaml --set \"ranks=$(printf '\\377')\"",
                           "\"$(printf 'x\\377.yaml')\" --set ranks=2"}) {
    const Ran ran = scratch.run("cp -L scenarios/nccl/all_reduce.yaml \"$(printf 'x\\377.yaml')\"; "
                                "foretrace sweep " +
                                std::string{rest} + " -o s.jsonl");
    EXPECT_EQ(ran.exit_code, 2) << rest << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("is not UTF-8 text"));
  }
  const Ran check = scratch.run("foretrace check --format json \"$(printf 'x\\377.yaml')\"");
  EXPECT_EQ(check.exit_code, 0) << check.err;
  EXPECT_FALSE(nlohmann::json::parse(check.out, nullptr, false).is_discarded());
}

TEST(SweepCommand, IsWrongUseWhereNoPointCanBePredicted) {
  const Scratch scratch;
  const Ran ran = scratch.run("foretrace sweep scenarios/nccl/all_reduce.yaml --set rank=2,4 -o s");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.out, HasSubstr("2 points, 2 of them failed"));
  EXPECT_THAT(ran.err, HasSubstr("the scenario has no parameter 'rank' (hint: did you mean "
                                 "'ranks'?)"));
}

}  // namespace
}  // namespace foretrace::test
