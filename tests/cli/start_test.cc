// What a command loads when it starts: SimGrid takes ten times as long as all else, and is for
// flows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kFlows = "scenarios/examples/prefetch_two_streams.yaml";
constexpr const char* kNoFlows = "scenarios/streams/small_kernels.yaml";
constexpr const char* kAllReduce = "scenarios/collectives/all_reduce.yaml";

class Start : public testing::Test {
 protected:
  /// The shared libraries that `command` loads, in glibc's words.
  std::string loaded_by(const std::string& command) const {
    const Ran ran =
        scratch_.run("rm -f loaded.*; LD_DEBUG=files LD_DEBUG_OUTPUT=loaded foretrace " + command +
                     " >/dev/null && cat loaded.*");
    EXPECT_EQ(ran.exit_code, 0) << command << "\n" << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("libc.so"));
    return ran.out;
  }
  std::string simulate(const std::string& scenario) const {
    return "simulate " + scenario + " --machine h200-nvswitch-8";
  }
  Scratch scratch_;
};

TEST_F(Start, LoadsSimGridForFlowsOnly) {
  const std::string text = loaded_by(simulate(kFlows) + " -o run");
  EXPECT_THAT(text, HasSubstr("libforetrace_flows.so"));
  EXPECT_THAT(text, HasSubstr("libsimgrid"));
  for (const std::string& command :
       {std::string{"--version"}, std::string{"simulate --help"}, "check " + std::string{kFlows},
        std::string{"assert run"}, std::string{"report run -o page.html"},
        std::string{"nccl-explain all_reduce 64MiB"}, simulate(kNoFlows),
        simulate(kAllReduce) + " --fidelity chunk"}) {
    EXPECT_THAT(loaded_by(command), Not(HasSubstr("simgrid"))) << command;
  }
}

TEST_F(Start, SaysWhyItCannotLoadIt) {
  scratch_.write("libforetrace_flows.so", "not a library, which is where LD_LIBRARY_PATH says\n");
  const std::string without = "LD_LIBRARY_PATH=$PWD foretrace ";
  for (const std::string& command :
       {simulate(kFlows) + " -o run",
        std::string{"nccl-tests all_reduce -b 8 -e 1M --processes 8"}}) {
    const Ran ran = scratch_.run(without + command);
    EXPECT_EQ(ran.exit_code, 4) << command;
    EXPECT_THAT(ran.out, IsEmpty());
    EXPECT_THAT(ran.err, HasSubstr("cannot load libforetrace_flows.so, which copies and "));
    EXPECT_THAT(ran.err, HasSubstr("libforetrace_flows.so: "));  // dlerror
    EXPECT_THAT(ran.err, HasSubstr("\n  hint: it is installed in lib/foretrace"));
  }
  EXPECT_FALSE(std::filesystem::exists(scratch_.path() / "run" / "predicted.timeline.json"));
  EXPECT_EQ(scratch_.run(without + simulate(kNoFlows)).exit_code, 0);
}

}  // namespace
}  // namespace foretrace::test
