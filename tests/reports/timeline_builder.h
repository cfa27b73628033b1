// Small timelines for tests, built the way an executor would.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "reports/timeline/timeline.h"

namespace foretrace::test {

/// A directory of this test's own, removed afterwards.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string read_text(const std::filesystem::path& file);

/// Fluent: each call adds to the timeline and answers what later calls need.
class TimelineBuilder {
 public:
  explicit TimelineBuilder(bool measured, std::string hash = "9b1c");

  std::uint32_t op(std::string kind, int line, std::string label = "",
                   std::uint64_t size_bytes = 0);
  std::uint32_t host(std::uint32_t process = 0, std::string name = "main");
  std::uint32_t stream(std::string name, std::uint32_t process = 0, std::uint32_t device = 0);
  /// Answers the span's index.
  std::uint32_t span(std::uint32_t op, std::uint32_t lane, std::int64_t begin_ns,
                     std::int64_t end_ns, std::uint32_t part = 0, std::uint64_t instance = 0);
  /// One region of one process with the samples of its repetitions.
  RegionSamples& region(std::uint32_t op, std::string name, std::vector<std::int64_t> samples_ns,
                        std::uint32_t process = 0, std::uint64_t instance = 0);

  Timeline timeline;
};

}  // namespace foretrace::test
