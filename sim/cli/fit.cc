#include "sim/applications/fit/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "reports/timeline/write_file.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/print.h"
#include "sim/applications/fit/data.h"
#include "sim/applications/fit/machine.h"
#include "sim/applications/fit/predict.h"
#include "sim/applications/fit/report.h"
#include "sim/applications/fit/sources.h"
#include "sim/applications/fit/verdict.h"
#include "sim/cli/commands.h"
#include "sim/cli/options.h"

namespace foretrace {
namespace {

struct FitOptions {
  std::vector<std::filesystem::path> runs;
  std::string machine;   ///< to start from
  std::string new_name;  ///< of a machine that there is no file for
  std::string name;
  std::string output, residuals;
  std::string from = "calibration";
  std::vector<std::string> hold_out, learn, required, without, only;
  bool judge = false;
  bool all = false;  ///< every table, not the verdict alone
  OutputFormat format = OutputFormat::Text;
};

void check(const FitOptions& options) {
  if (options.machine.empty() == options.new_name.empty()) {
    throw UsageError{
        "either --machine or --new is needed: a machine to start from, or the name of a new one"};
  }
  if (options.judge && options.machine.empty()) {
    throw UsageError{"--judge needs --machine: the machine to judge"};
  }
  if (!options.judge && options.output.empty()) {
    throw UsageError{"--output is needed: the machine file to write"};
  }
}

/// Whether the class came from a shipped machine of the same GPU, with how far such machines are
/// from each other: data that say no more leave it as well known as it was.
bool is_known_of_its_kind(const Machine& machine, std::string_view name) {
  for (std::size_t i = 0; i < kParamCount; ++i) {
    const auto param = static_cast<Param>(i);
    if (class_of(param) != name || !machine.has(param)) continue;
    if (prior_unit(machine.get(param)) < 1) return true;
  }
  return false;
}

/// Classes of parameters that this machine has and nothing determined.
std::vector<std::string> missing_classes(const FitResult& result) {
  std::map<std::string, bool, std::less<>> determined;
  for (const Refused& refused : result.refused) {
    determined.try_emplace(std::string{class_of(refused.param)}, false);
  }
  for (const Param param : result.fitted) determined[std::string{class_of(param)}] = true;
  const bool one_gpu = result.machine.nodes * result.machine.gpus_per_node == 1;
  std::vector<std::string> missing;
  // Where products.* is known, nothing is predicted by tiles.*.
  const bool by_products = result.machine.has(Param::ProductsStart);
  for (const std::string name : {"host", "gpu", "copy", "kernel", "tiles", "nccl"}) {
    if ((one_gpu && name == "nccl") || (by_products && name == "tiles")) continue;
    const auto found = determined.find(name);
    if (found == determined.end() || found->second) continue;
    if (!is_known_of_its_kind(result.machine, name)) missing.emplace_back(name);
  }
  return missing;
}

/// Throws UsageError when the data do not determine what the user insists on.
void refuse(const FitOptions& options, const FitResult& result, const DeterminedBy& determined) {
  std::string problems;
  for (const std::string& name : missing_classes(result)) {
    if (std::ranges::find(options.without, name) != options.without.end()) continue;
    problems += fmt::format("nothing here determines any {}.* parameter\n", name);
  }
  for (const std::string& required : options.required) {
    bool known = false;
    for (std::size_t i = 0; i < kParamCount; ++i) {
      const auto param = static_cast<Param>(i);
      const std::string_view key = info(param).key;
      if (key != required && !key.starts_with(required + ".")) continue;
      known = true;
      const auto refused = std::ranges::find(result.refused, param, &Refused::param);
      if (refused == result.refused.end()) continue;
      problems += fmt::format("{}: {}; it would be determined by {}\n", key, refused->reason,
                              advice_for(param, determined));
    }
    if (!known) problems += fmt::format("--require {}: no such parameter\n", required);
  }
  if (problems.empty()) return;
  throw UsageError{problems +
                   "no machine file was written\n  hint: foretrace-hw calibrate measures "
                   "everything; --without CLASS accepts that a class is left as it was\n"};
}

/// The command line that does this fit again.
std::string command_of(const FitOptions& options) {
  std::string text = "foretrace fit";
  const auto add = [&](const char* flag, const std::vector<std::string>& values) {
    for (const std::string& value : values) text += fmt::format(" {} {}", flag, value);
  };
  for (const auto& run : options.runs) text += " " + run.string();
  if (!options.machine.empty()) text += " --machine " + options.machine;
  if (!options.new_name.empty()) text += " --new " + options.new_name;
  add("--hold-out", options.hold_out);
  add("--learn", options.learn);
  add("--only", options.only);
  add("--without", options.without);
  return text + " -o " + options.output;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

HoldOut hold_out_of(const FitOptions& options) {
  HoldOut hold_out = parse_hold_out(options.hold_out);
  hold_out.learn = {options.learn.begin(), options.learn.end()};
  return hold_out;
}

const char* standing_name(Standing standing) {
  switch (standing) {
    case Standing::Fit:
      return "fit";
    case Standing::HeldOutSize:
      return "held out size";
    case Standing::HeldOutRanks:
      return "held out ranks";
    case Standing::Validation:
      break;
  }
  return "validation";
}

/// What a fit, or --judge, found.
struct Found {
  const FitData& data;
  const std::vector<TargetClass>& classes;
  const FitResult& result;
  const DeterminedBy& determined;
};

/// Every region, parameter and what is not determined; values in SI units.
std::string json_of(const Found& found, const Machine& start) {
  using Json = nlohmann::ordered_json;
  Json regions = Json::array(), fitted = Json::array(), refused = Json::array();
  for (std::size_t i = 0; i < found.data.targets.size(); ++i) {
    const FitTarget& target = found.data.targets[i];
    const FitRun& run = found.data.runs[target.run];
    Json row{{"scenario", run.program.name},
             {"region", target.region},
             {"class", found.classes[i].name},
             {"gpus", run.gpus},
             {"standing", standing_name(target.standing)},
             {"measured_ns", target.measured_ns},
             {"spread", target.spread}};
    const double predicted = found.result.predicted_ns[i];
    if (!std::isnan(predicted)) {
      row["predicted_ns"] = predicted;
      row["error"] = predicted / target.measured_ns - 1;
    }
    regions.push_back(std::move(row));
  }
  for (const Param param : found.result.fitted) {
    const ParamValue& value = found.result.machine.get(param);
    fitted.push_back({{"parameter", info(param).key},
                      {"before", start.get(param).value},
                      {"value", value.value},
                      {"spread", value.spread}});
  }
  for (const Refused& each : found.result.refused) {
    refused.push_back({{"parameter", info(each.param).key},
                       {"reason", each.reason},
                       {"determined_by", advice_for(each.param, found.determined)}});
  }
  const Json json{{"schema_version", 1},
                  {"kind", "fit"},
                  {"machine", start.name},
                  {"regions", regions},
                  {"fitted", fitted},
                  {"not_determined", refused},
                  {"simulations", found.result.simulations}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

int run_fit(const FitOptions& options) {
  check(options);
  const auto begin = std::chrono::steady_clock::now();
  FitData data = load_fit_data(options.runs, hold_out_of(options));
  for (const std::string& line : data.left_out) print_error("left out: {}\n", line);
  Machine start = options.machine.empty() ? new_machine(options.new_name, data.environment)
                                          : load_machine(options.machine);
  if (!options.new_name.empty()) {
    if (const auto factor = host_factor(data, start)) move_to_host(start, *factor);
  }
  if (!options.name.empty()) start.name = options.name;
  const bool learns = std::ranges::any_of(
      data.targets, [](const FitTarget& target) { return target.standing == Standing::Fit; });
  if (!options.judge && !learns) {
    throw UsageError{
        "nothing to fit: no calibration scenario and no sweep of NCCL's is among these, and none "
        "that --learn names\n"
        "  hint: measure with 'mpirun -n 8 foretrace-hw calibrate -o RUNS/'"};
  }
  const auto learns_calls = [&] {
    return options.only.empty() || std::ranges::any_of(options.only, [](const std::string& key) {
             return info(Param::HostLaunchKernel).key.starts_with(key);
           });
  };
  if (!options.judge && learns_calls()) tell_hosts_apart(data, start);
  const FitResult result =
      options.judge ? judge(data, start)
                    : fit(data, start, {options.from, command_of(options)}, options.only);
  const auto classes = classify(data, result.machine);
  const bool all = options.judge || options.all;
  if (!options.residuals.empty()) {
    write_file(options.residuals, residual_table(data, classes, result, true));
  } else if (all && options.format == OutputFormat::Text) {
    print_out("{}\n", residual_table(data, classes, result, false));
  }
  std::vector<Param> refused;
  for (const Refused& each : result.refused) refused.push_back(each.param);
  const DeterminedBy determined =
      refused.empty() ? DeterminedBy{} : determined_by(result.machine, refused);
  if (options.format == OutputFormat::Csv) {
    print_out("{}", residual_table(data, classes, result, true));
  } else if (options.format == OutputFormat::Json) {
    print_text(json_of({data, classes, result, determined}, start));
  } else if (all) {
    if (!options.judge) print_out("{}\n", parameter_table(result, start));
    print_out("{}", class_summary(data, classes, result));
    print_error("{}", refusal_text(result, determined));
  } else {
    print_out("{}", verdict(data, classes, result, determined));
  }
  if (!options.judge) {
    refuse(options, result, determined);
    write_file(options.output, machine_text(result.machine));
    print_error("{} parameters fitted, {} left as they were: {}\n", result.fitted.size(),
                result.refused.size(), options.output);
  }
  print_error("{} simulations, {:.0f} s\n", result.simulations, seconds_since(begin));
  return kDone;
}

}  // namespace

void add_fit_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<FitOptions>();
  CLI::App& command = add_subcommand(
      app, "fit",
      "Fit a machine model's parameters to measured calibration runs, and judge it by what was "
      "held out; parameters from a datasheet or a publication stay",
      "foretrace fit RUNS/ --new my-machine -o my-machine.yaml\n"
      "  foretrace fit RUNS/ --machine h200-nvswitch-8 --judge");
  command
      .add_option("runs", options->runs,
                  "Directories with measured timelines, as foretrace-hw calibrate writes them; "
                  "several starts of one program count together")
      ->required();
  command.add_option("-m,--machine", options->machine, "Machine model to start from");
  command.add_option("--new", options->new_name,
                     "Name of a machine that there is no model for: begins with assumptions");
  command.add_option("-o,--output", options->output, "Machine file to write")
      ->check(written_file({".yaml", ".yml"}), "")
      ->option_text("FILE");
  command.add_option("--name", options->name, "Another name for the machine model");
  command.add_option("--from", options->from, "What the file says the values were fitted from")
      ->capture_default_str();
  command.add_option("--hold-out", options->hold_out,
                     "What only judges: every-other (size of NCCL's sweeps; the default), none, "
                     "ranks=N, scenario=NAME (or BEGINNING*)");
  command.add_option("--learn", options->learn,
                     "Scenario (or BEGINNING*) to learn from as from a calibration");
  command.add_option("--require", options->required,
                     "Parameter (or the beginning of several: nccl.all_reduce) that must be "
                     "determined: else exit 2 and no file");
  command.add_option("--without", options->without,
                     "Class of parameters that may stay undetermined: host, gpu, copy, kernel, "
                     "tiles or nccl");
  command.add_option("--only", options->only,
                     "Fit only parameters whose key begins so (nccl, host.graph); the others stay");
  command
      .add_option("--residuals", options->residuals,
                  "Write the residual table to this file, as CSV, instead of printing it")
      ->check(written_file(), "")
      ->option_text("FILE");
  add_format_option(command, options->format,
                    "the verdict; json has every region and parameter, csv every region");
  command.add_flag("--all", options->all,
                   "Print every residual, parameter and what is not determined, instead of the "
                   "verdict in ten lines");
  command.add_flag("--judge", options->judge, "Fit nothing: how good is the machine model?");
  command.callback([options, &exit_code] { exit_code = run_fit(*options); });
}

}  // namespace foretrace
