#include "scenarios/check/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "models/machine/machine.h"
#include "reports/table/text_table.h"
#include "scenarios/architecture/counts.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/print.h"
#include "scenarios/base/text/text_file.h"
#include "scenarios/program/program_walk.h"
#include "scenarios/read/scenario.h"
#include "scenarios/serving/traffic.h"
#include "scenarios/write/program_text.h"
#include "sim/applications/training/usage.h"
#include "sim/cli/commands.h"
#include "sim/cli/options.h"
#include "sim/machine_check.h"

namespace foretrace {
namespace {

struct CheckOptions {
  std::vector<std::string> files;
  std::string format = "text";
  std::string machine;  ///< empty: not said
  bool all = false;     ///< no warnings are counted only
  ParameterValues parameters;
};

std::string count(std::uint64_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : noun.ends_with("s") ? "es" : "s");
}

/// How often operations are executed in a pass, blocks too, in all processes together.
std::uint64_t executed(const Program& program) {
  std::uint64_t all = 0;
  for_each_op(program, [&](const HostThread& thread, const Op&, Around around) {
    all += times_capped(thread.processes.size(), executions(around));
    all = std::min(all, kMostExecutions);
  });
  return all;
}

/// "executed 69 times", or "at least" so often where nobody counts further.
std::string executed_words(const Program& program) {
  const std::uint64_t times = executed(program);
  return fmt::format("executed {}{}", times == kMostExecutions ? "at least " : "",
                     count(times, "time"));
}

/// What the buffers of a process take when all are there; each process has all of them.
struct BufferSizes {
  Bytes device, host;
};
BufferSizes buffer_sizes(const Program& program) {
  BufferSizes sizes;
  for (const Buffer& buffer : program.buffers) {
    Bytes& all = buffer.memory == MemoryKind::Device ? sizes.device : sizes.host;
    all = all + buffer.size;
  }
  return sizes;
}

/// "buffers of 2.9 GiB device and 19.1 MiB host memory each, ".
std::string buffer_words(const Program& program) {
  const BufferSizes sizes = buffer_sizes(program);
  std::string words;
  if (sizes.device.count > 0) words = format_size(sizes.device.count) + " device";
  if (sizes.host.count > 0) {
    words += fmt::format("{}{} host", words.empty() ? "" : " and ", format_size(sizes.host.count));
  }
  if (words.empty()) return {};
  return fmt::format("buffers of {} memory{}, ", words, program.processes > 1 ? " each" : "");
}

/// A training step has no buffers of its own: its tensors are what it needs.
void print_line(const Program& program, const std::optional<ExpandedScenario>& step,
                const std::optional<ServingScenario>& served) {
  const bool is_step = step.has_value();
  print_out("ok: {}, {}, {} each, {} read, {}, {}hash {}\n", program.name,
            count(program.processes, "process"), count(program.devices, "device"),
            count(program.op_count, "operation"), executed_words(program),
            is_step ? std::string{} : buffer_words(program), program.hash);
  if (is_step) {
    const training::Architecture& model = step->step.model;
    print_out("    model {}: {}\n", model.name, training::understood(model));
  }
  if (served) {
    const serving::Serving& asked = served->serving;
    print_out("    model {}: {}\n", asked.model.name, training::understood(asked.model));
    print_out("    {}; requests and engine: hash {}\n",
              serving::requests_words(serving::arrivals_of(asked.traffic)),
              serving::requests_hash(asked));
  }
  const std::string text = network_text(program);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    print_out("    {}\n", text.substr(at, end - at));
    at = end + 1;
  }
}

nlohmann::ordered_json to_json(const Program& program, const std::optional<ExpandedScenario>& step,
                               const std::optional<ServingScenario>& served) {
  const bool is_step = step.has_value();
  nlohmann::ordered_json json{
      {"file", program.file},           {"ok", true},
      {"name", program.name},           {"summary", program.summary},
      {"nodes", program.nodes},         {"network", network_text(program)},
      {"processes", program.processes}, {"devices_per_process", program.devices},
      {"operations", program.op_count}, {"executed", executed(program)}};
  if (is_step) json["model"] = training::understood(step->step.model);
  if (!is_step) {
    const BufferSizes sizes = buffer_sizes(program);
    json["device_bytes_per_process"] = sizes.device.count;
    json["host_bytes_per_process"] = sizes.host.count;
  }
  json["hash"] = program.hash;
  if (served) {
    json["model"] = training::understood(served->serving.model);
    json["requests"] = serving::requests_words(serving::arrivals_of(served->serving.traffic));
    json["requests_hash"] = serving::requests_hash(served->serving);
  }
  return json;
}

