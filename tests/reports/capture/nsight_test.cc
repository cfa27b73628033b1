// Nsight Systems' SQLite: made here with the columns that nsys writes.
#include "reports/capture/nsight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "scenarios/base/text/errors.h"

namespace foretrace::capture {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr const char* kTables =
    "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
    "CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, smCount INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, \"end\" INTEGER, eventClass INTEGER,"
    " globalTid INTEGER, correlationId INTEGER, nameId INTEGER, returnValue INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, \"end\" INTEGER, deviceId INTEGER,"
    " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER,"
    " gridX INTEGER, gridY INTEGER, gridZ INTEGER);"
    "INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, 'void work<int>(int)');"
    "INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H200', 132);";

class NsightFile {
 public:
  explicit NsightFile(const std::string& statements)
      : path_{fs::temp_directory_path() / ("foretrace_nsight_" + std::to_string(getpid()))} {
    fs::remove(path_);
    sqlite3* database = nullptr;
    sqlite3_open(path_.c_str(), &database);
    char* error = nullptr;
    sqlite3_exec(database, statements.c_str(), nullptr, nullptr, &error);
    EXPECT_EQ(error, nullptr) << error;
    sqlite3_close(database);
  }
  ~NsightFile() { fs::remove(path_); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string refusal_of(const fs::path& file) {
  Names names;
  try {
    read_nsight(file, names);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Nsight, HasAProcessForEachThatCalledCuda) {
  // globalTid: process in bits 24 to 47, thread below.
  const NsightFile file{std::string{kTables} +
                        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES"
                        " (100, 104, 0, 83886087, 9, 1, 0), (100, 104, 0, 100663303, 9, 1, 0);"
                        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES"
                        " (110, 210, 0, 13, 9, 83886080, 2, 4, 2, 1);"};
  Names names;
  const std::vector<Process> processes = read_nsight(file.path(), names);
  ASSERT_EQ(processes.size(), 2u);
  EXPECT_EQ(processes[0].gpu, "NVIDIA H200");
  ASSERT_EQ(processes[0].events.size(), 2u);
  EXPECT_EQ(processes[0].events[0].lane, 7);
  EXPECT_EQ(names[processes[0].events[1].name], "void work<int>(int)");
  EXPECT_EQ(processes[0].events[1].blocks, 8u);
  EXPECT_EQ(processes[0].events[1].correlation, 9u);
}

TEST(Nsight, RefusesDatabasesWithoutCudasActivity) {
  const NsightFile file{"CREATE TABLE other (id INTEGER);"};
  EXPECT_THAT(refusal_of(file.path()), HasSubstr("no tables of CUDA's activity"));
}

TEST(Nsight, RefusesTimesThatEndBeforeTheyBegin) {
  const NsightFile file{std::string{kTables} +
                        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES"
                        " (210, 110, 0, 13, 9, 83886080, 2, 4, 2, 1);"};
  EXPECT_THAT(refusal_of(file.path()), HasSubstr("an event lasts from 210 ns to 110 ns"));
}

TEST(Nsight, RefusesDamagedFiles) {
  const fs::path path =
      fs::temp_directory_path() / ("foretrace_damaged_" + std::to_string(getpid()));
  std::ofstream{path, std::ios::binary} << std::string("SQLite format 3\0", 16) << "nothing more";
  EXPECT_THAT(refusal_of(path), HasSubstr("SQLite says"));
  fs::remove(path);
}

TEST(Nsight, RefusesTablesThatComputeWhatTheyHold) {
  const NsightFile file{
      "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, \"end\" INTEGER, deviceId INTEGER,"
      " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER,"
      " gridX INTEGER, gridY INTEGER, gridZ INTEGER AS (length(printf('%.*c', 9e8, 'x'))));"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0, 7, 1, 0, 1, 1, 1);"};
  EXPECT_THAT(refusal_of(file.path()), HasSubstr("a column of it is computed"));
}

TEST(Nsight, TakesNoLongValues) {
  const NsightFile file{std::string{kTables} +
                        "INSERT INTO StringIds VALUES (3, printf('%.*c', 2000000, 'x'));"};
  EXPECT_THAT(refusal_of(file.path()), HasSubstr("SQLite says"));
}

TEST(Nsight, LeavesNothingBesideADatabaseWithALog) {
  const NsightFile file{"PRAGMA journal_mode=WAL;" + std::string{kTables} +
                        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES"
                        " (110, 210, 0, 13, 9, 83886080, 2, 4, 2, 1);"};
  Names names;
  EXPECT_EQ(read_nsight(file.path(), names).size(), 1u);
  for (const char* const kind : {"-wal", "-shm"}) {
    EXPECT_FALSE(fs::exists(file.path().string() + kind)) << kind;
  }
  const fs::path log = file.path().string() + "-wal";
  std::ofstream{log} << "changes";
  EXPECT_THAT(refusal_of(file.path()), HasSubstr("has changes that are not in it"));
  fs::remove(log);
}

}  // namespace
}  // namespace foretrace::capture
