#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/print.h"
#include "scenarios/base/text/text_file.h"
#include "scenarios/read/scenario.h"
#include "sim/applications/serving/choose.h"
#include "sim/applications/serving/predict.h"
#include "sim/cli/commands.h"
#include "sim/cli/options.h"

namespace foretrace {
namespace {

struct PlanServingOptions {
  std::string file;
  std::vector<std::string> machines{kDefaultMachine};
  std::optional<double> ttft_ms, tpot_ms, cost;
  ParameterValues parameters;
  bool csv = false;
};

std::string verdict_of(const serving::Choice& choice) {
  if (!choice.fits) return "its weights leave no room for a cache";
  if (choice.replicas == 0) return "no number of engines holds the limits";
  return choice.holds_slow ? "holds, at the slow end of the band too"
                           : "holds, but not at the slow end of the band";
}

void print_table(const std::vector<serving::Choice>& found, const PlanServingOptions& options) {
  print_out("{:<18}{:>7}{:>8}{:>6}{:>14}{:>14}{:>16}{:>7}{}  {}\n", "machine", "tensor", "engines",
            "GPUs", "TTFT p90, ms", "TPOT p90, ms", "tokens/s/GPU", "cache",
            options.cost ? "  cost/M tokens" : "", "limits");
  for (const serving::Choice& one : found) {
    if (!one.fits) {
      print_out("{:<18}{:>7}{:>65}  {}\n", one.machine, one.tensor, "", verdict_of(one));
      continue;
    }
    const auto gpus = static_cast<double>(std::max<std::int64_t>(1, one.gpus()));
    const std::string cost =
        !options.cost || one.replicas == 0
            ? std::string(options.cost ? 15 : 0, ' ')
            : fmt::format("{:>15.2f}", *options.cost * gpus / 3600 / one.output_tokens_per_s * 1e6);
    print_out("{:<18}{:>7}{:>8}{:>6}{:>14.1f}{:>14.2f}{:>16.0f}{:>6.0f}%{}  {}\n", one.machine,
              one.tensor, one.replicas == 0 ? "-" : fmt::format("{}", one.replicas),
              one.replicas == 0 ? "-" : fmt::format("{}", one.gpus()), one.ttft_ms, one.tpot_ms,
              one.replicas == 0 ? 0 : one.output_tokens_per_s / gpus, 100 * one.cache, cost,
              verdict_of(one));
  }
}

void print_csv(const std::vector<serving::Choice>& found) {
  print_out(
      "machine,tensor,engines,gpus,ttft_p90_ms,tpot_p90_ms,output_tokens_per_s,cache,limits\n");
  for (const serving::Choice& one : found) {
    print_out("{},{},{},{},{},{},{},{},\"{}\"\n", one.machine, one.tensor, one.replicas, one.gpus(),
              one.ttft_ms, one.tpot_ms, one.output_tokens_per_s, one.cache, verdict_of(one));
  }
}

int run_plan_serving(const PlanServingOptions& options) {
  for (const auto& limit : {options.ttft_ms, options.tpot_ms, options.cost}) {
    if (limit && !(*limit > 0)) throw UsageError{"limits and costs are more than 0"};
  }
  const std::string text = read_text_file(options.file);
  const auto scenario = read_serving_scenario(text, options.file, options.parameters);
  if (!scenario) throw UsageError{fmt::format("{}: no scenario with 'serving'", options.file)};
  print_error("{}", render(scenario->warnings, text));
  std::vector<Machine> machines;
  for (const std::string& name : options.machines) machines.push_back(changed_machine(name, {}));
  print_error("{}", serving::engine_note(scenario->serving));
  const auto found =
      serving::choices(scenario->serving, {options.ttft_ms, options.tpot_ms}, machines);
  if (options.csv) {
    print_csv(found);
  } else {
    print_table(found, options);
  }
  const bool any = !found.empty() && found.front().replicas > 0;
  if (any && !options.csv) {
    print_out("\n{} times: {}\n", found.front().replicas,
              serving::vllm_command(scenario->serving, found.front()));
  }
  return any ? kDone : kBadAnswer;
}

}  // namespace

void add_plan_serving_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<PlanServingOptions>();
  CLI::App& command = add_subcommand(
      app, "plan-serving", "The fewest GPUs that serve a scenario's requests within limits",
      "foretrace plan-serving hw/serving/chat_70b.yaml --machine 8xH100-SXM "
      "--machine 8xB200 --ttft-ms 500\n\n"
      "Engines get the requests in turn. Each layer is split over 1, 2, 4 or 8 GPUs of a node; of\n"
      "each as few engines as answer nine in ten requests within the limits, and are not "
      "overloaded.");
  command.add_option("file", options->file, "Scenario file with 'serving'")->required();
  command
      .add_option("--machine", options->machines, "May be given again, for several kinds of GPU")
      ->option_text("NAME");
  command.add_option("--ttft-ms", options->ttft_ms, "Most milliseconds to the first token, p90");
  command.add_option("--tpot-ms", options->tpot_ms, "Most milliseconds for each further one, p90");
  command.add_option("--cost-per-gpu-hour", options->cost,
                     "In any currency: adds what 10^6 output tokens cost");
  command.add_flag("--csv", options->csv, "Rows with commas");
  add_set_option(command, options->parameters);
  command.callback([options, &exit_code] { exit_code = run_plan_serving(*options); });
}

}  // namespace foretrace
