// Operators on the CPU and files, as the harness really does them. Times are not judged: the
// machine that runs this is busy.
#include "hw/execute/cpu_team.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "hw/execute/stored_files.h"

namespace foretrace::hw {
namespace {

TEST(CpuTeam, DoesItsWorkAgainAndAgain) {
  CpuTeam team{3, 1 << 20};
  EXPECT_EQ(team.size(), 3U);
  for (int i = 0; i < 20; ++i) team.run(1e6, i % 2 == 0 ? 0 : 1e6);
}

TEST(CpuTeams, AreMadeForCallsAtOnceAndUsedAgain) {
  CpuTeams teams;
  std::vector<std::thread> callers;
  std::atomic<int> done = 0;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < 5; ++i) teams.run(2, 1e5, 0);
      ++done;
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(done, 4);
}

TEST(CoresOfThisProcess, AreNoMoreThanTheMachineHas) {
  EXPECT_GE(cores_of_this_process(), 1U);
  EXPECT_LE(cores_of_this_process(), std::max(1U, std::thread::hardware_concurrency()));
}

/// The numbers that the file's bytes are, as StoredFiles::write says.
std::vector<std::byte> written(std::uint64_t bytes) {
  std::vector<std::byte> all(bytes);
  std::mt19937_64 generator{bytes};
  for (std::uint64_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
    const std::uint64_t number = generator();
    std::memcpy(all.data() + at, &number, std::min<std::uint64_t>(sizeof number, bytes - at));
  }
  return all;
}

TEST(StoredFiles, GiveBackWhatWasWritten) {
  constexpr std::uint64_t kOdd = 100'003;  // no whole pages
  StoredFiles files;
  files.write(0, kOdd);
  files.write(5, 4096);
  std::vector<std::byte> into(kOdd + 1);
  files.read(0, into.data() + 1, kOdd);  // not on a page either
  into.erase(into.begin());
  EXPECT_EQ(into, written(kOdd));
  std::vector<std::byte> few(1000);
  files.read(5, few.data(), few.size());
  std::vector<std::byte> first = written(4096);
  first.resize(few.size());
  EXPECT_EQ(few, first);
}

}  // namespace
}  // namespace foretrace::hw
