#include "hw/cli/measure_command.h"

#include <fmt/format.h>
#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <set>
#include <utility>

#include "hw/cuda/gemm.h"
#include "hw/guard/together.h"
#include "hw/run/load_program.h"
#include "hw/run/program_facts.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/print.h"
#include "scenarios/base/values/quantity.h"

namespace foretrace::hw {
namespace {

struct MeasureCommandLine {
  std::vector<std::string> files;
  std::vector<std::string> assignments;  ///< --set name=value
  std::string timeout = "30s";
  bool force = false;
  bool append = false;
  bool no_check = false;
  MeasureOptions options;
};

std::chrono::nanoseconds parse_timeout(const std::string& text) {
  const auto parsed = parse_constant(text);
  if (!parsed) throw UsageError{"--timeout: " + parsed.error().message};
  if (parsed->unit != kTime || parsed->constant <= 0) {
    throw UsageError{"--timeout: a positive time with a unit is needed, as 30s"};
  }
  const Duration duration{parsed->constant.to_double() > 1e18
                              ? std::int64_t{1'000'000'000'000'000'000}
                              : static_cast<std::int64_t>(parsed->constant.to_double())};
  return std::chrono::nanoseconds{round_to_ns(duration)};
}

/// All files of one start.
std::vector<Program> load_programs(const Processes& world, const MeasureCommandLine& line) {
  std::vector<Program> programs;
  for (const std::string& file : line.files) {
    programs.push_back(load_program(world, file, line.options.parameters));
  }
  return programs;
}

/// What only the set of files as a whole, or the number of processes, makes wrong.
void check_start(const Processes& world, const std::vector<Program>& programs) {
  std::set<std::string> names;
  for (const Program& program : programs) {
    if (static_cast<int>(program.processes) > world.count()) {
      throw UsageError{
          fmt::format("{} needs {} processes, this start has {}: mpirun -n {} "
                      "foretrace-hw measure ...",
                      program.file, program.processes, world.count(), program.processes)};
    }
    if (!names.insert(program.name).second) {
      throw UsageError{
          fmt::format("two scenarios are named '{}': their results would share a "
                      "directory",
                      program.name)};
    }
    if (program.environment != programs.front().environment) {
      throw UsageError{fmt::format(
          "{} and {} set different environments, which CUDA reads once: measure them in separate "
          "starts",
          programs.front().file, program.file)};
    }
    if (program.warmup == 0 && programs.size() > 1) {
      throw UsageError{
          fmt::format("{} is a cold program (warmup: 0): measure it in a start of its "
                      "own",
                      program.file)};
    }
    for (const foretrace::HostThread& thread : program.threads) {
      for_each_op(thread.ops, [&](const Op& op) {
        if (std::holds_alternative<Fault>(op.kind) && programs.size() > 1) {
          throw UsageError{
              fmt::format("{}:{}: a fault ends the process: measure it in a start of its own",
                          program.file, op.line)};
        }
        if (const auto* gemm = std::get_if<Gemm>(&op.kind)) require_gemm_type(*gemm);
      });
    }
  }
}

void set_environment(const Program& program) {
  for (const auto& [name, value] : program.environment) setenv(name.c_str(), value.c_str(), 1);
}

class Start {
 public:
  Start(const Processes& world, MeasureCommandLine line) : world_{world}, line_{std::move(line)} {}

  int run() {
    together(world_, [&] { line_.options.timeout = parse_timeout(line_.timeout); });
    together(world_, [&] { line_.options.parameters = parse_assignments(line_.assignments); });
    auto programs = load_programs(world_, line_);
    together(world_, [&] { check_start(world_, programs); });
    set_environment(programs.front());
    prepare(std::move(programs));
    warn_of_few_cores();
    measure_all();
    trace_all();
    return exit_code_;
  }

 private:
  void prepare(std::vector<Program> programs) {
    std::vector<Failure> failures;
    for (Program& program : programs) {
      auto subset = world_.first(static_cast<int>(program.processes));
      const Failure failure =
          subset.member ? failure_of([&] { check_devices(program, subset.processes); }) : Failure{};
      throw_together(world_, failure);
      measurements_.push_back(
          subset.member ? std::make_unique<Measurement>(std::move(program),
                                                        std::move(subset.processes), line_.options)
                        : nullptr);
    }
  }

