// --host FILE: a machine's GPUs in a host that foretrace-hw host measured.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kProgram =
    "schema_version: 1\nname: calls\nprocesses: 1\ndevices: 1\nstreams: {s: {device: 0}}\n"
    "buffers: {x: {memory: device, device: 0, size: 4KiB}}\nthreads:\n  main:\n"
    "    - region: {name: launches, ops: [repeat: {times: 500, ops: [elementwise: {stream: s, "
    "src: x, dst: x}]}, device_synchronize: {}]}\n";

std::string host_file(const std::string& parameters) {
  return "schema_version: 1\nsummary: \"some CPU, 16 cores\"\ncpu: intel\nfacts:\n"
         "  cores: {value: 16, source: system}\nparameters:\n" +
         parameters +
         "measured:\n  - {what: clock_gettime, value: 21 ns, spread: 1%}\n"
         "sources:\n  system: {class: datasheet, text: the system}\n"
         "  measured: {class: fit, text: \"2026-11-29: 9 rounds\", learned_from: [{other: this "
         "host}], command: \"foretrace-hw host -o host.yaml\"}\n";
}

class HostFileOption : public testing::Test {
 protected:
  void SetUp() override { scratch_.write("calls.yaml", kProgram); }
  Ran simulate(const std::string& more) {
    return scratch_.run("foretrace simulate calls.yaml -m h200-1 " + more);
  }
  nlohmann::json answer(const std::string& more) {
    const Ran ran = simulate("--format json " + more);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return nlohmann::json::parse(ran.out);
  }
  static double width(const nlohmann::json& region) {
    return region.at("high_ns").get<double>() / region.at("predicted_ns").get<double>();
  }
  Scratch scratch_;
};

TEST_F(HostFileOption, PredictsTheMachineInAnotherHost) {
  scratch_.write("slow.yaml",
                 host_file("  host.launch_kernel: {value: 7.7 us, source: measured}\n"));
  const double plain = answer("").at("regions")[0].at("predicted_ns").get<double>();
  const double slow = answer("--host slow.yaml").at("regions")[0].at("predicted_ns").get<double>();
  EXPECT_NEAR(slow / plain, 2, 0.1) << "3.85 us a launch before";
}

TEST_F(HostFileOption, TheBandIsNarrowerWhereTheHostIsKnown) {
  scratch_.write(
      "host.yaml",
      host_file("  host.launch_kernel: {value: 3.85 us, source: measured, spread: 3%}\n"));
  EXPECT_LT(width(answer("--host host.yaml").at("regions")[0]), width(answer("").at("regions")[0]));
}

TEST_F(HostFileOption, TheAnswerSaysWhichHostItRestsOn) {
  scratch_.write("host.yaml",
                 host_file("  host.launch_kernel: {value: 7.7 us, source: measured}\n"));
  const Ran ran = simulate("--host host.yaml");
  EXPECT_THAT(ran.out, HasSubstr("on h200-1 with host=host.yaml"));
  EXPECT_THAT(ran.out, HasSubstr("host: some CPU, 16 cores (host.yaml): 1 parameter; its calls "
                                 "take 2.00 times as long"));
  EXPECT_THAT(answer("--host host.yaml").at("host").get<std::string>(), HasSubstr("some CPU"));
  EXPECT_TRUE(answer("").at("host").is_null());
  EXPECT_THAT(simulate("").out, Not(HasSubstr("host:")));
}

TEST_F(HostFileOption, IsAWhatIfToo) {
  scratch_.write("host.yaml",
                 host_file("  host.launch_kernel: {value: 7.7 us, source: measured}\n"));
  EXPECT_EQ(answer("--with host=host.yaml").at("regions"),
            answer("--host host.yaml").at("regions"));
}

TEST_F(HostFileOption, GoesBeforeOtherWhatIfs) {
  scratch_.write("host.yaml",
                 host_file("  host.launch_kernel: {value: 7.7 us, source: measured}\n"));
  const double half =
      answer("--with host.launch_kernel=0.5x --host host.yaml").at("regions")[0].at("predicted_ns");
  const double plain = answer("").at("regions")[0].at("predicted_ns");
  EXPECT_NEAR(half / plain, 1, 0.1);
}

TEST_F(HostFileOption, SharesItsMeaningWithCompareAndExplainKernel) {
  scratch_.write("host.yaml",
                 host_file("  host.launch_kernel: {value: 7.7 us, source: measured}\n"));
  ASSERT_EQ(simulate("-o run").exit_code, 0);
  const Ran compared =
      scratch_.run("foretrace compare calls.yaml run -m h200-1 --host host.yaml --tolerance 10%");
  EXPECT_EQ(compared.exit_code, 1) << compared.out << compared.err;
  EXPECT_EQ(scratch_.run("foretrace compare calls.yaml run -m h200-1").exit_code, 0);
}

TEST_F(HostFileOption, BadFilesAreRefusedWithTheirLine) {
  const auto refused = [&](const std::string& text) {
    scratch_.write("bad.yaml", text);
    const Ran ran = simulate("--host bad.yaml");
    EXPECT_EQ(ran.exit_code, 2) << ran.out;
    return ran.err;
  };
  EXPECT_THAT(refused(host_file("  host.launch_kernel: {value: 7.7, source: measured}\n")),
              HasSubstr("bad.yaml:7:31: error"));
  EXPECT_THAT(refused(host_file("  host.launch_kernal: {value: 7.7 us, source: measured}\n")),
              HasSubstr("did you mean 'host.launch_kernel'"));
  EXPECT_THAT(refused(host_file("  kernel.base: {value: 7.7 us, source: measured}\n")),
              HasSubstr("bad.yaml:7:3: error: 'kernel.base' is nothing of a host's"));
  EXPECT_THAT(refused(host_file("  host.launch_kernel: {value: 7.7 us, source: me}\n")),
              HasSubstr("no source 'me'"));
  EXPECT_EQ(simulate("--host nowhere.yaml").exit_code, 2);
  EXPECT_THAT(scratch_.run("foretrace plan --help").out, HasSubstr("--host FILE"));
  scratch_.write("host.txt", host_file(""));
  EXPECT_THAT(simulate("--host host.txt").err, HasSubstr("is no .yaml file"));
}

}  // namespace
}  // namespace foretrace::test
