#include "tests/reports/timeline_builder.h"

#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>

namespace foretrace::test {

TemporaryDirectory::TemporaryDirectory() {
  static std::atomic<int> count = 0;
  path_ = std::filesystem::temp_directory_path() /
          ("foretrace_test_" + std::to_string(getpid()) + "_" + std::to_string(count++));
  std::filesystem::create_directories(path_);
}
TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string read_text(const std::filesystem::path& file) {
  std::ifstream in{file, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

TimelineBuilder::TimelineBuilder(bool measured, std::string hash) {
  Origin& origin = timeline.origin;
  origin.measured = measured;
  origin.program_hash = std::move(hash);
  origin.scenario = "overlap";
  origin.file = "overlap.yaml";
  origin.machine = measured ? "1 x NVIDIA H200" : "h200-nvswitch-8";
  origin.producer = measured ? "foretrace-hw 0.1.0" : "foretrace 0.1.0";
}

std::uint32_t TimelineBuilder::op(std::string kind, int line, std::string label,
                                  std::uint64_t size_bytes) {
  timeline.ops.push_back(OpRow{.kind = std::move(kind),
                               .variant = {},
                               .label = std::move(label),
                               .line = line,
                               .size_bytes = size_bytes,
                               .loops = {}});
  return static_cast<std::uint32_t>(timeline.ops.size() - 1);
}

std::uint32_t TimelineBuilder::host(std::uint32_t process, std::string name) {
  timeline.lanes.push_back(Lane{.kind = LaneKind::HostThread,
                                .node = 0,
                                .process = process,
                                .device = kNoDevice,
                                .name = std::move(name)});
  return static_cast<std::uint32_t>(timeline.lanes.size() - 1);
}

std::uint32_t TimelineBuilder::stream(std::string name, std::uint32_t process,
                                      std::uint32_t device) {
  timeline.lanes.push_back(Lane{.kind = LaneKind::Stream,
                                .node = 0,
                                .process = process,
                                .device = device,
                                .name = std::move(name)});
  return static_cast<std::uint32_t>(timeline.lanes.size() - 1);
}

std::uint32_t TimelineBuilder::span(std::uint32_t op, std::uint32_t lane, std::int64_t begin_ns,
                                    std::int64_t end_ns, std::uint32_t part,
                                    std::uint64_t instance) {
  timeline.spans.push_back(Span{.op = op,
                                .lane = lane,
                                .instance = instance,
                                .begin_ns = begin_ns,
                                .end_ns = end_ns,
                                .part = part,
                                .detail = 0});
  return static_cast<std::uint32_t>(timeline.spans.size() - 1);
}

RegionSamples& TimelineBuilder::region(std::uint32_t op, std::string name,
                                       std::vector<std::int64_t> samples_ns, std::uint32_t process,
                                       std::uint64_t instance) {
  RegionSamples region;
  region.op = op;
  region.instance = instance;
  region.process = process;
  region.name = std::move(name);
  region.samples_ns = std::move(samples_ns);
  return timeline.regions.emplace_back(std::move(region));
}

}  // namespace foretrace::test
