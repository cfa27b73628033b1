// Blind rounds as `hw/laboratory/blind` leaves them: DIR/round-N/evaluation-MACHINE.csv, those on more
// than two GPUs, DIR/four-gpus-N and DIR/eight-gpus-N, and programs that others wrote,
// DIR/written-N.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "reports/accuracy/error_figures.h"

namespace foretrace {

/// A region of a program; of several processes, that of the slowest one.
struct BlindRegion {
  std::string program, kind;  ///< kind: the class of programs, as "training"
  std::string region;
  std::string gpus;  ///< "1", "2"
  double predicted_us{}, measured_us{};
  ErrorSample sample;
};

/// A round's evaluation on one machine model.
struct BlindRound {
  /// Random programs on up to two GPUs, those that all have four or eight, and written ones.
  enum class Series : std::uint8_t { Random, FourGpus, EightGpus, Written };
  Series series = Series::Random;
  int number{};
  std::string machine;
  std::filesystem::path directory;  ///< of the round; its programs below it, or in DIRECTORY.tar.gz
  std::vector<BlindRegion> regions;
  /// The same, each start predicted for the host's speed that was measured beside it
  /// (known-host-MACHINE.csv); empty where it was not.
  std::vector<BlindRegion> known_host{};

  /// "4"; "four-gpus-1"
  std::string name() const {
    return series == Series::Random ? std::to_string(number) : directory.filename().string();
  }
  /// Where its figures on the machine stand: DIRECTORY/evaluation.md#MACHINE; once more with the
  /// host's speed known, #MACHINE-host-known.
  std::filesystem::path page() const { return directory / ("evaluation.md#" + machine); }
  std::filesystem::path page_of_known_host() const {
    return directory / ("evaluation.md#" + machine + "-host-known");
  }
};

/// By series, number, then machine. Throws UsageError naming file and line of what it cannot read,
/// and when there is no evaluation below `directory`.
std::vector<BlindRound> load_blind_rounds(const std::filesystem::path& directory);

}  // namespace foretrace
