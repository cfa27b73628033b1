// foretrace fit and merge as a user meets them, on the measurements in the repository.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

const std::string kThreads = "foretrace fit reports/measured/calibrate_threads ";
const std::string kShipped = "--machine h200-nvswitch-8 ";

TEST(FitCommand, JudgesAMachineWithoutFittingIt) {
  const Scratch scratch;
  const Ran ran = scratch.run("foretrace fit reports/measured/calibrate_copies " + kShipped +
                              "--judge --residuals residuals.csv");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("| copies"), HasSubstr("validation mean")));
  EXPECT_THAT(read_file(scratch.path() / "residuals.csv"),
              AllOf(HasSubstr("scenario,GPUs,region,class,measured,predicted,error,spread,in"),
                    HasSubstr("calibrate_copies,1,h2d [7],copies,")));
}

TEST(FitCommand, RefusesAMachineFileWhenAWholeClassIsMissing) {
  const Scratch scratch;
  const Ran ran = scratch.run(kThreads + kShipped +
                              "-o mine.yaml --only host.barrier --only copy.h2d_bandwidth");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("nothing here determines any copy.* parameter"),
                             HasSubstr("foretrace-hw calibrate"), HasSubstr("--without CLASS")));
  EXPECT_FALSE(fs::exists(scratch.path() / "mine.yaml"));
}

TEST(FitCommand, WritesAMachineFileThatPredicts) {
  const Scratch scratch;
  const Ran ran =
      scratch.run(kThreads +
                  "--new mine -o mine.yaml --all --without gpu --without copy --without kernel"
                  " --without gemm --without nccl --only host.barrier --only host.signal"
                  " --only host.malloc");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("host.barrier"), HasSubstr("host.signal")));
  EXPECT_THAT(ran.err, HasSubstr("not determined, left as it was: host.malloc: no measured region "
                                 "depends on it (would be by: scenarios/calibration/memory.yaml)"));
  const std::string file = read_file(scratch.path() / "mine.yaml");
  EXPECT_THAT(file,
              AllOf(HasSubstr("name: mine"), HasSubstr("gpu: NVIDIA H200"),
                    HasSubstr("as h200-nvswitch-8"), HasSubstr("scenario: calibrate_threads")));
  const Ran predicts = scratch.run(
      "foretrace simulate scenarios/calibration/threads.yaml --machine mine.yaml -o out");
  EXPECT_EQ(predicts.exit_code, 0) << predicts.err;
}

TEST(FitCommand, SaysInTenLinesWhatWasLearnedHowWellAndWhatToMeasureNext) {
  const Scratch scratch;
  const Ran ran =
      scratch.run(kThreads + "reports/measured/prefetch_two_streams " + kShipped +
                  "-o mine.yaml --only host.barrier --without host --without gpu --without copy "
                  "--without kernel --without gemm --without nccl");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_LE(std::ranges::count(ran.out, '\n'), 10) << ran.out;
  EXPECT_THAT(
      ran.out,
      AllOf(HasSubstr("h200-nvswitch-8: 1 parameters learned of 1 (host 1 of 1), from 2 "
                      "programs"),
            HasSubstr("learned from: "), HasSubstr("held out: "), HasSubstr("prefetch_two_streams"),
            HasSubstr("least sure: host.barrier"), HasSubstr("all tables: --all")));
}

TEST(FitCommand, RefusesWhenARequiredParameterIsNotDetermined) {
  const Scratch scratch;
  const Ran ran = scratch.run(kThreads + kShipped +
                              "-o mine.yaml --without gpu --without copy --without kernel "
                              "--without gemm --without nccl --require host.malloc "
                              "--only host.barrier --only host.malloc");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("host.malloc: no measured region depends on it; it would be "
                                 "determined by scenarios/calibration/memory.yaml"));
  EXPECT_FALSE(fs::exists(scratch.path() / "mine.yaml"));
}

TEST(FitCommand, SaysWhatIsWrongWithItsArguments) {
  const Scratch scratch;
  const auto refused = [&](const std::string& arguments) {
    const Ran ran = scratch.run("foretrace fit " + arguments);
    EXPECT_EQ(ran.exit_code, 2) << arguments;
    return ran.err;
  };
  const std::string run = "reports/measured/calibrate_threads ";
  EXPECT_THAT(refused(run + "-o x.yaml"), HasSubstr("--machine or --new"));
  EXPECT_THAT(refused(run + kShipped), HasSubstr("--output"));
  EXPECT_THAT(refused(run + kShipped + "--judge --hold-out rank=4"), HasSubstr("ranks=4"));
  EXPECT_THAT(refused("nowhere " + kShipped + "--judge"), HasSubstr("nowhere"));
  EXPECT_THAT(refused("scenarios/calibration " + kShipped + "--judge"),
              HasSubstr("foretrace-hw calibrate"));
  EXPECT_THAT(refused("reports/measured/prefetch_two_streams " + kShipped + "-o x.yaml"),
              HasSubstr("no calibration scenario"));
}

TEST(MergeCommand, JoinsProcessStartsOfOneProgram) {
  const Scratch scratch;
  const Ran ran = scratch.run(
      "foretrace merge reports/measured/calibrate_threads "
      "reports/measured/h100_x1/calibrate_threads -o both");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_TRUE(fs::exists(scratch.path() / "both" / "measured.timeline.json"));
  EXPECT_TRUE(fs::exists(scratch.path() / "both" / "environments"));
  const Ran twice = scratch.run(
      "foretrace merge reports/measured/calibrate_threads reports/measured/calibrate_threads "
      "-o twice");
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_THAT(twice.err, HasSubstr("are the same measurement: its samples would count twice"));
  const Ran nothing = scratch.run("foretrace merge scenarios -o both");
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_THAT(nothing.err, HasSubstr("measured.timeline.json"));
}

}  // namespace
}  // namespace foretrace::test
