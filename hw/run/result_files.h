// A scenario's results on disk: what is there already, what is left to measure, and how new samples
// join old ones. Files appear whole or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "reports/timeline/append_file.h"
#include "reports/timeline/timeline.h"

namespace foretrace::hw {

/// What to do with a result that is there.
enum class WhenThere : std::uint8_t {
  Refuse,
  Force,  ///< measure anew
  Append  ///< add this process launch's samples
};

/// RUNS/NAME/: measured.timeline.json, measured.partial.json while it is not complete,
/// RUNS/environments/KEY.json (reports/timeline/environments.h).
struct RunFiles {
  std::filesystem::path directory;
  std::filesystem::path result() const;
  std::filesystem::path partial() const;
  std::filesystem::path runs() const;
};

/// What was asked for.
struct StartRequest {
  int repetitions = 20;
  int traced = 1;
  bool cold = false;  ///< the program has no warm-up: one pass per process launch
  WhenThere when_there = WhenThere::Refuse;
};

/// What this process launch will do.
struct StartPlan {
  bool complete = false;  ///< nothing: the result is there
  int repetitions = 0;
  int traced = 0;
  std::uint32_t start = 0;    ///< the number of this process launch
  bool keep_result = false;   ///< add to the result that is there
  bool keep_partial = false;  ///< add to what an interrupted run left
};

/// Throws UsageError when the samples of another program would be mixed in.
StartPlan plan_start(const std::optional<Timeline>& result, const std::optional<Timeline>& partial,
                     const std::string& program_hash, const StartRequest& request);

/// Keeps the timeline of one scenario as it grows, and writes it. Used by rank 0, and by another
/// rank whose operation failed; functions may be called from the watchdog's thread.
class ResultFiles {
 public:
  ResultFiles(RunFiles files, Timeline origin_and_ops);

  /// Decides what to do and takes over what is kept. From then on the directory is this process':
  /// throws UsageError when another start measures into it.
  StartPlan open(const StartRequest& request);
  /// Takes over what the process that opened the files has written since: another one has to write
  /// the outcome.
  void join(const StartPlan& plan);
  /// Replaces this start's samples, and writes the partial file.
  void save_samples(std::vector<RegionSamples> rows);
  /// Adds the traced pass: lanes, spans, details, traced region times.
  void set_trace(Timeline trace);
  void set_machine(std::string machine, std::map<std::string, std::string> versions);
  void set_version(const std::string& key, const std::string& value);
  /// Writes the result; `complete` false leaves the partial file for a later start.
  void write(bool complete);
  /// The end of a run that went wrong; wrong data takes the samples with it. A start that hangs or
  /// fails and was to join a result that is whole leaves that as it was, but for a note of it
  /// (versions.failed_starts), and true comes back.
  bool write_outcome(Outcome outcome);
  /// Notes this process launch, on what describe_environment() says on each node, in the result
  /// that is written next; its `environment`, `environments` and `gpus` are filled in here.
  void add_start(ProcessStart start, const std::vector<nlohmann::json>& nodes);

  const RunFiles& files() const { return files_; }

 private:
  Timeline merged() const;
  void keep(Timeline result);

  RunFiles files_;
  Timeline base_;  ///< origin, operations, outcome, and what is kept of earlier starts
  std::vector<RegionSamples> rows_;  ///< this start's, and an interrupted one's
  std::vector<RegionSamples> kept_rows_;
  bool appends_ = false;
  bool kept_is_complete_ = false;  ///< what the earlier starts measured stands by itself
  bool is_written_ = false;        ///< all of this start's untraced repetitions are in the result
  bool write_earlier_starts(const Outcome& outcome);
  std::optional<OwnDirectory> own_;  ///< from open() on
  mutable std::mutex mutex_;
};

}  // namespace foretrace::hw
