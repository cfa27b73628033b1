// Manual pages and completions, as the program prints them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Pages, OfACommandHaveEveryFlagOfItsHelp) {
  const Scratch scratch;
  for (const char* command : {"simulate", "nccl-tests", "fit", "report"}) {
    const std::string help = scratch.run(std::string{"foretrace "} + command + " --help").out;
    const Ran page = scratch.run(std::string{"foretrace man "} + command);
    EXPECT_EQ(page.exit_code, 0) << page.err;
    EXPECT_THAT(page.out, StartsWith(".TH FORETRACE"));
    const std::regex flag{"\n  (-[a-zA-Z],)?--([a-z_-]+)"};
    int flags = 0;
    for (std::sregex_iterator at{help.begin(), help.end(), flag}, end; at != end; ++at) {
      const std::string in_roff = std::regex_replace((*at)[2].str(), std::regex{"-"}, "\\-");
      EXPECT_THAT(page.out, HasSubstr("\\fB\\-\\-" + in_roff + "\\fR")) << command;
      ++flags;
    }
    EXPECT_GT(flags, 2) << command;
  }
}

TEST(Pages, OfTheProgramNameItsCommandsAndItsEnvironment) {
  const Scratch scratch;
  const Ran page = scratch.run("foretrace man");
  EXPECT_THAT(page.out, HasSubstr("\\fBnccl\\-explain\\fR"));
  EXPECT_THAT(page.out, HasSubstr("FORETRACE_DATA"));
  EXPECT_THAT(scratch.run("foretrace --help").out, HasSubstr("FORETRACE_DATA"));
  const Ran unknown = scratch.run("foretrace man simulat");
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean 'simulate'?"));
}

/// What bash offers for the words of a command line; the last one is being typed.
std::string offered(const Scratch& scratch, const std::string& words) {
  scratch.write(
      "ask.sh",
      "source <(foretrace completion bash)\nCOMP_WORDS=(" + words +
          ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_foretrace\necho \"${COMPREPLY[*]}\"\n");
  const Ran ran = scratch.run("bash ask.sh");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  return ran.out;
}

TEST(Completion, OffersCommandsFlagsAndValues) {
  const Scratch scratch;
  EXPECT_EQ(offered(scratch, "foretrace sim"), "simulate\n");
  EXPECT_EQ(offered(scratch, "foretrace simulate --fid"), "--fidelity\n");
  EXPECT_EQ(offered(scratch, "foretrace simulate --fidelity ch"), "chunk\n");
  EXPECT_EQ(offered(scratch, "foretrace simulate x.yaml --machine h200-n"), "h200-nvswitch-8\n");
  EXPECT_EQ(offered(scratch, "foretrace list mac"), "machines\n");
}

TEST(Completion, OffersNoPlaceholders) {
  const Scratch scratch;
  for (const char* command : {"compare", "report", "order", "explain", "export"}) {
    EXPECT_EQ(offered(scratch, std::string{"foretrace "} + command + " ''"), "\n") << command;
  }
  EXPECT_EQ(scratch.run("foretrace completion zsh").out.find("(RUN/"), std::string::npos);
}

TEST(Completion, OffersOperandsThatAreWords) {
  const Scratch scratch;
  EXPECT_EQ(offered(scratch, "foretrace man nccl-e"), "nccl-explain\n");
  EXPECT_EQ(offered(scratch, "foretrace nccl-tests all_r"), "all_reduce\n");
  EXPECT_EQ(offered(scratch, "foretrace nccl-explain send"), "send_recv\n");
  EXPECT_EQ(offered(scratch, "foretrace simulate --frontend py"), "pytorch\n");
  EXPECT_EQ(offered(scratch, "foretrace simulate --fidelity = ch"), "chunk\n");
}

TEST(Completion, OfZshNamesEveryCommand) {
  const Scratch scratch;
  const Ran ran = scratch.run("foretrace completion zsh");
  EXPECT_THAT(ran.out, StartsWith("#compdef foretrace\n"));
  for (const char* command : {"check", "simulate", "nccl-explain", "man"}) {
    EXPECT_THAT(ran.out, HasSubstr(std::string{"    '"} + command + ":"));
  }
}

}  // namespace
}  // namespace foretrace::test
