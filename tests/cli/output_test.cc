// What happens to files, pipes and devices that commands write to: nothing that was there is lost,
// and an answer that nobody could read is no success.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "scenarios/base/text/data_directory.h"
#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kPrefetch = "scenarios/examples/prefetch_two_streams.yaml";

TEST(Report, OfThousandsOfOperationsHasAsManyElementsAsABrowserOpens) {
  const Scratch scratch;
  std::string text =
      "schema_version: 1\nname: long\nstreams: {s: {flags: non_blocking}}\nthreads:\n  main:\n";
  for (int i = 0; i < 6000; ++i) text += "    - spin: {stream: s, duration: 5us}\n";
  scratch.write("long.yaml", text);
  ASSERT_EQ(scratch.run("foretrace simulate long.yaml -o run").exit_code, 0);
  const Ran ran = scratch.run("foretrace report run -o page.html");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const std::string page = read_file(scratch.path() / "page.html");
  EXPECT_LT(page.size(), 2'000'000U);
  std::size_t elements = 0;
  for (std::size_t i = 0; i + 1 < page.size(); ++i) {
    elements += page[i] == '<' && std::isalpha(static_cast<unsigned char>(page[i + 1])) != 0;
  }
  EXPECT_LT(elements, 20'000U);
  EXPECT_THAT(page, HasSubstr("11,600 more are not shown")) << "of 12,000 rows";
}

/// A run with both timelines.
class Output : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(scratch_.run(std::string{"foretrace simulate "} + kPrefetch + " -o run").exit_code,
              0);
    fs::copy_file(scratch_.path() / "reports/measured/prefetch_two_streams/measured.timeline.json",
                  scratch_.path() / "run/measured.timeline.json");
  }
  fs::path file(const std::string& name) const { return scratch_.path() / name; }
  std::size_t files_in(const std::string& directory) const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator{file(directory)}, fs::directory_iterator{}));
  }

  Scratch scratch_;
};

// ---- what is there ------------------------------------------------------------------------------

TEST_F(Output, WritesIntoADeviceAndLeavesItThere) {
  EXPECT_EQ(scratch_.run("foretrace compare run -o /dev/null").exit_code, 0);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(scratch_.run("foretrace compare run -o /dev/full").exit_code, 4);
}

TEST_F(Output, WritesIntoAPipeAndLeavesItThere) {
  ASSERT_EQ(::mkfifo(file("pipe").c_str(), 0600), 0);
  const Ran unread = scratch_.run("foretrace compare run -o pipe");
  EXPECT_EQ(unread.exit_code, 4) << "nobody reads: no wait for ever";
  const Ran read = scratch_.run("exec 3<>pipe; foretrace compare run -o pipe && head -c 1 <&3");
  EXPECT_EQ(read.exit_code, 0) << read.err;
  EXPECT_THAT(read.out, testing::SizeIs(1));
  EXPECT_TRUE(fs::is_fifo(file("pipe")));
}

TEST_F(Output, WritesThroughALink) {
  scratch_.write("target.csv", "precious");
  fs::create_symlink("target.csv", file("link.csv"));
  fs::create_symlink("link.csv", file("link_to_it.csv"));
  EXPECT_EQ(scratch_.run("foretrace export run --to csv -o link_to_it.csv").exit_code, 0);
  EXPECT_TRUE(fs::is_symlink(file("link.csv")) && fs::is_symlink(file("link_to_it.csv")));
  EXPECT_THAT(read_file(file("target.csv")), HasSubstr("origin,op,kind"));
  fs::create_symlink("not_there_yet.csv", file("dangling.csv"));
  EXPECT_EQ(scratch_.run("foretrace export run --to csv -o dangling.csv").exit_code, 0);
  EXPECT_TRUE(fs::is_regular_file(file("not_there_yet.csv")));
}

TEST_F(Output, ThatCannotBeWrittenIsOneExitCodeInEveryCommand) {
  for (const char* command :
       {"simulate scenarios/nccl/all_reduce.yaml -o /proc/x", "compare run -o /proc/x/y",
        "export run --to kineto -o /proc/x", "merge run -o /proc/x", "report run -o /proc/x.html",
        "sweep scenarios/nccl/all_reduce.yaml --set ranks=2 -o /proc/x/s.jsonl"}) {
    const Ran ran = scratch_.run(std::string{"foretrace "} + command);
    EXPECT_EQ(ran.exit_code, 4) << command << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("/proc/x")) << command;
  }
}