  void measure_all() {
    int complete = 0;
    for (std::size_t i = 0; i < measurements_.size(); ++i) {
      Measurement* measurement = measurements_[i].get();
      const bool wanted = measurement != nullptr && measurement->plan();
      if (world_.rank() == 0 && !wanted) {
        ++complete;
        print_error("[{}/{}] {}: measured before, kept\n", i + 1, measurements_.size(),
                    measurement->program().name);
      }
      if (wanted) {
        say(i, "measuring");
        exit_code_ = std::max(exit_code_, measurement->measure_regions());
      } else {
        measurements_[i].reset();
      }
      exit_code_ = static_cast<int>(world_.largest(exit_code_));  // and: one scenario at a time
    }
    at_root(world_, [&] {
      if (complete == static_cast<int>(measurements_.size())) {
        throw UsageError{
            "every scenario has a result there: --force measures anew, --append adds "
            "this start's samples"};
      }
    });
  }

  void trace_all() {
    for (std::size_t i = 0; i < measurements_.size(); ++i) {
      if (measurements_[i]) {
        say(i, "tracing");
        measurements_[i]->trace();
        if (world_.rank() == 0) {
          print_out("{}\n", (line_.options.runs / measurements_[i]->program().name).string());
        }
      }
      world_.wait_for_all();
    }
  }

  /// mpirun binds processes to one core each unless told otherwise.
  void warn_of_few_cores() const {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    std::size_t threads = 0;
    for (const auto& measurement : measurements_) {
      if (!measurement) continue;
      const Program& program = measurement->program();
      threads =
          std::max(threads, threads_of(program, static_cast<std::uint32_t>(world_.rank())).size());
    }
    // NCCL and the driver have threads of their own.
    const std::size_t wanted = threads + 1;
    if (static_cast<std::size_t>(CPU_COUNT(&allowed)) < wanted) {
      print_error(
          "warning: process {} may use {} core(s) only, {} are wanted: times will suffer "
          "(mpirun --bind-to none)\n",
          world_.rank(), CPU_COUNT(&allowed), wanted);
    }
  }

  void say(std::size_t index, const char* what) const {
    if (world_.rank() != 0) return;
    print_error("[{}/{}] {}: {}\n", index + 1, measurements_.size(),
                measurements_[index]->program().name, what);
  }

  const Processes& world_;
  MeasureCommandLine line_;
  std::vector<std::unique_ptr<Measurement>> measurements_;  ///< empty where not a member
  int exit_code_ = kDone;
};

/// Errors that all processes agree on leave MPI in order; rank 0 alone prints them.
int run_measure(const MeasureCommandLine& line) {
  const Mpi mpi;
  const Processes world = mpi.world();
  try {
    return Start{world, line}.run();
  } catch (const UsageError& error) {
    return end_together(world, error.what(), kWrongUse);
  } catch (const CannotHereError& error) {
    return end_together(world, error.what(), kCannotHere);
  } catch (const std::exception& error) {  // this process alone: main aborts the others
    throw std::runtime_error{fmt::format("process {}: {}", world.rank(), error.what())};
  }
}

}  // namespace

void add_measure_command(CLI::App& app, int& exit_code, EndRun end_run) {
  auto line = std::make_shared<MeasureCommandLine>();
  CLI::App& sub = add_subcommand(app, "measure",
                                 "Run scenarios on this machine's GPUs and write what was measured",
                                 "mpirun --bind-to none -n 2 foretrace-hw measure "
                                 "scenarios/collectives/all_reduce.yaml -o runs/");
  sub.add_option("files", line->files, "Scenario files, measured one after another")->required();
  sub.add_option("-o,--output", line->options.runs,
                 "Directory of the results: each scenario's go to DIRECTORY/NAME/")
      ->required();
  sub.add_option("--repetitions", line->options.repetitions, "Untraced passes that are timed")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  sub.add_option("--traced", line->options.traced,
                 "Passes under CUPTI afterwards; the last one gives the spans")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  sub.add_option("--timeout", line->timeout, "A run hangs when no operation completes for so long")
      ->capture_default_str();
  sub.add_option("--set", line->assignments, "name=value: a parameter of the scenarios");
  sub.add_option("--start-label", line->options.start_label,
                 "A note on this process launch, kept with its samples");
  auto* force = sub.add_flag("--force", line->force, "Replace results that are there");
  sub.add_flag("--append", line->append, "Add this start's samples to results that are there")
      ->excludes(force);
  sub.add_flag("--no-check", line->no_check, "Do not check the data that operations move");
  sub.callback([line, &exit_code, end_run] {
    line->options.end_run = end_run;
    line->options.check_data = !line->no_check;
    if (line->force) line->options.when_there = WhenThere::Force;
    if (line->append) line->options.when_there = WhenThere::Append;
    exit_code = run_measure(*line);
  });
}

}  // namespace foretrace::hw
