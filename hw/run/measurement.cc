#include "hw/run/measurement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "hw/check/data_check.h"
#include "hw/guard/host_messages.h"
#include "hw/guard/together.h"
#include "hw/node/environment.h"
#include "hw/node/host_speed.h"
#include "hw/run/samples.h"
#include "hw/trace/activity_tracer.h"
#include "hw/trace/clock.h"
#include "hw/trace/clock_bound.h"
#include "hw/trace/cupti_check.h"
#include "reports/timeline/origin.h"
#include "reports/timeline/statistics.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/print.h"
#include "scenarios/program/program_walk.h"

namespace foretrace::hw {
namespace {

/// Samples reach the disk after so many repetitions; gathering them costs no measured time.
constexpr int kSaveEvery = 5;

/// "ranks=3 small=48B": with them the scenario's file gives this very program again.
std::string text_of(const ParameterValues& parameters) {
  std::string text;
  for (const auto& [name, value] : parameters) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  }
  return text;
}

Timeline empty_result(const Program& program, const ParameterValues& parameters) {
  Timeline timeline;
  timeline.origin = origin_of(program);
  timeline.origin.measured = true;
  timeline.origin.producer = std::string{"foretrace-hw "} + FORETRACE_VERSION;
  timeline.ops = op_rows(program);
  if (!parameters.empty()) timeline.origin.versions["parameters"] = text_of(parameters);
  return timeline;
}

/// How often a pass comes to an operation for which `holds`, in all processes.
std::uint64_t times_a_pass(const Program& program, bool (*holds)(const OpKind&)) {
  std::uint64_t count = 0;
  for (const HostThread& thread : program.threads) {
    for_each_op(thread.ops, [&](const Op& op, Around around) {
      if (holds(op.kind)) count += executions(around) * thread.processes.size();
    });
  }
  return count;
}

bool is_framework_call(const OpKind& kind) { return std::holds_alternative<FrameworkCall>(kind); }

/// The harness has no kernel of that name.
bool is_captured_kernel(const OpKind& kind) {
  const auto* kernel = std::get_if<LibraryKernel>(&kind);
  return kernel != nullptr && kernel->kernel == KernelKind::Captured;
}

/// What the result says of the clocks of several hosts. Called by all processes.
std::string words_of_host_clocks(const Processes& processes, std::int64_t bound_ns, double drift,
                                 std::int64_t late_ns) {
  const std::int64_t drift_ppb = processes.largest(std::llround(std::abs(drift) * 1e9));
  const std::int64_t latest_ns = processes.largest(late_ns);
  return fmt::format(
      "at most {} ns apart, by the shortest of 64 round trips to each before and after the traced "
      "pass; corrected for a drift of up to {:.3f} ppm; the last process began {} ns late",
      bound_ns, static_cast<double>(drift_ppb) * 1e-3, latest_ns);
}

/// "2026-11-21T02:00:00Z"
std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace

Measurement::Measurement(Program program, Processes processes, MeasureOptions options)
    : program_{std::move(program)},
      processes_{std::move(processes)},
      options_{std::move(options)},
      files_{{options_.runs / program_.name}, empty_result(program_, options_.parameters)} {}

int Measurement::first_ordinal() const {
  return processes_.local_rank() * static_cast<int>(program_.devices);
}

bool Measurement::plan() {
  at_root(processes_, [&] {
    plan_ = files_.open(
        {options_.repetitions, options_.traced, program_.warmup == 0, options_.when_there});
    for (std::uint32_t p = 0; p < program_.processes; ++p) {
      std::filesystem::remove(hang_file(files_.files().directory, p));
    }
  });
  processes_.broadcast(std::as_writable_bytes(std::span{&plan_, 1}), 0);
  return !plan_.complete;
}

int Measurement::measure_regions() {
  ProcessRun run{program_, processes_, first_ordinal(), options_.timeout, run_end()};
  note_machine();
  if (program_.warmup > 0) run.preload();
  warm_up(run);
  if (program_.warmup > 0 && !data_is_right(run)) return kBadAnswer;
  repeat(run);
  if (program_.warmup == 0 && !data_is_right(run)) return kBadAnswer;
  // Once for each node, in their order.
  const auto described =
      processes_.gather(processes_.local_rank() == 0 ? describe_environment().dump() : "");
  const std::vector<std::int64_t> launches = host_speeds();
  at_root(processes_, [&] {
    std::vector<nlohmann::json> nodes;
    for (const std::string& text : described) {
      if (!text.empty()) nodes.push_back(nlohmann::json::parse(text));
    }
    files_.add_start({.start = plan_.start,
                      .date = utc_now(),
                      .label = options_.start_label,
                      .environment = {},
                      .gpus = {},
                      .environments = {},
                      .launch_ns = launches},
                     nodes);
    files_.write(plan_.traced == 0);
  });
  return kDone;
}

void Measurement::warm_up(ProcessRun& run) const {
  for (std::uint32_t i = 0; i < program_.warmup; ++i) run.pass();
}

bool Measurement::data_is_right(ProcessRun& run) {
  if (!options_.check_data) return true;
  const DataCheck check = check_data(program_, processes_, run);
  files_.set_version("data_checked", check.summary);
  if (check.wrong.empty()) return true;
  wrong_data_ = true;
  at_root(processes_, [&] {
    for (const std::string& line : check.wrong) print_error("{}\n", line);
    files_.write_outcome({Outcome::Kind::WrongData, check.wrong});
  });
  return false;
}

void Measurement::repeat(ProcessRun& run) {
  const auto process = static_cast<std::uint32_t>(processes_.rank());
  std::vector<RegionSamples> rows;
  if (program_.warmup > 0) note_host_speed();  // nothing may come before a cold pass
  for (int repetition = 1; repetition <= plan_.repetitions; ++repetition) {
    run.pass();
    add_repetition(rows, program_, run.region_times(), process, plan_.start);
    if (repetition % kSaveEvery != 0 && repetition != plan_.repetitions) continue;
    note_host_speed();
    save_samples(rows);
  }
}

void Measurement::note_host_speed() {
  if (const auto ns = launch_ns(first_ordinal())) launches_ns_.push_back(*ns);
}

std::vector<std::int64_t> Measurement::host_speeds() const {
  std::vector<double> own{launches_ns_.begin(), launches_ns_.end()};
  const std::int64_t ns = own.empty() ? 0 : std::llround(median(own));
  std::vector<std::int64_t> all;
  for (const std::string& text : processes_.gather(std::to_string(ns))) {
    all.push_back(std::stoll(text));
  }
  // All or none: a list by process has no gaps.
  if (std::ranges::any_of(all, [](std::int64_t one) { return one <= 0; })) all.clear();
  return all;
}

void Measurement::save_samples(std::vector<RegionSamples>& rows) {
  Timeline part;
  part.regions = std::exchange(rows, {});
  const auto parts = processes_.gather(to_bytes(part));
  at_root(processes_, [&] {
    std::vector<RegionSamples> all;
    for (const std::string& bytes : parts) append_samples(all, from_bytes(bytes).regions);
    files_.save_samples(std::move(all));
  });
}

void Measurement::trace() {
  if (plan_.traced == 0 || wrong_data_) return;
  ProcessRun run{program_, processes_, first_ordinal(), options_.timeout, run_end()};
  note_machine();
  if (program_.warmup > 0) run.preload();
  const auto devices = static_cast<int>(program_.devices);
  std::unique_ptr<ActivityTracer> tracer;
  together(processes_, [&] {
    try {
      tracer = std::make_unique<ActivityTracer>();
    } catch (const CuptiError& error) {
      throw CannotHereError{fmt::format("the traced pass is not possible here: {}", error.what())};
    }
  });
  warm_up(run);
  auto brackets = launch_brackets(first_ordinal(), devices);
  fill_brackets(brackets, tracer->collect());
  TracedPass pass;
  ClockOffset before;
  for (int i = 0; i < plan_.traced; ++i) {
    pass = run.traced_pass();
    before = run.clocks().offset();
    pass.activities = tracer->collect();
  }
  const std::int64_t late_ns = run.clocks().late_ns();
  run.clocks().compare();
  const ClockOffset& after_pass = run.clocks().offset();
  pass.drift = drift_between(before, after_pass);
  pass.compared_ns = before.at_ns;
  auto after = launch_brackets(first_ordinal(), devices);
  fill_brackets(after, tracer->collect());
  brackets.insert(brackets.end(), after.begin(), after.end());

  BuiltSpans built = build_spans(program_, pass);
  set_traced(built.timeline.regions, program_, run.region_times(), pass.process);
  std::vector<ClockError> errors;
  for (int d = 0; d < devices; ++d) errors.push_back(clock_error(brackets, first_ordinal() + d));
  const std::int64_t between_hosts =
      bound_between_hosts(processes_, bound_between(before, after_pass));
  const std::int64_t bound = bound_over_processes(processes_, worst(errors)) + between_hosts;
  const std::string clocks = words_of_host_clocks(processes_, between_hosts, pass.drift, late_ns);
  const std::int64_t unattributed =
      processes_.largest(static_cast<std::int64_t>(built.unattributed));
  const std::int64_t dropped = processes_.largest(static_cast<std::int64_t>(tracer->dropped()));
  const auto parts = processes_.gather(to_bytes(built.timeline));
  at_root(processes_, [&] {
    Timeline all;
    for (const std::string& bytes : parts) add_process(all, from_bytes(bytes));
    all.origin.clock_error_bound_ns = bound;
    files_.set_trace(std::move(all));
    if (!processes_.one_host()) files_.set_version("clock_between_hosts", clocks);
    if (unattributed > 0) {
      files_.set_version("device_records_of_no_operation", std::to_string(unattributed));
    }
    if (dropped > 0) files_.set_version("device_records_dropped", std::to_string(dropped));
    files_.write(true);
  });
}

void Measurement::note_machine() {
  const std::string gpus = gpu_names(first_ordinal(), static_cast<int>(program_.devices));
  // In every process: any of them may have to write the result.
  files_.set_machine(fmt::format("{} x {}", program_.processes * program_.devices, gpus),
                     software_versions());
  if (const std::uint64_t calls = times_a_pass(program_, is_framework_call); calls > 0) {
    files_.set_version("not_run_framework_call",
                       fmt::format("{} a pass: there is no framework here", calls));
  }
  if (const std::uint64_t calls = times_a_pass(program_, is_captured_kernel); calls > 0) {
    const std::string words = fmt::format(
        "{} a pass: kernels that move as many bytes ran, not the captured ones: python3 -m "
        "foretrace "
        "measure runs the script itself",
        calls);
    files_.set_version("stand_in_captured", words);
    if (processes_.rank() == 0)
      print_error("{}: note: stand_in_captured: {}\n", program_.file, words);
  }
  if (!processes_.one_host()) files_.set_version("hosts", std::to_string(processes_.hosts()));
  files_.set_version("clock_error_bound",
                     "tightest of 100 launch-and-wait brackets per GPU around the traced pass");
}

RunEnd Measurement::run_end() {
  return {[this](const ProcessReport& report) { on_hang(report); }, [this] { end_hang(); },
          [this](const std::string& what) { on_failed_operation(what); },
          [this] { options_.end_run(kBadAnswer); },
          [this](const std::string& what) {
            print_error("error: process {}: {}\n", processes_.rank(), what);
            options_.end_run(kBroke);
          }};
}

void Measurement::on_hang(const ProcessReport& report) {
  using namespace std::chrono_literals;
  const auto& directory = files_.files().directory;
  const bool on_root_host = processes_.host() == 0;
  try {
    if (on_root_host) write_hang_report(hang_file(directory, report.process), report);
  } catch (const IoError& error) {
    print_error("process {}: {}\n", report.process, error.what());
  }
  if (!on_root_host) tell_rank_0(Told::Hang, to_text(report));
  if (!is_root()) {
    std::this_thread::sleep_for(2s);  // the others look around before anything is aborted
    return;
  }
  std::map<std::uint32_t, ProcessReport> told;
  const auto report_of = [&](std::uint32_t process) -> std::optional<ProcessReport> {
    if (processes_.host_of(static_cast<int>(process)) == 0) {
      return read_hang_report(hang_file(directory, process));
    }
    while (const auto text = take_told(Told::Hang)) {
      if (auto other = report_from(*text)) told.insert_or_assign(other->process, std::move(*other));
    }
    const auto found = told.find(process);
    return found == told.end() ? std::nullopt : std::optional{found->second};
  };
  std::vector<ProcessReport> reports;
  std::vector<std::string> silent;
  const std::int64_t end_ns = now_ns() + std::chrono::nanoseconds{8s}.count();
  for (std::uint32_t p = 0; p < program_.processes; ++p) {
    auto other = report_of(p);
    while (!other && now_ns() < end_ns) {
      std::this_thread::sleep_for(50ms);
      other = report_of(p);
    }
    if (other) {
      reports.push_back(std::move(*other));
    } else {
      silent.push_back(fmt::format("process {} did not answer", p));
    }
  }
  Outcome outcome{Outcome::Kind::Timeout, explain_hang(program_, reports)};
  outcome.explanation.insert(outcome.explanation.end(), silent.begin(), silent.end());
  print_error("{}: no operation completed for {} s: the run hangs\n", program_.name,
              std::chrono::duration_cast<std::chrono::duration<double>>(options_.timeout).count());
  for (const std::string& line : outcome.explanation) print_error("  {}\n", line);
  if (files_.write_outcome(std::move(outcome))) say_earlier_starts_stay();
  for (std::uint32_t p = 0; p < program_.processes; ++p) {
    std::filesystem::remove(hang_file(directory, p));
  }
}

void Measurement::say_earlier_starts_stay() const {
  print_error("{}: the result keeps what earlier starts measured, and notes that this one failed\n",
              program_.name);
}

void Measurement::end_hang() {
  using namespace std::chrono_literals;
  if (!is_root()) std::this_thread::sleep_for(20s);  // rank 0 explains, and ends everybody
  options_.end_run(kBadAnswer);
}

void Measurement::on_failed_operation(const std::string& what) {
  if (processes_.host() != 0) {  // what is written here nobody may find: rank 0 writes it
    using namespace std::chrono_literals;
    tell_rank_0(Told::Failure, what);
    std::this_thread::sleep_for(10s);
  }
  print_error("{}: {}\n", program_.name, what);
  // Rank 0 may be stuck in a call: the process that failed writes the result, with what is on disk.
  try {
    if (!is_root()) files_.join(plan_);
    if (files_.write_outcome({Outcome::Kind::Failed, {what}})) say_earlier_starts_stay();
  } catch (const std::exception& error) {  // the run ends all the same
    print_error("process {}: {}\n", processes_.rank(), error.what());
  }
}

}  // namespace foretrace::hw
