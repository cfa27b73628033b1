// Results of the earlier form become today's. The sample is what foretrace-hw 0.1.0 wrote, with a
// variable, a path and a kernel as some computers have them.
#include "reports/compare/convert.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "reports/compare/merge.h"
#include "reports/timeline/environments.h"
#include "reports/timeline/timeline_json.h"
#include "scenarios/base/text/errors.h"
#include "tests/reports/timeline_builder.h"

namespace foretrace::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

/// One entry of `starts`; only the number, the label and the GPU's temperature differ.
std::string old_start(int number, const std::string& label, int celsius) {
  return R"({"date": "2026-11-21T03:10:23Z", "label": ")" + label + R"(", "machine": {
    "gpus": [{"compute_capability": "9.0", "copy_engines": 3, "l2_bytes": 62914560,
      "memory_bytes": 150109880320, "memory_clock_mhz": 3201, "name": "NVIDIA H200", "nvlinks": 18,
      "ordinal": 0, "pci_bus_id": "0000:00:06.0", "shared_bytes_per_block": 232448,
      "sm_clock_max_mhz": 1980, "sm_clock_mhz": 1980, "sm_count": 132,
      "temperature_celsius": )" +
         std::to_string(celsius) + R"(, "throttle_reasons": "none"}],
    "host": {"cores": 32, "cores_allowed": 32, "cpu": "Intel(R) Xeon(R) Processor",
      "kernel": "Linux 6.18.44-node7-gpu", "memory": "263998500 kB", "name": "node7",
      "transparent_hugepages": "always [madvise] never"},
    "links": [], "software": {"cublas": "13.1.0", "cuda": "13.0", "cupti": "130001",
      "driver": "580.159.04", "nccl": "2.28.3"},
    "variables": {"CUDA_VISIBLE_DEVICES": "GPU-8f1c", "NCCL_COMM_ID": "node7:4242",
      "NCCL_NVLS_ENABLE": "0", "NCCL_TOPO_FILE": "/home/me/topology.xml",
      "NCCL_VERSION": "2.28.3-1"}}, "start": )" +
         std::to_string(number) + "}";
}

class Convert : public testing::Test {
 protected:
  /// A result with two starts below `place`.
  fs::path write_old(const std::string& place, const std::string& hash, int celsius) const {
    TimelineBuilder builder{true, hash};
    const auto op = builder.op("region", 3, "step");
    builder.region(op, "step", {10, 20}).starts = {0, 1};
    builder.timeline.origin.file =
        "/home/me/foretrace/scenarios/examples/prefetch_two_streams.yaml";
    fs::create_directories(root_ / place);
    fs::path result = root_ / (place + "/" + kMeasuredFile);
    write_timeline(builder.timeline, result);
    std::ofstream{root_ / (place + "/environment.json")} << R"({"schema_version": 1, "starts": [)"
                                                         << old_start(0, "b1", celsius) << ", "
                                                         << old_start(1, "b2", celsius + 1) << "]}";
    return result;
  }

  std::vector<fs::path> environments() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator{root_ / "environments"}) {
      files.push_back(entry.path());
    }
    return files;
  }

  TemporaryDirectory root_;
};

TEST_F(Convert, KeepsAnEnvironmentOnceAndTheRestWithTheStart) {
  const fs::path a = write_old("a", "a", 30);
  const fs::path b = write_old("2_ranks/b", "b", 50);
  EXPECT_THAT(convert_runs(root_.path()), ElementsAre(b, a));
  EXPECT_THAT(environments(), SizeIs(1));
  EXPECT_FALSE(fs::exists(root_ / "a/environment.json"));
  const Timeline timeline = read_timeline(b);
  EXPECT_EQ(timeline.origin.file, "scenarios/examples/prefetch_two_streams.yaml");
  EXPECT_THAT(timeline.regions.at(0).samples_ns, ElementsAre(10, 20));
  const auto& starts = timeline.origin.starts;
  ASSERT_THAT(starts, SizeIs(2));
  EXPECT_EQ(starts[1].start, 1U);
  EXPECT_EQ(starts[1].label, "b2");
  EXPECT_EQ(starts[1].date, "2026-11-21T03:10:23Z");
  EXPECT_EQ(starts[1].gpus, (std::vector<GpuState>{{1980, 3201, 51, "none"}}));
  EXPECT_EQ(find_environment(b, starts[1].environment), environments().at(0));
}

TEST_F(Convert, LeavesOutWhatNamesTheComputer) {
  write_old("a", "a", 30);
  convert_runs(root_.path());
  EXPECT_THAT(read_text(environments().at(0)),
              AllOf(HasSubstr(R"("NCCL_NVLS_ENABLE": "0")"), HasSubstr(R"("Linux 6.18.44")"),
                    Not(HasSubstr("node7")), Not(HasSubstr("/")), Not(HasSubstr("0000:00")),
                    Not(HasSubstr("COMM_ID")), Not(HasSubstr("VERSION")), Not(HasSubstr("8f1c"))));
}

TEST_F(Convert, ChangesNothingASecondTime) {
  write_old("a", "a", 30);
  convert_runs(root_.path());
  EXPECT_THAT(convert_runs(root_.path()), IsEmpty());
}

TEST_F(Convert, MergeTakesTheEarlierFormToo) {
  write_old("monday/a", "a", 30);
  write_old("tuesday/a", "a", 40);
  merge_runs({root_ / "monday", root_ / "tuesday"}, root_.path());
  const Timeline merged = read_timeline(root_ / "a/measured.timeline.json");
  ASSERT_THAT(merged.origin.starts, SizeIs(4));
  EXPECT_EQ(merged.origin.starts[3].start, 3U);
  EXPECT_EQ(merged.origin.starts[3].gpus.at(0).temperature_celsius, 41U);
  EXPECT_THAT(environments(), SizeIs(1));
}

TEST_F(Convert, RefusesAFileThatTheHarnessDidNotWrite) {
  write_old("a", "a", 30);
  std::ofstream{root_ / "a/environment.json"} << "[]";
  EXPECT_THROW(convert_runs(root_.path()), UsageError);
  EXPECT_THROW(convert_runs(root_ / "nowhere"), UsageError);
}

}  // namespace
}  // namespace foretrace::test
