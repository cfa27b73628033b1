#include "hw/cli/calibrate_command.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "hw/calibrate/plan.h"
#include "hw/calibrate/record.h"
#include "hw/cli/host_command.h"
#include "hw/guard/together.h"
#include "hw/node/environment.h"
#include "hw/run/load_program.h"
#include "hw/trace/clock.h"
#include "reports/timeline/write_file.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/print.h"
#include "scenarios/base/text/text_file.h"

namespace foretrace::hw {
namespace {

namespace fs = std::filesystem;

/// Of the untraced repetitions that were asked for, a sweep makes one in so many: it has 52 to 104
/// regions, each of 5 to 20 operations.
constexpr int kSweepShare = 4;
/// Of one process: calibrate_driver_lock has four host threads, the driver and NCCL some of theirs.
constexpr std::int64_t kCores = 5;
constexpr const char* kMeasured = "measured";
constexpr const char* kSkipped = "skipped";
constexpr const char* kFailed = "failed";
constexpr const char* kRunning = "running";

struct CalibrateCommandLine {
  std::string scenarios;
  bool force = false;
  bool append = false;
  bool check_all = false;
  double host_seconds = 8;  ///< 0: the host is not measured
  MeasureOptions options;
};

/// What this process sees; the plan is rank 0's.
CalibrationNode node_seen(const Processes& world) {
  CalibrationNode node;
  node.processes = world.local_count();
  node.nodes = world.hosts();
  if (cudaGetDeviceCount(&node.gpus) != cudaSuccess || node.gpus < 1) {
    static_cast<void>(cudaGetLastError());
    throw CannotHereError{"no GPU can be used here (foretrace-hw doctor says more)"};
  }
  for (int rank = 0; rank < world.count(); ++rank) {
    if (world.count() == node.nodes * node.processes &&
        world.host_of(rank) == rank / node.processes) {
      continue;
    }
    throw UsageError{
        "calibrate needs as many processes on each node, one node after the other: srun "
        "--distribution=block, mpirun --map-by ppr:GPUS:node"};
  }
  if (node.processes > node.gpus) {
    throw CannotHereError{fmt::format("{} processes{}, but {} GPU{}: mpirun -n {}", node.processes,
                                      node.nodes > 1 ? " on each node" : "", node.gpus,
                                      node.gpus == 1 ? "" : "s", node.gpus * node.nodes)};
  }
  if (node.gpus > 1) {
    int there = 0;
    int back = 0;
    static_cast<void>(cudaDeviceCanAccessPeer(&there, 0, 1));
    static_cast<void>(cudaDeviceCanAccessPeer(&back, 1, 0));
    node.peer_access = there == 1 && back == 1;
  }
  return node;
}

/// "NVIDIA H200", 8 -> "nvidia-h200-8": a name for the machine file.
std::string machine_name(int gpus) {
  std::string name;
  for (const char c : gpu_names(0, 1)) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      name += static_cast<char>(std::tolower(byte));
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  while (name.ends_with('-')) name.pop_back();
  return fmt::format("{}-{}", name.empty() ? "machine" : name, gpus);
}

class Calibration {
 public:
  Calibration(const Processes& world, CalibrateCommandLine line)
      : world_{world}, line_{std::move(line)}, begin_ns_{now_ns()} {}

  int run() {
    prepare();
    announce();
    if (is_root()) take_host();
    world_.wait_quietly();
    for (std::size_t i = 0; i < steps_.size(); ++i) take(i);
    std::int64_t exit_code = kDone;
    at_root(world_, [&] { exit_code = conclude(); });
    return static_cast<int>(world_.broadcast(exit_code));
  }

 private:
  void prepare() {
    std::string text;
    at_root(world_, [&] {
      node_ = node_seen(world_);
      steps_ = plan_calibration(line_.scenarios, node_);
      text = to_text(steps_);
      record_.emplace(line_.options.runs);
      if (line_.force) record_->clear();
    });
    text = world_.broadcast(text);
    if (world_.rank() != 0) steps_ = steps_from(text);
    for (const CalibrationStep& step : steps_) {
      if (step.why_not.empty()) expected_s_ += step.seconds;
    }
  }

  /// mpirun binds processes to one core each unless told otherwise.
  void warn_of_few_cores() const {
    cpu_set_t allowed;
    const bool known = sched_getaffinity(0, sizeof allowed, &allowed) == 0;
    const std::int64_t fewest =
        -world_.largest(known ? -static_cast<std::int64_t>(CPU_COUNT(&allowed)) : -kCores);
    if (!is_root() || fewest >= kCores) return;
    say("warning: a process may use {} core(s) only, {} are wanted: times will suffer (mpirun "
        "--bind-to none)",
        fewest, kCores);
  }