TEST_F(Output, ALoopOfLinksIsAnError) {
  fs::create_symlink("b.csv", file("a.csv"));
  fs::create_symlink("a.csv", file("b.csv"));
  EXPECT_EQ(scratch_.run("foretrace export run --to csv -o a.csv").exit_code, 4);
  const Ran read = scratch_.run("foretrace report a.csv -o page.html");
  EXPECT_EQ(read.exit_code, 2);
  EXPECT_THAT(read.err, HasSubstr("a.csv: Too many levels of symbolic links"));
}

TEST_F(Output, FollowsNoLinkThatSomebodyLeftUnderATemporaryName) {
  scratch_.write("precious", "precious");
  fs::create_symlink("precious", file("y.csv.tmp"));
  EXPECT_EQ(scratch_.run("foretrace export run --to csv -o y.csv").exit_code, 0);
  EXPECT_EQ(read_file(file("precious")), "precious");
}

TEST_F(Output, KeepsTheModeOfWhatItReplaces) {
  scratch_.write("page.html", "old");
  ASSERT_EQ(::chmod(file("page.html").c_str(), 0640), 0);
  EXPECT_EQ(scratch_.run("foretrace report run -o page.html").exit_code, 0);
  EXPECT_EQ(fs::status(file("page.html")).permissions(), fs::perms{0640});
}

TEST_F(Output, IsNeverAnInputOfTheSameCommand) {
  const std::string before = read_file(file("run/measured.timeline.json"));
  for (const char* command :
       {"ln run/measured.timeline.json page.html; foretrace report run/measured.timeline.json "
        "-o page.html",
        "foretrace compare run -o run/measured.timeline.json",
        "ln run/measured.timeline.json other; foretrace compare run -o other",
        "foretrace merge run -o run",
        "cp -L models/machines/h200-nvswitch-8.yaml m.yaml; ln m.yaml m.csv; foretrace nccl-tests "
        "all_reduce -b 1M --processes 2 --machine m.yaml --output m.csv"}) {
    const Ran ran = scratch_.run(command);
    EXPECT_EQ(ran.exit_code, 2) << command;
    EXPECT_THAT(ran.err, testing::AnyOf(HasSubstr("write over it"), HasSubstr("written over")));
  }
  EXPECT_EQ(read_file(file("run/measured.timeline.json")), before);
}

TEST_F(Output, OfASearchIsNoInputAndNoOtherOutputBeforeItBegins) {
  const std::string shipped = read_file(data_directory() / "scenarios/nccl/all_reduce.yaml");
  scratch_.write("p.yaml", shipped);
  const std::string sweep = "foretrace sweep p.yaml --set ranks=2 ";
  const std::string plan = "foretrace plan c.json --gpus 2 --keep tensor=1 --top 1 ";
  scratch_.write("c.json", read_file(data_directory() / "scenarios/architectures/gpt2.json"));
  const std::string config = read_file(file("c.json"));
  for (const std::string& command :
       {sweep + "-o s.jsonl --csv p.yaml", sweep + "-o p.yaml", sweep + "-o s.jsonl --page p.yaml",
        sweep + "-o s.jsonl --csv s.jsonl", sweep + "-o s.jsonl --csv q --page ./q",
        plan + "--write-scenario 1 c.json", plan + "-o a.json --write-scenario 1 a.json",
        std::string{"touch h.html; ln h.html h.svg; foretrace report run --svg h.svg -o h.html"}}) {
    const Ran ran = scratch_.run(command);
    EXPECT_EQ(ran.exit_code, 2) << command;
    EXPECT_THAT(ran.err, testing::AnyOf(HasSubstr("would write over it"), HasSubstr("two results")))
        << command;
  }
  EXPECT_EQ(read_file(file("p.yaml")), shipped);
  EXPECT_EQ(read_file(file("c.json")), config);
  EXPECT_FALSE(fs::exists(file("s.jsonl")) || fs::exists(file("z.html")));
}

