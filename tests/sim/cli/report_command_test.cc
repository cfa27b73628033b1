#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "reports/timeline/origin.h"
#include "reports/timeline/timeline_json.h"
#include "scenarios/read/scenario.h"
#include "sim/cli/commands.h"
#include "tests/reports/timeline_builder.h"
#include "tests/sim/cli/command_line.h"

namespace foretrace {
namespace {

using test::TimelineBuilder;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kTwoKernels = R"(# Two kernels, one after the other.
schema_version: 1
name: two_kernels
streams: {compute: {flags: non_blocking}}
threads:
  main:
    - region:
        name: step
        ops:
          - spin: {id: one, stream: compute, duration: 50us}
          - spin: {id: two, stream: compute, duration: 10us}
          - device_synchronize: {}
)";

class ReportCommand : public testing::Test {
 protected:
  ReportCommand() { std::ofstream{directory_ / "two_kernels.yaml"} << kTwoKernels; }

  void write(const std::string& run, bool measured, std::int64_t second_kernel_ns) {
    const Program program = load_scenario(directory_ / "two_kernels.yaml");
    TimelineBuilder b{measured};
    b.timeline.origin = origin_of(program);
    b.timeline.origin.measured = measured;
    b.timeline.origin.machine = measured ? "1 x NVIDIA H200" : "h200-nvswitch-8";
    b.timeline.ops = op_rows(program);
    const auto host = b.host();
    const auto stream = b.stream("compute");
    b.span(1, host, 0, 4'000);
    b.span(1, stream, 6'000, 56'000, 1);
    b.span(2, host, 4'000, 8'000);
    b.span(2, stream, 57'000, 57'000 + second_kernel_ns, 1);
    b.region(0, "<step> & more", {57'000 + second_kernel_ns});
    std::filesystem::create_directories(directory_ / run);
    write_timeline(b.timeline, directory_ / run / (measured ? kMeasuredFile : kPredictedFile));
  }
  test::CommandRun report(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "report");
    return test::run_command(add_report_command, arguments);
  }
  std::string at(const std::string& name) const { return (directory_ / name).string(); }
  /// The page of a run whose second kernel is predicted 12 us and measured 10 us.
  std::string page() {
    write("run", false, 12'000);
    write("run", true, 10'000);
    const auto ran = report({at("run")});
    EXPECT_EQ(ran.exit_code, kDone) << ran.err;
    return test::read_text(directory_ / "run" / "report.html");
  }
  test::TemporaryDirectory directory_;
};

TEST_F(ReportCommand, SaysWhereTheTimeGoesAndWhatEachCauseCosts) {
  write("run", false, 10'000);
  const std::string run = (directory_ / "run").string();
  const std::string page = (directory_ / "page.html").string();
  ASSERT_EQ(report({run, "-o", page}).exit_code, 0);
  EXPECT_THAT(test::read_text(page), HasSubstr("predicted: process 0, device 0</td>"));
  EXPECT_THAT(test::read_text(page), HasSubstr("--explain adds what the run would take"));
  // 60 of 67 us are kernels.
  EXPECT_THAT(test::read_text(page), HasSubstr("<td class=\"n\">89.6 %</td>"));
  const auto ran = report({run, "--explain", "-o", page});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(test::read_text(page), HasSubstr("calls of the host take no time"));
  EXPECT_THAT(test::read_text(page), Not(HasSubstr("--explain adds")));
}

TEST_F(ReportCommand, BeginsWithTheVerdict) {
  const std::string html = page();
  // (69 - 67) / 67 us = +3.0 %
  EXPECT_THAT(html, HasSubstr("<div class=\"figure good\">+3.0 % "));
  EXPECT_THAT(html, HasSubstr("<span class=\"badge\">prediction</span>"));
  EXPECT_LT(html.find("class=\"figure"), html.find("<h2>Timeline</h2>"));
}

TEST_F(ReportCommand, LinksTheWorstOperationToItsLine) {
  const std::string html = page();
  const auto worst = html.find("Where it is most wrong");
  ASSERT_NE(worst, std::string::npos);
  const std::string table = html.substr(worst, html.find("<h2>Timeline</h2>") - worst);
  EXPECT_THAT(table, HasSubstr("spin two</a>"));
  EXPECT_THAT(table, HasSubstr("+20.0 %"));
  EXPECT_THAT(table, HasSubstr("<a href=\"#run1-L11\">11</a>"));
  EXPECT_THAT(table, Not(HasSubstr("spin one")));  // predicted exactly
  EXPECT_THAT(html, HasSubstr("<span id=\"run1-L11\"><i>11</i>          - spin: {id: two"));
}

TEST_F(ReportCommand, DrawsPredictedAboveMeasuredWithTheirNumbers) {
  const std::string html = page();
  EXPECT_THAT(html, HasSubstr("predicted: 12.00 us, begins at 57.00 us\n"
                              "measured: 10.00 us, error +20.0 %"));
  EXPECT_THAT(html, HasSubstr("class=\"s c-kernel first\""));
  EXPECT_THAT(html, HasSubstr("class=\"s c-kernel second\""));
  EXPECT_THAT(html, HasSubstr("<path class=\"arrow\""));
}

TEST_F(ReportCommand, EscapesNames) {
  const std::string html = page();
  EXPECT_THAT(html, HasSubstr("&lt;step&gt; &amp; more"));
  EXPECT_THAT(html, Not(HasSubstr("<step>")));
}

TEST_F(ReportCommand, NeedsNoNetwork) {
  const std::string html = page();
  EXPECT_THAT(html, Not(HasSubstr("src=")));
  EXPECT_THAT(html, Not(HasSubstr("<link")));
  EXPECT_THAT(html, Not(HasSubstr("@import")));
}

TEST_F(ReportCommand, CarriesItsDataAsJson) {
  const std::string html = page();
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const auto begin = html.find(open) + open.size();
  const auto data =
      nlohmann::json::parse(html.substr(begin, html.find("</script>", begin) - begin));
  ASSERT_EQ(data.size(), 1U);
  EXPECT_EQ(data[0].at("regions").at(0).at("name"), "<step> & more");
}

TEST_F(ReportCommand, FillsEveryTagOfItsTemplate) { EXPECT_THAT(page(), Not(HasSubstr("{{"))); }

TEST_F(ReportCommand, ShowsAPredictionAlone) {
  write("run", false, 12'000);
  const auto ran = report({at("run"), "-o", at("alone.html")});
  EXPECT_EQ(ran.exit_code, kDone) << ran.err;
  const std::string html = test::read_text(directory_ / "alone.html");
  EXPECT_THAT(html, HasSubstr("Predicted only: nothing to compare with yet."));
  EXPECT_THAT(html, HasSubstr("spin two"));
  EXPECT_THAT(html, Not(HasSubstr("MISSING")));
  EXPECT_THAT(html, Not(HasSubstr("unmatched</th>")));
}

TEST_F(ReportCommand, BringsTogetherWhatIsInTwoDirectories) {
  write("sim", false, 12'000);
  write("real", true, 10'000);
  report({at("sim"), at("real"), "-o", at("both.html")});
  EXPECT_THAT(test::read_text(directory_ / "both.html"), HasSubstr("+3.0 % "));
}

TEST_F(ReportCommand, PutsATableOfAllRegionsAboveSeveralRuns) {
  for (const std::string run : {"a", "b"}) {
    write(run, false, 12'000);
    write(run, true, 10'000);
  }
  report({at("a"), at("b"), "-o", at("all.html")});
  const std::string html = test::read_text(directory_ / "all.html");
  EXPECT_THAT(html, HasSubstr("<h1>2 runs, 2 regions</h1>"));
  EXPECT_THAT(html, HasSubstr("<a href=\"#run2\">two_kernels</a>"));
  EXPECT_THAT(html, HasSubstr("id=\"run2\""));
  EXPECT_EQ(report({at("a"), at("b")}).exit_code, kWrongUse);  // where to?
}

TEST_F(ReportCommand, PutsTheWorstRunFirstAndListsWhatCannotBeRead) {
  write("good", false, 10'000);
  write("good", true, 10'000);
  write("far", false, 90'000);  // 147 against 67 us
  write("far", true, 10'000);
  std::filesystem::create_directories(directory_ / "bad");
  std::ofstream{directory_ / "bad" / kPredictedFile} << "{\"schema_version\": 1,";
  const auto ran = report({at("good"), at("bad"), at("far"), "-o", at("all.html")});
  EXPECT_EQ(ran.exit_code, kWrongUse);
  EXPECT_THAT(ran.err, HasSubstr("2 runs"));
  EXPECT_THAT(ran.err, HasSubstr("1 could not be read"));
  const std::string html = test::read_text(directory_ / "all.html");
  EXPECT_THAT(html, HasSubstr("1 run fails; it stands first."));
  EXPECT_THAT(html, HasSubstr("<dt>" + at("bad") + "</dt>"));
  EXPECT_LT(html.find("class=\"fails\""), html.find("+119.4 %"));
  EXPECT_LT(html.find("+119.4 %"), html.find("+0.0 %"));
  EXPECT_LT(html.find("<section class=\"run\" id=\"run2\""),
            html.find("<section class=\"run\" id=\"run1\""));
}

TEST_F(ReportCommand, NamesARegionByItsSizeAndDrawsItsBandwidth) {
  std::ofstream{directory_ / "two_kernels.yaml"} << R"(schema_version: 1
name: two_kernels
streams: {copy: {flags: non_blocking}}
graphs: {g: {}}
buffers:
  from: {memory: device, size: 64KiB}
  to: {memory: device, size: 64KiB}
threads:
  main:
    - repeat:
        times: 3
        index: i
        ops:
          - region:
              name: copied
              ops:
                - memcpy_async: {dst: to, src: from, size: 4KiB * 4 ** i, stream: copy}
          - graph_capture:
              graph: g
              stream: copy
              ops: [memcpy_async: {dst: to, src: from, size: 2KiB * 4 ** i, stream: copy}]
          - region: {name: replayed, ops: [graph_launch: {graph: g, stream: copy}]}
)";
  const Program program = load_scenario(directory_ / "two_kernels.yaml");
  TimelineBuilder b{false};
  b.timeline.origin = origin_of(program);
  b.timeline.ops = op_rows(program);
  for (std::uint32_t process : {0U, 1U, 3U}) {
    for (std::uint64_t i = 0; i < 3; ++i) b.region(1, "copied", {2'048}, process, i);
  }
  for (std::uint64_t i = 0; i < 3; ++i) b.region(5, "replayed", {2'048}, 0, i);
  std::filesystem::create_directories(directory_ / "run");
  write_timeline(b.timeline, directory_ / "run" / kPredictedFile);
  EXPECT_EQ(report({at("run")}).exit_code, kDone);
  const std::string html = test::read_text(directory_ / "run" / "report.html");
  EXPECT_THAT(html, HasSubstr("<td class=\"w\">copied 16 KiB</td>"));
  EXPECT_THAT(html, HasSubstr("<td class=\"n muted\">0-1, 3</td>"));
  EXPECT_THAT(html, HasSubstr("<h3>copied: memcpy_async, d2d</h3>"));
  EXPECT_THAT(html, HasSubstr("predicted: 32 GB/s at 64 KiB"));  // 65536 B / 2048 ns
  EXPECT_THAT(html, HasSubstr("<td class=\"w\">replayed 8 KiB</td>")) << "what its graph captured";
  EXPECT_THAT(html, HasSubstr("<h3>replayed: memcpy_async, d2d</h3>"));
}

TEST_F(ReportCommand, WritesThePictureAloneAsWellFormedSvg) {
  write("run", false, 12'000);
  write("run", true, 10'000);
  const auto ran = report({at("run"), "--svg", at("lanes.svg")});
  EXPECT_EQ(ran.exit_code, kDone) << ran.err;
  EXPECT_FALSE(std::filesystem::exists(directory_ / "run" / "report.html"));
  const std::string svg = test::read_text(directory_ / "lanes.svg");
  EXPECT_THAT(svg, HasSubstr("<style>"));
  const std::string parse =
      FORETRACE_PYTHON " -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' '" +
      at("lanes.svg") + "'";
  EXPECT_EQ(std::system(parse.c_str()), 0);
}

}  // namespace
}  // namespace foretrace
