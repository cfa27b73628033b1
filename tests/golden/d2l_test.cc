// The twelve figures of section 12.3 of the d2l book, which v100-pcie-4 was fitted to: a fit, not a
// prediction.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

using testing::HasSubstr;

constexpr const char* kCommand = "foretrace figures reports/published/d2l_12_3.csv --machine ";

TEST(D2lBook, TwelveFiguresAndTheirOrderAreMet) {
  const Scratch scratch;
  const Ran ran = scratch.run(std::string{kCommand} + "v100-pcie-4");
  EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.out,
              HasSubstr("0 of 12 figures outside 10.0 %; the cases come in the published order"));
  EXPECT_THAT(ran.out, HasSubstr("| fit "));
}

TEST(D2lBook, IsNotMetByAnotherMachine) {
  const Scratch scratch;
  const Ran ran = scratch.run(std::string{kCommand} + "h200-nvswitch-8");
  EXPECT_EQ(ran.exit_code, 1) << ran.out;
  EXPECT_THAT(ran.out, HasSubstr("OUTSIDE"));
}

TEST(PublishedFigures, SayWhichLineIsWrong) {
  const Scratch scratch;
  scratch.write("bad.csv", "set,figure,scenario,region,published\na,b,c,d,12\n");
  const Ran ran = scratch.run("foretrace figures bad.csv");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("bad.csv:2: '12' is no time with a unit"));
  scratch.write("gone.csv",
                "set,figure,scenario,region,published\n"
                "a,b,scenarios/streams/small_kernels.yaml,nowhere,1ms\n");
  EXPECT_THAT(scratch.run("foretrace figures gone.csv").err, HasSubstr("has no region 'nowhere'"));
}

}  // namespace
}  // namespace foretrace::test
