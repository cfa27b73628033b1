// Programs that never end: who waits, at which line, and for what.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/text/data_directory.h"
#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

using testing::HasSubstr;

int line_of(const std::string& file, const std::string& text) {
  const std::string all = read_file(data_directory() / file);
  const auto at = all.find(text);
  if (at == std::string::npos) return 0;
  return 1 + static_cast<int>(std::count(all.begin(), all.begin() + static_cast<long>(at), '\n'));
}

struct Hang {
  std::string file;
  std::string waits_at;  ///< text of the line where the host thread of rank 1 waits
  friend std::ostream& operator<<(std::ostream& out, const Hang& h) { return out << h.file; }
};
class RecvWithoutSend : public testing::TestWithParam<Hang> {
 protected:
  Scratch scratch_;
};
INSTANTIATE_TEST_SUITE_P(
    Forms, RecvWithoutSend,
    testing::Values(Hang{"scenarios/hangs/recv_without_send_warm.yaml", "print_the_tensor"},
                    Hang{"scenarios/hangs/recv_without_send_cold.yaml", "never_sent"}),
    [](const auto& tested) {
      return std::string{tested.param.waits_at == "never_sent" ? "Cold" : "Warm"};
    });

TEST_P(RecvWithoutSend, IsAnErrorOfCheckAtTheRecv) {
  const Ran check = scratch_.run("foretrace check " + GetParam().file);
  EXPECT_EQ(check.exit_code, 1);
  const std::string recv =
      GetParam().file + ":" + std::to_string(line_of(GetParam().file, "never_sent")) + ":";
  EXPECT_THAT(check.err, HasSubstr(recv));
  EXPECT_THAT(check.err, HasSubstr("error:"));
}

TEST_P(RecvWithoutSend, IsExplainedBySimulateWithProcessLineAndReason) {
  const Ran simulate =
      scratch_.run("foretrace simulate " + GetParam().file + " --machine h200-nvswitch-8 -o run");
  EXPECT_EQ(simulate.exit_code, 1);
  EXPECT_THAT(simulate.err, HasSubstr("process 1"));
  const std::string name = std::filesystem::path{GetParam().file}.filename().string();
  EXPECT_THAT(
      simulate.err,
      HasSubstr(name + ":" + std::to_string(line_of(GetParam().file, GetParam().waits_at))));
  EXPECT_THAT(simulate.err, HasSubstr("nccl_recv"));
}

}  // namespace
}  // namespace foretrace::test
