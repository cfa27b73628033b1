#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "models/machine/machine.h"
#include "reports/capture/captured_scenario.h"
#include "reports/capture/captured_timeline.h"
#include "reports/capture/kineto.h"
#include "reports/capture/nsight.h"
#include "reports/capture/steps.h"
#include "reports/timeline/timeline_json.h"
#include "reports/timeline/write_file.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/made_from.h"
#include "scenarios/base/text/print.h"
#include "scenarios/base/text/text_file.h"
#include "scenarios/base/values/time_text.h"
#include "scenarios/interchange/interchange.h"
#include "scenarios/read/scenario.h"
#include "sim/cli/commands.h"
#include "sim/cli/options.h"

namespace foretrace {
namespace {

struct ImportOptions {
  std::vector<std::string> files;
  std::string run;
  std::string scenario;
  std::string machine = kDefaultMachine;
  int iteration = -1;
  int processes = 0;
};

capture::Capture read_traces(const std::vector<std::string>& files) {
  capture::Capture all;
  constexpr std::size_t kLargest = std::size_t{4} << 30;
  std::map<std::string, std::string> known;  // by digest
  for (const std::string& file : files) {
    const bool is_sqlite = capture::is_sqlite(FileStream{file, kLargest}.head());
    std::vector<capture::Process> processes;
    if (is_sqlite) {
      static_cast<void>(read_text_file(file, kLargest));  // for its digest
    } else {
      processes.push_back(capture::read_kineto(file, all.names));
    }
    const auto [same, is_new] = known.try_emplace(digest_as_read(file), file);
    if (!is_new) {
      throw UsageError{fmt::format("{} and {} are the same trace\n  hint: one of each rank",
                                   same->second, file)};
    }
    if (is_sqlite) processes = capture::read_nsight(file, all.names);
    std::ranges::move(processes, std::back_inserter(all.processes));
  }
  const bool ranked = std::ranges::all_of(all.processes, [](const auto& p) { return p.rank >= 0; });
  capture::check(all);
  if (ranked) std::ranges::stable_sort(all.processes, {}, &capture::Process::rank);
  return all;
}

void warn_of_early_work(const capture::Capture& all) {
  for (const capture::Process& process : all.processes) {
    const capture::Early early = capture::early_work(process, capture::Started{process});
    if (early.works == 0) continue;
    print_error(
        "{}: warning: {} kernels, copies or fills begin before the calls that started them, by up "
        "to {}\n  hint: the trace's clocks do not agree; what waits for what is guessed from its "
        "times\n",
        process.file, early.works, format_time(static_cast<double>(early.most)));
  }
}

std::int64_t call_ns(const Machine& machine, Param param) {
  constexpr double kNs = 1e9;
  return machine.has(param) ? static_cast<std::int64_t>(machine.get(param).value * kNs) : 0;
}

capture::CallTimes call_times(const Machine& machine) {
  capture::CallTimes times;
  times.launch = call_ns(machine, Param::HostLaunchKernel);
  times.event_record = call_ns(machine, Param::HostEventRecord);
  times.stream_wait = call_ns(machine, Param::HostStreamWaitEvent);
  times.synchronize = call_ns(machine, Param::HostDeviceSynchronize);
  times.spin_overhead = call_ns(machine, Param::SpinOverhead);
  times.kernel_gap = call_ns(machine, Param::KernelGap);
  times.collective =
      call_ns(machine, Param::NcclHostCollective) + 2 * (times.event_record + times.stream_wait);
  return times;
}

std::string scenario_name(const std::string& file) {
  std::string name = std::filesystem::path{file}.stem().string();
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

/// Returns what was written.
std::string write_scenario(const capture::Capture& all, const ImportOptions& options) {
  capture::ScenarioOptions wanted;
  wanted.name = scenario_name(options.scenario);
  if (options.iteration >= 0) wanted.iteration = static_cast<std::size_t>(options.iteration);
  wanted.processes = options.processes;
  const Machine machine = load_machine(options.machine);
  wanted.calls = call_times(machine);
  if (machine.has(Param::SmCount)) wanted.sms = machine.count(Param::SmCount);
  const capture::CapturedScenario scenario = capture::scenario_of(all, wanted);
  if (scenario.text.size() > kLargestText) {
    throw UsageError{
        fmt::format("{}: a scenario of {} MiB, of which {} can be read\n  hint: one iteration with "
                    "--iteration, "
                    "of a trace whose steps are marked (torch.profiler's step())",
                    options.scenario, scenario.text.size() >> 20, kLargestText >> 20)};
  }
  write_file(options.scenario, scenario.text);
  print_out("{}: the captured step took {:.3f} ms\n", options.scenario,
            static_cast<double>(scenario.captured_ns) * 1e-6);
  for (const std::string& note : scenario.notes) print_out("{}\n", note);
  for (const std::string& guess : scenario.guesses) print_out("guessed: {}\n", guess);
  return scenario.text;
}

/// Beside a scenario: a measurement of it.
Timeline timeline_of(const capture::Capture& all, const ImportOptions& options,
                     const std::string& scenario) {
  if (scenario.empty()) return capture::timeline_of(all);
  const Checked<ReadProgram> program = read_scenario(scenario, options.scenario);
  if (!program) throw UsageError{render(program.error(), scenario)};
  std::optional<std::size_t> iteration;
  if (options.iteration >= 0) iteration = static_cast<std::size_t>(options.iteration);
  return capture::timeline_of(all, program->program, iteration);
}

/// Workloads of other simulators; none where the files are traces of a profiler.
std::optional<interchange::Scenario> read_workload(const ImportOptions& options) {
  constexpr std::size_t kLargest = std::size_t{256} << 20;
  const bool chakra = std::ranges::any_of(options.files, interchange::is_chakra);
  if (!chakra && !interchange::is_simai(FileStream{options.files.front(), kLargest}.head()))
    return {};
  if (!options.run.empty()) {
    throw UsageError{
        "-o: a workload of another simulator has no measured times\n  hint: --scenario FILE.yaml"};
  }
  if (options.scenario.empty()) throw UsageError{"nothing to write\n  hint: --scenario FILE.yaml"};
  std::vector<interchange::RankFile> ranks;
  std::map<std::filesystem::path, std::string> seen;
  for (const std::string& file : options.files) {
    if (interchange::is_chakra(file) != chakra) {
      throw UsageError{fmt::format("{} is no .et file, as the others are", file)};
    }
    std::error_code why;  // a file that is not there is refused where it is read
    const auto [other, is_new] = seen.emplace(std::filesystem::canonical(file, why), file);
    if (!why && !is_new) {
      throw UsageError{fmt::format("{} and {} are the same trace\n  hint: one of each rank",
                                   other->second, file)};
    }
    ranks.push_back({file, read_text_file(file, kLargest)});
  }
  interchange::Options wanted;
  wanted.name = scenario_name(options.scenario);
  if (options.processes > 0) wanted.processes = static_cast<std::uint32_t>(options.processes);
  if (chakra) {
    const Machine machine = load_machine(options.machine);
    if (machine.has(Param::GpuHalfFlops)) wanted.flops = machine.get(Param::GpuHalfFlops).value;
    if (machine.has(Param::HbmBandwidth))
      wanted.bytes_per_second = machine.get(Param::HbmBandwidth).value;
    return interchange::read_chakra(ranks, wanted);
  }
  if (ranks.size() > 1) throw UsageError{"a SimAI workload is one file"};
  return interchange::read_simai(ranks.front(), wanted);
}

int run_import(const ImportOptions& options) {
  if (const auto workload = read_workload(options)) {
    if (workload->text.size() > kLargestText) {
      throw UsageError{fmt::format("{}: a scenario of {} MiB, of which {} can be read",
                                   options.scenario, workload->text.size() >> 20,
                                   kLargestText >> 20)};
    }
    write_file(options.scenario, workload->text);
    for (const std::string& note : workload->notes) print_out("{}\n", note);
    return kDone;
  }
  if (options.run.empty() && options.scenario.empty()) {
    throw UsageError{
        "nothing to write\n  hint: -o RUN/ for a measured timeline, --scenario FILE.yaml"};
  }
  const capture::Capture all = read_traces(options.files);
  warn_of_early_work(all);
  const std::string scenario =
      options.scenario.empty() ? std::string{} : write_scenario(all, options);
  if (!options.run.empty()) {
    make_directory(options.run);
    const auto file = std::filesystem::path{options.run} / kMeasuredFile;
    Timeline timeline = timeline_of(all, options, scenario);
    std::string traces;
    for (const std::string& trace : options.files) traces += digest_as_read(trace);
    timeline.origin.versions["traces_digest"] = digest_of(traces);
    timeline.origin.versions["build"] = build_id();
    write_timeline(timeline, file);
    print_error("wrote {}\n", file.string());
  }
  return kDone;
}

}  // namespace

void add_import_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ImportOptions>();
  CLI::App& command =
      add_subcommand(app, "import",
                     "Read traces of PyTorch's profiler or of Nsight Systems, Chakra's or SimAI's "
                     "workloads, as scenarios",
                     "foretrace import rank0.json.gz rank1.json.gz -o RUN/ --scenario step.yaml");
  command
      .add_option("traces", options->files,
                  "Kineto's JSON (.gz too) or Chakra's .et, one for each rank, nsys export --type "
                  "sqlite, or a SimAI workload (.txt)")
      ->required();
  command
      .add_option("-o,--output", options->run,
                  "Directory for measured.timeline.json; beside --scenario of its iteration alone")
      ->check(written_directory(), "")
      ->option_text("DIR");
  command.add_option("--scenario", options->scenario, "Scenario file of one iteration")
      ->check(written_file({".yaml", ".yml"}), "")
      ->option_text("FILE");
  command.add_option("--iteration", options->iteration, "Which one, from 0; default: the last")
      ->check(CLI::Range(0, 1'000'000));
  command
      .add_option("--processes", options->processes,
                  "As many processes, all as the slowest captured one")
      ->check(CLI::Range(1, 16'384));
  command
      .add_option("-m,--machine", options->machine,
                  "Whose calls into CUDA the scenario's gaps leave room for")
      ->capture_default_str();
  command.callback([options, &exit_code] { exit_code = run_import(*options); });
}

}  // namespace foretrace
