// RUNS/calibration.json: how each step of a calibration ended, written before and after each, so
// that a start which breaks off is continued by the next one and no failure is forgotten.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "reports/timeline/append_file.h"

namespace foretrace::hw {

struct StepRecord {
  /// "measured", "skipped", "failed", or "running": the start ended while it ran
  std::string state;
  std::string reason;  ///< of what was skipped or failed
  double seconds = 0;
};

class CalibrationRecord {
 public:
  /// Reads what is there; the directory is this start's from now on. Throws UsageError when the
  /// file is something else, or when another start calibrates into it.
  explicit CalibrationRecord(std::filesystem::path runs);

  /// What is known of the step whose results are in RUNS/`where`/; state empty for nothing.
  StepRecord of(const std::string& where) const;
  /// Notes it and writes the file. Throws IoError.
  void set(const std::string& where, StepRecord record);
  void clear() { steps_.clear(); }
  const std::map<std::string, StepRecord>& steps() const { return steps_; }

 private:
  std::filesystem::path file_;
  std::optional<OwnDirectory> own_;
  std::map<std::string, StepRecord> steps_;
};

}  // namespace foretrace::hw
