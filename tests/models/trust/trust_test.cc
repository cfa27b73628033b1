// How far predictions may be off, from the spreads and the sources of the parameters behind them.
#include "models/trust/trust.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <memory>

#include "models/trust/blind.h"

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

/// A machine that has been through a blind round: host calls were off by 20 %, copies by 3 %, and
/// everything by 2 %.
Machine blind_machine() {
  const auto source = std::make_shared<Source>();
  source->learned_from.emplace_back();
  Machine machine = latency_and_bandwidth(Assumed);
  machine.set(Param::HostMemcpyAsync, {1e-6, 0, Fit, "", ""});
  machine.set(Param::BlindRest, {0.02, 0, Assumed, "", "", source});
  machine.set(Param::BlindCopies, {0.03, 0, Assumed, "", "", source});
  machine.set(Param::BlindCalls, {0.2, 0, Assumed, "", "", source});
  return machine;
}

TEST(Band, OfAMachineThatWentThroughABlindRoundIsWhatThatShowed) {
  // All of it a copy: sqrt(0.03^2 + 0.02^2). A tenth of it the call: 0.1 x 20 % and 0.9 x 3 % more.
  const std::array copy{Share{Param::H2dBandwidth, -0.9}, Share{Param::H2dLatency, 0.1}};
  EXPECT_NEAR(band_of(blind_machine(), copy, {}).high, 1 + std::hypot(0.03, 0.02), 1e-9);
  const std::array both{Share{Param::H2dBandwidth, -0.9}, Share{Param::HostMemcpyAsync, 0.1}};
  EXPECT_NEAR(band_of(blind_machine(), both, {}).high, 1 + std::hypot(0.027, 0.02, 0.02), 1e-9);
}

TEST(Band, OfAMachineWithoutABlindRoundBorrowsTheErrorsForWhatItFitted) {
  // The rounds were another machine's: nothing says what they were learned from.
  Machine machine = blind_machine();
  machine.set(Param::BlindRest, {0.02, 0, Assumed, "", ""});
  machine.set(Param::BlindCalls, {0.2, 0, Assumed, "", ""});
  machine.set(Param::HostMemcpyAsync, {1e-6, 0.1, Fit, "", ""});
  const std::array fitted{Share{Param::HostMemcpyAsync, 1}};
  EXPECT_NEAR(band_of(machine, fitted, {}).high, 1 + std::hypot(0.1, 0.2, 0.02), 1e-9);
  const std::array guessed{Share{Param::H2dLatency, 1}};
  EXPECT_NEAR(band_of(machine, guessed, {}).high, 1.5, 1e-9) << "a guess is less sure by itself";
}

TEST(Band, OfAClassThatNoBlindRoundShowedIsThatOfItsParameters) {
  Machine machine = blind_machine();
  machine.set(Param::UnaryBandwidth, {1e12, 0.07, Fit, "", ""});
  const std::array kernel{Share{Param::UnaryBandwidth, -1}};
  EXPECT_NEAR(band_of(machine, kernel, {}).high, 1 + std::hypot(0.07, 0.02), 1e-9)
      << "and of what any time is off";
}

TEST(Band, OfAnOperationOverNodesIsWhatTablesShowedThatNobodyFittedTo) {
  Machine machine;
  machine.set(Param::NcclNetEfficiency, {0.9, 0.05, Fit, "", ""});
  machine.set(Param::NcclTreeLlStep, {1e-6, 0.05, Fit, "", ""});
  machine.set(Param::NcclPortShare, {0.8, 0.1, Fit, "", ""});
  machine.set(Param::BlindNetwork, {0.3, 0, Published, "", ""});
  const std::array both{Share{Param::NcclNetEfficiency, -0.5}, Share{Param::NcclTreeLlStep, 0.3},
                        Share{Param::NcclPortShare, -0.2}};
  EXPECT_NEAR(band_of(machine, both, {}).high, 1 + std::hypot(0.8 * 0.3, 0.2 * 0.1), 1e-9);
  const std::array port{Share{Param::NcclPortShare, -1}};
  EXPECT_NEAR(band_of(machine, port, {}).high, 1.1, 1e-9) << "no network decides it";
}

TEST(BlindClass, OfEveryParameterIsThatOfTheFirstPrefixThatFits) {
  EXPECT_EQ(blind_class(Param::HostMallocAsync), Param::BlindAllocations);
  EXPECT_EQ(blind_class(Param::HostLaunchGemm), Param::BlindCalls);
  EXPECT_EQ(blind_class(Param::NcclHostCollective), Param::BlindCalls);
  EXPECT_EQ(blind_class(Param::PageableH2dBandwidth), Param::BlindHostMemory);
  EXPECT_EQ(blind_class(Param::UnaryBandwidth), Param::BlindKernels);
  EXPECT_EQ(blind_class(Param::SmCount), std::nullopt);
}

TEST(Band, OfATimeThatIsGivenIsNone) {
  const Band band = band_of(Machine{}, {}, {});
  EXPECT_EQ(band.low, 1);
  EXPECT_EQ(band.high, 1);
  EXPECT_EQ(band.parameters, Fit);
}

}  // namespace
}  // namespace foretrace::test
