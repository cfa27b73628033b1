// How far predictions may be off, from the spreads and the sources of the parameters behind them.
#include "models/trust/trust.h"

#include <gtest/gtest.h>

#include <array>

namespace foretrace::test {
namespace {

using enum ParameterClass;

/// Of something that is all the doing of one parameter.
Band band_with(const ParamValue& value, std::uint64_t bytes = 0) {
  Machine machine;
  machine.set(Param::H2dBandwidth, value);
  const std::array all{Share{Param::H2dBandwidth, -1}};
  return band_of(machine, all, {bytes});
}

TEST(Band, OfAFitIsItsSpreadAndOfAGuessIsWide) {
  const Band fit = band_with({1e9, 0.08, Fit, "", ""});
  EXPECT_DOUBLE_EQ(fit.high, 1.08);
  EXPECT_DOUBLE_EQ(fit.low, 1 / 1.08);
  EXPECT_EQ(fit.parameters, Fit);
  EXPECT_DOUBLE_EQ(band_with({1e9, 0, Fit, "", ""}).high, 1.05);
  EXPECT_DOUBLE_EQ(band_with({1e9, 0, Published, "", ""}).high, 1.15);
  EXPECT_DOUBLE_EQ(band_with({1e9, 0, Datasheet, "", ""}).high, 1.25);
  EXPECT_DOUBLE_EQ(band_with({1e9, 0, Assumed, "", ""}).high, 1.5);
  EXPECT_DOUBLE_EQ(band_of_a_guess().high, 1.5);
  EXPECT_EQ(band_of_a_guess().parameters, Assumed);
  EXPECT_DOUBLE_EQ(band_with({1e9, 0.3, Published, "", ""}).high, 1.3) << "what the file says";
  EXPECT_DOUBLE_EQ(band_with({1e9, 2.4, Fit, "", ""}).high, 2.0) << "at most a factor of two";
}

TEST(Band, OfWhatWasLearnedFromATableOfOthersIsThatOfTheTable) {
  const auto source = std::make_shared<Source>();
  source->learned_from.push_back({});
  EXPECT_DOUBLE_EQ(band_with({1e9, 0, Published, "", "", source}).high, 1.15);
  EXPECT_DOUBLE_EQ(band_with({1e9, 0.02, Published, "", "", source}).high, 1.02)
      << "a spread that was found";
  EXPECT_DOUBLE_EQ(band_with({1e9, 0, Assumed, "", "", source}).high, 1.05);
}

TEST(Band, OutsideOfTheFittedSizesIsThatOfAGuess) {
  const ParamValue fit{1e9, 0.02, Fit, "", "1MiB..1 GiB"};
  EXPECT_DOUBLE_EQ(band_with(fit, 1 << 20).high, 1.02);
  EXPECT_DOUBLE_EQ(band_with(fit, 1 << 30).high, 1.02);
  const Band beyond = band_with(fit, (1 << 20) - 4);
  EXPECT_DOUBLE_EQ(beyond.high, 1.5);
  EXPECT_EQ(beyond.parameters, Assumed);
  EXPECT_DOUBLE_EQ(band_with(fit).high, 1.02) << "the size is not known";
  EXPECT_DOUBLE_EQ(band_with({1e9, 0.02, Fit, "", "50..200 calls in a row"}, 8).high, 1.02);
}

Machine latency_and_bandwidth(ParameterClass latency) {
  Machine machine;
  machine.set(Param::H2dLatency, {2e-6, 0.3, latency, "", ""});
  machine.set(Param::H2dBandwidth, {50e9, 0.04, Fit, "", ""});
  return machine;
}

TEST(Band, AddsWhatEachParameterPutsTheTimeOffInQuadrature) {
  // 0.1 x 30 % and 0.9 x 4 %: 3 % and 3.6 %, together sqrt(0.03^2 + 0.036^2) = 4.686 %.
  const std::array shares{Share{Param::H2dBandwidth, -0.9}, Share{Param::H2dLatency, 0.1}};
  const Band band = band_of(latency_and_bandwidth(Fit), shares, {});
  EXPECT_NEAR(band.high, 1.04686, 1e-5);
  EXPECT_NEAR(band.low, 1 / 1.04686, 1e-5);
}

TEST(Band, IsAsWellKnownAsTheWorstOfTheParametersThatDecideIt) {
  const Machine machine = latency_and_bandwidth(Assumed);
  const std::array decided{Share{Param::H2dBandwidth, -0.9}, Share{Param::H2dLatency, 0.1}};
  EXPECT_EQ(band_of(machine, decided, {}).parameters, Assumed);
  const std::array hardly{Share{Param::H2dBandwidth, -0.91}, Share{Param::H2dLatency, 0.09}};
  EXPECT_EQ(band_of(machine, hardly, {}).parameters, Fit);
}

TEST(Band, OfATimeThatIsGivenIsNone) {
  const Band band = band_of(Machine{}, {}, {});
  EXPECT_EQ(band.low, 1);
  EXPECT_EQ(band.high, 1);
  EXPECT_EQ(band.parameters, Fit);
}

}  // namespace
}  // namespace foretrace::test
