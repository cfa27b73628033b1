#include "reports/timeline/write_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

namespace foretrace {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

fs::path made(const fs::path& file, std::chrono::hours age) {
  std::ofstream{file} << "half";
  fs::last_write_time(file, fs::file_time_type::clock::now() - age);
  return file;
}

TEST(WriteFile, RemovesWhatAKilledProcessLeftADayAgo) {
  const auto directory = fs::path{testing::TempDir()} / "left_behind";
  fs::remove_all(directory);
  fs::create_directories(directory);
  const auto old = made(directory / ".foretrace-1-0.tmp", 25h);
  const auto of_today = made(directory / ".foretrace-2-0.tmp", 23h);
  const auto not_ours = made(directory / "foretrace-3-0.tmp", 1000h);
  const auto in_use = made(directory / ".foretrace-4-0.tmp", 25h);
  const int writer = ::open(in_use.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(writer, LOCK_SH), 0);
  write_file(directory / "a.txt", "whole");
  ::close(writer);
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(of_today));
  EXPECT_TRUE(fs::exists(not_ours));
  EXPECT_TRUE(fs::exists(in_use));
  EXPECT_EQ(fs::file_size(directory / "a.txt"), 5U);
  fs::remove_all(directory);
}

}  // namespace
}  // namespace foretrace
