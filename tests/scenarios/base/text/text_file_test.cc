#include "scenarios/base/text/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/made_from.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

class FileOf {
 public:
  explicit FileOf(const std::string& bytes)
      : path_{fs::temp_directory_path() / ("foretrace_text_" + std::to_string(::getpid()))} {
    std::ofstream{path_, std::ios::binary} << bytes;
  }
  ~FileOf() { fs::remove(path_); }
  FileOf(const FileOf&) = delete;
  FileOf& operator=(const FileOf&) = delete;
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

TEST(FileStream, GivesTheFileAndNotesItAsRead) {
  std::string bytes;
  for (int i = 0; i < 700'000; ++i) bytes += static_cast<char>(i * 31 >> 3);
  const FileOf file{bytes};
  FileStream stream{file.path(), bytes.size()};
  EXPECT_EQ(stream.head().substr(0, 100), bytes.substr(0, 100));
  EXPECT_EQ(digest_as_read(file.path()), "");
  EXPECT_FALSE(is_input(file.path()));
  const std::string got{std::istreambuf_iterator<char>{&stream}, {}};
  EXPECT_EQ(got, bytes);
  EXPECT_EQ(digest_as_read(file.path()), digest_of(bytes));
  EXPECT_TRUE(is_input(file.path()));
}

TEST(FileStream, RefusesWhatReadTextFileRefusesInItsWords) {
  const FileOf file{"12345"};
  const auto why = [](const auto& read) {
    try {
      read();
    } catch (const UsageError& error) {
      return std::string{error.what()};
    }
    return std::string{"taken"};
  };
  for (const std::string& name : {file.path(), file.path() + "_not_there", std::string{"/tmp"}}) {
    const std::string whole = why([&] { static_cast<void>(read_text_file(name, 4)); });
    const std::string pieces = why([&] {
      FileStream stream{name, 4};
      static_cast<void>(std::string{std::istreambuf_iterator<char>{&stream}, {}});
    });
    EXPECT_EQ(pieces, whole);
    EXPECT_THAT(whole, testing::HasSubstr(name));
  }
}

}  // namespace
}  // namespace foretrace