TEST_F(Output, ShowsNoControlCharactersOfAFile) {
  auto timeline = nlohmann::ordered_json::parse(read_file(file("run/measured.timeline.json")));
  timeline["scenario"]["file"] = "x\x1b]0;title\x07";
  scratch_.write("run/measured.timeline.json", timeline.dump());
  const Ran ran = scratch_.run("foretrace assert run/measured.timeline.json");
  EXPECT_THAT(ran.out + ran.err, HasSubstr("x?]0;title?"));
  EXPECT_EQ((ran.out + ran.err).find('\x1b'), std::string::npos);
}

TEST_F(Output, LeavesNothingBehindWhenItFails) {
  const std::size_t before = files_in("run");
  EXPECT_EQ(scratch_.run("ulimit -f 1; foretrace report run -o run/page.html").exit_code, 4);
  EXPECT_EQ(scratch_.run("foretrace report run -o run").exit_code, 4) << "a directory";
  EXPECT_EQ(files_in("run"), before);
}

// ---- several at once ----------------------------------------------------------------------------

TEST_F(Output, OfTwoRunsInOneDirectoryIsOneOfBothWhole) {
  scratch_.write("big.yaml",
                 "# x\nschema_version: 1\nname: big\nparameters: {n: 4000}\n"
                 "streams: {s: {flags: non_blocking}}\n"
                 "threads:\n  main:\n"
                 "    - repeat: {times: $n, ops: [{spin: {stream: s, duration: 1us}}]}\n"
                 "    - device_synchronize: {}\n");
  for (int round = 0; round < 5; ++round) {
    const Ran ran = scratch_.run(
        "rm -rf c; foretrace simulate big.yaml -o c & a=$!; "
        "foretrace simulate big.yaml --set n=3900 -o c & b=$!; wait $a && wait $b");
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    const auto timeline = nlohmann::json::parse(read_file(file("c/predicted.timeline.json")));
    EXPECT_THAT(timeline.at("spans").size(), testing::AnyOf(8001U, 7801U));
    EXPECT_EQ(files_in("c"), 2U);
  }
}

// ---- closed and full ----------------------------------------------------------------------------

TEST_F(Output, AFullStdoutIsExitCodeFour) {
  for (const char* command :
       {"simulate scenarios/examples/prefetch_two_streams.yaml",
        "check scenarios/examples/prefetch_two_streams.yaml", "nccl-explain all_reduce 64MiB",
        "list machines --format json", "compare run", "order run", "export run --to csv", "--help",
        "--version", "check --help", "merge run -o merged"}) {
    for (const char* where : {" >/dev/full", " >&-"}) {
      const Ran ran = scratch_.run(std::string{"foretrace "} + command + where);
      EXPECT_EQ(ran.exit_code, 4) << command << where;
      EXPECT_THAT(ran.err, HasSubstr("cannot write to stdout")) << command << where;
    }
  }
}

TEST_F(Output, AReaderThatLeavesIsExitCodeFourWithoutAWord) {
  const Ran ran = scratch_.run(
      "{ foretrace export run --to csv; echo $? >code; } | true; "
      "foretrace export run --to csv | head -1 >first; cat code");
  EXPECT_EQ(ran.out, "4\n");
  EXPECT_THAT(ran.err, IsEmpty());
}

TEST_F(Output, AFullOrClosedStderrChangesNoExitCode) {
  for (const char* where : {" 2>/dev/full", " 2>&-"}) {
    EXPECT_EQ(scratch_.run(std::string{"foretrace report run -o page.html"} + where).exit_code, 0);
    EXPECT_EQ(scratch_.run(std::string{"foretrace simulate nowhere.yaml"} + where).exit_code, 2);
    EXPECT_EQ(scratch_.run(std::string{"foretrace nonsense"} + where).exit_code, 2);
    EXPECT_EQ(scratch_.run(std::string{"foretrace compare run -o /dev/full"} + where).exit_code, 4);
  }
}

TEST_F(Output, AFileGetsNothingThatWasMeantForAClosedStream) {
  const Ran ran = scratch_.run("foretrace report run -o page.html 0<&- 1>&- 2>&-");
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(read_file(file("page.html")), AllOf(HasSubstr("<!"), HasSubstr("</html>")));
  EXPECT_THAT(read_file(file("page.html")), testing::Not(HasSubstr("wrote page.html")));
}

}  // namespace
}  // namespace foretrace::test
