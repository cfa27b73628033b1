// Blind rounds as `tests/hw/blind` leaves them: DIR/round-N/evaluation-MACHINE.csv, and those on
// more than two GPUs: DIR/four-gpus-N, DIR/eight-gpus-N.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reports/accuracy/error_figures.h"

namespace foretrace {

/// A region of a random program; of several processes, that of the slowest one.
struct BlindRegion {
  std::string program, kind;  ///< kind: the class of programs, as "training"
  std::string region;
  std::string gpus;  ///< "1", "2"
  double predicted_us{}, measured_us{};
  ErrorSample sample;
};

/// A round's evaluation on one machine model.
struct BlindRound {
  int gpus = 2;  ///< that its programs have at most; 4 and 8: all of them have so many
  int number{};
  std::string machine;
  std::filesystem::path directory;  ///< of the round, with programs/KIND/PROGRAM.yaml
  std::vector<BlindRegion> regions;

  /// "4"; "four-gpus-1"
  std::string name() const {
    return gpus > 2 ? directory.filename().string() : std::to_string(number);
  }
};

/// By GPUs, number, then machine. Throws UsageError naming file and line of what it cannot read,
/// and when there is no evaluation below `directory`.
std::vector<BlindRound> load_blind_rounds(const std::filesystem::path& directory);

}  // namespace foretrace