  void announce() const {
    warn_of_few_cores();
    if (!is_root()) return;
    std::size_t to_measure = 0;
    for (const CalibrationStep& step : steps_) to_measure += step.why_not.empty() ? 1 : 0;
    const int processes = node_.processes * node_.nodes;
    say("{}{} x {}, {} process{}: {} scenarios to measure, about {:.0f} s",
        node_.nodes > 1 ? fmt::format("{} nodes of ", node_.nodes) : "", node_.gpus,
        gpu_names(0, 1), processes, processes == 1 ? "" : "es", to_measure, expected_s_);
    if (node_.processes < node_.gpus) {
      say("NCCL is measured with up to {} of the {} GPUs{}: mpirun -n {} foretrace-hw calibrate "
          "... "
          "for all of them",
          node_.processes, node_.gpus, node_.nodes > 1 ? " of a node" : "",
          node_.gpus * node_.nodes);
    }
  }

  /// The host by itself, while the other processes sleep. What went wrong there ends nothing.
  void take_host() const {
    const fs::path file = line_.options.runs / "host.yaml";
    const bool is_there = fs::exists(file) && !line_.force && !line_.append;
    if (line_.host_seconds <= 0 || is_there) return;
    try {
      make_directory(line_.options.runs);
      write_host_file(file, line_.host_seconds);
    } catch (const std::runtime_error& error) {
      say("the host was not measured: {}", error.what());
    }
  }

  /// One step, in all processes.
  void take(std::size_t index) {
    const CalibrationStep& step = steps_[index];
    if (!step.why_not.empty()) {
      note(index, {kSkipped, step.why_not, 0});
      return;
    }
    if (!is_wanted(step)) return;
    note_start(step);
    const std::int64_t begin_ns = now_ns();
    StepRecord result{kMeasured, "", 0};
    const Failure failure = failure_of([&] { measure(step); });
    world_.wait_quietly();
    try {
      throw_together(world_, failure);
    } catch (const CannotHereError& error) {
      result = {kSkipped, error.what(), 0};
    } catch (const std::runtime_error& error) {
      result = {kFailed, error.what(), 0};
    }
    result.seconds = seconds_since(begin_ns);
    passed_s_ += step.seconds;
    note(index, result);
  }

  /// What failed in an earlier start, or ended it, is not tried again unasked.
  bool is_wanted(const CalibrationStep& step) {
    std::int64_t wanted = 1;
    at_root(world_, [&] {
      StepRecord earlier = record_->of(step.where());
      if (earlier.state == kRunning) {
        earlier = {kFailed, "the start ended while it was measured", earlier.seconds};
        record_->set(step.where(), earlier);
      }
      if (line_.append) return;
      if (earlier.state == kFailed) {
        wanted = 0;
        say("{}: failed before, not tried again without --force: {}", step.where(), earlier.reason);
      } else if (earlier.state == kMeasured) {
        wanted = 0;
        say("{}: measured before, kept", step.where());
      }
    });
    wanted = world_.broadcast(wanted);
    if (wanted == 0) passed_s_ += step.seconds;
    return wanted != 0;
  }

  void measure(const CalibrationStep& step) {
    Program program = load_program(world_, step.file, step.parameters);
    auto subset = world_.first(static_cast<int>(program.processes));
    throw_together(world_, subset.member
                               ? failure_of([&] { check_devices(program, subset.processes); })
                               : Failure{});
    if (!subset.member) return;
    MeasureOptions options = line_.options;
    options.runs /= step.folder;
    options.parameters = step.parameters;
    if (step.sweep) {
      options.repetitions = std::max(1, options.repetitions / kSweepShare);
      options.check_data = line_.check_all;
    }
    const bool alone = program.processes == 1;
    try {
      measure(std::move(program), std::move(subset.processes), std::move(options));
      if (is_root()) keep_scenario(step);
    } catch (const UsageError&) {
      throw;
    } catch (const CannotHereError&) {
      throw;
    } catch (const std::exception& error) {
      // Nobody waits for a process that measures alone; else main ends all of them.
      if (!alone) throw;
      throw IoError{error.what()};
    }
  }

  static void measure(Program program, Processes processes, MeasureOptions options) {
    Measurement measurement{std::move(program), std::move(processes), std::move(options)};
    if (!measurement.plan()) return;
    if (measurement.measure_regions() != kDone) throw IoError{"wrong data (see above)"};
  }

  /// Beside its result, so that the results can be read where the file is not.
  void keep_scenario(const CalibrationStep& step) const {
    try {
      write_file(line_.options.runs / step.where() / fs::path{step.file}.filename(),
                 self_contained(read_text_file(step.file), step.file), Over::Anything);
    } catch (const std::runtime_error&) {  // the result is there all the same
    }
  }

  void note_start(const CalibrationStep& step) {
    at_root(world_, [&] { record_->set(step.where(), {kRunning, "", 0}); });
  }

  void note(std::size_t index, const StepRecord& result) {
    const CalibrationStep& step = steps_[index];
    at_root(world_, [&] { record_->set(step.where(), result); });
    if (!is_root()) return;
    const std::string progress = fmt::format("[{}/{}] {}", index + 1, steps_.size(), step.where());
    if (result.state == kMeasured) {
      const double so_far = seconds_since(begin_ns_);
      const double left = passed_s_ > 0 ? so_far / passed_s_ * (expected_s_ - passed_s_) : 0;
      say("{}: {:.1f} s; {:.0f} s so far, about {:.0f} s left", progress, result.seconds, so_far,
          left);
    } else {
      say("{}: {}: {}", progress, result.state, result.reason);
    }
  }