Diagnostics check_step_memory(const Program& program, const ExpandedScenario& step,
                              const Machine& machine) {
  const sim::MemoryVerdict verdict = sim::memory_verdict(step.expansion.memory, machine);
  if (verdict.fits) return {};
  return {
      {{program.file, 0, 0},
       fmt::format("at its peak the step needs {} of a GPU's memory, a GPU of machine '{}' has {}",
                   sim::gigabytes(verdict.bytes), machine.name, sim::gigabytes(verdict.capacity)),
       "foretrace simulate says what needs most, and what to change first"}};
}

bool has_default_machine() {
  if (!has_data_directory()) return false;
  const std::vector<std::string> names = machine_names();
  return std::ranges::find(names, kDefaultMachine) != names.end();
}

/// On the machine that was named everything must fit. Else of simulate's default machine the
/// memory alone is looked at: a program for a larger one is not wrong.
Diagnostics what_does_not_fit(const Program& program, const std::optional<ExpandedScenario>& step,
                              const CheckOptions& options) {
  const bool is_named = !options.machine.empty();
  if (!is_named && !has_default_machine()) {
    return {{{program.file, 0, 0},
             "whether it fits on a GPU was not looked at: foretrace's machine files are missing",
             "name a machine's file, --machine FILE.yaml, or set FORETRACE_DATA to the directory "
             "that has models/machines and scenarios",
             Severity::Warning}};
  }
  const Machine machine = load_machine(is_named ? options.machine : kDefaultMachine);
  Diagnostics problems = is_named ? check_parts(program, machine) : Diagnostics{};
  if (is_named)
    std::ranges::move(unsupported_types(program, machine), std::back_inserter(problems));
  // A step's buffers are nobody's: its tensors are what counts.
  Diagnostics memory = step ? check_step_memory(program, *step, machine) : Diagnostics{};
  if (memory.empty()) memory = check_memory(program, machine);
  std::ranges::move(memory, std::back_inserter(problems));
  for (Diagnostic& problem : problems) {
    if (is_named) continue;
    problem.severity = Severity::Warning;
    problem.hint += "; for another machine, name it: --machine";
  }
  return problems;
}

/// The exit code of one program. Prints what is doubtful, and what does not fit; that it never ends
/// is an error.
int judge(ReadProgram& read, const std::string& text, const std::optional<ExpandedScenario>& step,
          const CheckOptions& options) {
  const bool ends = ends_for_all_we_know(read.warnings);
  const auto add = [&](Diagnostics found) {
    for (Diagnostic& one : found) read.warnings.push_back(std::move(one));
  };
  add(slow_layouts(read.program));
  const Diagnostics sizes = what_does_not_fit(read.program, step, options);
  const bool fits = std::ranges::none_of(
      sizes, [](const Diagnostic& one) { return one.severity == Severity::Error; });
  add(sizes);
  if (!options.all) read.warnings = grouped(std::move(read.warnings));
  print_error("{}", render(read.warnings, text));
  return !fits ? kWrongUse : ends ? kDone : kBadAnswer;
}

int run_check(const CheckOptions& options) {
  int exit_code = kDone;
  if (!options.machine.empty()) load_machine(options.machine);  // once: it is nobody's problem else
  auto rows = nlohmann::ordered_json::array();
  for (const std::string& file : options.files) {
    try {
      const std::string text = read_text_file(file);
      auto read = read_scenario(text, file, options.parameters);
      if (!read) throw UsageError{render(read.error(), text)};
      const auto step = read_training(text, file, options.parameters, training::Ranks::OneOfEach);
      const auto served = read_serving_scenario(text, file, options.parameters);
      const int judged = judge(*read, text, step, options);
      const bool is_ok = judged == kDone;
      exit_code = std::max(exit_code, judged);
      if (is_ok && options.format == "text") print_line(read->program, step, served);
      rows.push_back(to_json(read->program, step, served));
      rows.back()["ok"] = is_ok;
    } catch (const UsageError& error) {
      print_failure(error.what());
      rows.push_back({{"file", file}, {"ok", false}});
      exit_code = kWrongUse;
    }
  }
  if (options.format == "json") {
    const nlohmann::ordered_json document{{"schema_version", 1}, {"files", std::move(rows)}};
    // Names of files may hold any bytes.
    print_out("{}\n",
              document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  }
  return exit_code;
}

}  // namespace

void add_check_command(CLI::App& app, int& exit_code) {
  CLI::App& command = add_subcommand(
      app, "check", "Read scenarios and say what is wrong; exit 1 when one would never end",
      "foretrace check my_scenario.yaml --set size=16MiB");
  auto options = std::make_shared<CheckOptions>();
  command.add_option("FILE", options->files, "Scenario files")->required();
  command.add_option("--format", options->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}));
  command.add_option("-m,--machine", options->machine,
                     "Machine model that it must fit on: GPUs and memory; default: a warning where "
                     "it does not fit into the memory of simulate's");
  command.add_flag("--all", options->all,
                   "Every warning; else of those that are alike the first, and how many more");
  add_set_option(command, options->parameters);
  command.callback([options, &exit_code] { exit_code = run_check(*options); });
}

}  // namespace foretrace
