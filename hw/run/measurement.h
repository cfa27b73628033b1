// Measures one scenario: first the untraced repetitions that give the region times, later, when
// all scenarios of this start have theirs, the traced pass that gives the spans.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "hw/run/process_run.h"
#include "hw/run/processes.h"
#include "hw/run/result_files.h"
#include "scenarios/program/program.h"
#include "scenarios/read/scenario.h"

namespace foretrace::hw {

/// Ends all processes of the run with this exit code: main's. Does not return.
using EndRun = void (*)(int exit_code);

struct MeasureOptions {
  std::filesystem::path runs;  ///< RUNS/; the result goes to RUNS/NAME/
  int repetitions = 20;
  int traced = 1;
  std::chrono::nanoseconds timeout{std::chrono::seconds{30}};
  WhenThere when_there = WhenThere::Refuse;
  std::string start_label;
  bool check_data = true;
  ParameterValues parameters;  ///< that differ from the scenario's: noted in the result
  EndRun end_run = nullptr;
};

/// Every member of `processes` makes one, and calls the same functions in the same order.
class Measurement {
 public:
  Measurement(Program program, Processes processes, MeasureOptions options);

  const Program& program() const { return program_; }
  /// Reads what is on disk; false when there is nothing left to measure.
  bool plan();
  /// Exit code: 0, or 1 when the data is wrong.
  int measure_regions();
  void trace();

 private:
  bool is_root() const { return processes_.rank() == 0; }
  int first_ordinal() const;
  RunEnd run_end();
  void warm_up(ProcessRun& run) const;
  /// False when an operation gave a wrong result; then the outcome is on disk.
  bool data_is_right(ProcessRun& run);
  void repeat(ProcessRun& run);
  /// How fast the host calls CUDA just now.
  void note_host_speed();
  /// At the root: the median of what each process noted, by process; empty where any noted nothing.
  std::vector<std::int64_t> host_speeds() const;
  void save_samples(std::vector<RegionSamples>& rows);
  void note_machine();

  void on_hang(const ProcessReport& report);
  void say_earlier_starts_stay() const;
  void end_hang();
  void on_failed_operation(const std::string& what);

  Program program_;
  Processes processes_;
  MeasureOptions options_;
  ResultFiles files_;
  StartPlan plan_;
  std::vector<std::int64_t> launches_ns_;
  bool wrong_data_ = false;
};

}  // namespace foretrace::hw