  /// What did not go well once more, and what to do next.
  int conclude() const {
    int measured = 0;
    int failed = 0;
    for (const auto& [where, step] : record_->steps()) {
      measured += step.state == kMeasured ? 1 : 0;
      failed += step.state == kFailed ? 1 : 0;
    }
    say("{} scenarios measured in {}, {:.0f} s", measured, line_.options.runs.string(),
        seconds_since(begin_ns_));
    for (const std::string state : {kSkipped, kFailed}) {
      for (const auto& [where, step] : record_->steps()) {
        if (step.state == state) say("{} {}: {}", state, where, step.reason);
      }
    }
    if (measured == 0) throw CannotHereError{"nothing could be measured here"};
    const std::string name = machine_name(node_.gpus);
    print_out("foretrace fit {} --new {} -o {}.yaml\n", line_.options.runs.string(), name, name);
    return failed > 0 ? kBadAnswer : kDone;
  }

  bool is_root() const { return world_.rank() == 0; }
  static double seconds_since(std::int64_t begin_ns) {
    return static_cast<double>(now_ns() - begin_ns) * 1e-9;
  }
  template <class... Args>
  static void say(fmt::format_string<Args...> format, Args&&... args) {
    print_error("{}\n", fmt::format(format, std::forward<Args>(args)...));
  }

  const Processes& world_;
  CalibrateCommandLine line_;
  std::int64_t begin_ns_;
  CalibrationNode node_;
  std::vector<CalibrationStep> steps_;
  std::optional<CalibrationRecord> record_;  ///< rank 0's
  double expected_s_ = 0;                    ///< of the steps that are measured
  double passed_s_ = 0;                      ///< of it
};

int run_calibrate(const CalibrateCommandLine& line) {
  const Mpi mpi;
  const Processes world = mpi.world();
  try {
    return Calibration{world, line}.run();
  } catch (const UsageError& error) {
    return end_together(world, error.what(), kWrongUse);
  } catch (const CannotHereError& error) {
    return end_together(world, error.what(), kCannotHere);
  } catch (const std::exception& error) {  // this process alone: main aborts the others
    throw std::runtime_error{fmt::format(
        "process {}: {}\n  hint: what was measured is kept; the same command goes on with the next "
        "scenario",
        world.rank(), error.what())};
  }
}

std::string default_scenarios() {
  const fs::path here = "scenarios";
  return fs::is_directory(here / "calibration") ? here.string()
                                                : (data_directory() / "scenarios").string();
}

/// main's, for end_run: a plain function cannot carry it.
EndRun end_all = nullptr;

void end_with_hint(int exit_code) {
  print_error("what was measured is kept; the same command goes on with the next scenario\n");
  end_all(exit_code);
}

}  // namespace

void add_calibrate_command(CLI::App& app, int& exit_code, EndRun end_run) {
  auto line = std::make_shared<CalibrateCommandLine>();
  CLI::App& sub = add_subcommand(
      app, "calibrate",
      "Measure everything that a machine file needs; `foretrace fit` makes it from the results",
      "mpirun --bind-to none -n 8 foretrace-hw calibrate -o runs/\n"
      "  foretrace-hw calibrate -o runs/                     (one GPU)");
  sub.add_option("-o,--output", line->options.runs, "Directory of the results")->required();
  sub.add_option("--scenarios", line->scenarios,
                 "Directory with calibration/*.yaml and nccl/*.yaml; default: ./scenarios, or "
                 "foretrace's own");
  sub.add_option("--repetitions", line->options.repetitions,
                 "Untraced passes that are timed; of NCCL's sweeps a quarter as many")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  sub.add_option("--start-label", line->options.start_label,
                 "A note on this process launch, kept with its samples");
  auto* force = sub.add_flag("--force", line->force, "Measure anew what is there");
  sub.add_flag("--append", line->append, "Add this start's samples to results that are there")
      ->excludes(force);
  sub.add_option("--host-seconds", line->host_seconds,
                 "Time for the host itself, whose file RUNS/host.yaml is; 0: leave it out")
      ->check(CLI::Range(0.0, 600.0))
      ->capture_default_str();
  sub.add_flag("--check", line->check_all, "Check the data of NCCL's sweeps, too");
  sub.callback([line, &exit_code, end_run] {
    end_all = end_run;
    line->options.end_run = end_with_hint;
    line->options.traced = 0;
    if (line->force) line->options.when_there = WhenThere::Force;
    if (line->append) line->options.when_there = WhenThere::Append;
    if (line->scenarios.empty()) line->scenarios = default_scenarios();
    exit_code = run_calibrate(*line);
  });
}

}  // namespace foretrace::hw
