#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "reports/timeline/write_file.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/print.h"
#include "scenarios/base/text/text_file.h"
#include "scenarios/read/scenario.h"
#include "sim/applications/serving/answers.h"
#include "sim/applications/serving/predict.h"
#include "sim/cli/commands.h"
#include "sim/cli/options.h"
#include "sim/cli/plan/asked_traffic.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

struct PlanServingOptions {
  std::vector<std::string> asked;  ///< files, or models
  std::vector<std::string> machines{kDefaultMachine};
  std::optional<double> ttft_ms, tpot_ms;
  std::vector<std::string> costs;
  AskedTraffic traffic;
  ParameterValues parameters;
  std::vector<fs::path> outputs;
  std::vector<std::pair<std::size_t, std::string>> written;  ///< row, file
  bool csv = false;
};

/// "2.5", or of one machine "8xB200=6".
std::map<std::string, double> costs_of(const std::vector<std::string>& texts) {
  constexpr double kMostCost = 1e15;
  std::map<std::string, double> costs;
  for (const std::string& text : texts) {
    const auto equals = text.rfind('=');
    const std::string machine = equals == std::string::npos ? "" : text.substr(0, equals);
    const std::string number = equals == std::string::npos ? text : text.substr(equals + 1);
    double cost = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), cost);
    if (error != std::errc{} || end != number.data() + number.size() ||
        !(cost > 0 && cost < kMostCost)) {
      throw UsageError{
          fmt::format("--cost-per-gpu-hour {}: a number above 0, or MACHINE=NUMBER", text)};
    }
    costs[machine] = cost;
  }
  return costs;
}

bool is_file_of(const std::string& asked) {
  std::error_code none;
  return asked.ends_with(".yaml") || asked.ends_with(".yml") ||
         (!asked.ends_with(".json") && fs::is_regular_file(asked, none));
}

serving::Serving read_asked(const PlanServingOptions& options, const std::string& asked) {
  const bool is_file = is_file_of(asked);
  if (is_file && !options.traffic.is_empty()) {
    throw UsageError{fmt::format(
        "{}: --rate, --prompt, --output and --precision are for a model's name: the file says them",
        asked)};
  }
  const std::string text =
      is_file ? read_text_file(asked) : scenario_of(asked, options.traffic, 1, 1);
  const auto scenario = read_serving_scenario(text, asked, options.parameters);
  if (!scenario) throw UsageError{fmt::format("{}: no scenario with 'serving'", asked)};
  const serving::Layout& layout = scenario->serving.layout;
  if (scenario->serving.apart || layout.data > 1 || layout.expert > 1 || layout.pipeline > 1) {
    throw UsageError{fmt::format(
        "{}: 'disaggregated', 'data', 'expert' and 'pipeline' are not searched: engines "
        "are laid out by 'tensor' and 'replicas' here; 'foretrace simulate' takes the file",
        asked)};
  }
  print_error("{}", render(scenario->warnings, text));
  print_error("{}", serving::engine_note(scenario->serving));
  return scenario->serving;
}

/// Rows as scenarios, with their engines.
void write_scenarios(const PlanServingOptions& options,
                     const std::vector<serving::Planned>& planned) {
  for (const auto& [row, file] : options.written) {
    std::size_t first = 0, index = 0;
    while (index < planned.size() && row > first + planned[index].choices.size()) {
      first += planned[index++].choices.size();
    }
    if (row == 0 || index == planned.size()) {
      throw UsageError{fmt::format("--write-scenario {} {}: there is no such row", row, file)};
    }
    const serving::Choice& choice = planned[index].choices[row - first - 1];
    if (choice.replicas == 0) {
      throw UsageError{fmt::format("--write-scenario {} {}: {}", row, file, verdict_of(choice))};
    }
    const std::string text =
        scenario_of(options.asked[index], options.traffic, choice.tensor, choice.replicas);
    write_file(file, text);
    print_out("wrote {}: foretrace simulate {} --machine {}\n", file, file, choice.machine);
  }
}

int run_plan_serving(const PlanServingOptions& options) {
  for (const auto& limit : {options.ttft_ms, options.tpot_ms}) {
    if (limit && !(*limit > 0)) throw UsageError{"limits are more than 0"};
  }
  for (const auto& [row, file] : options.written) {
    if (!std::ranges::any_of(options.asked, is_file_of)) continue;
    throw UsageError{fmt::format(
        "--write-scenario {} {}: for a model's name; of a file set 'parallel' and 'replicas' in it",
        row, file)};
  }
  const serving::Asked asked{{options.ttft_ms, options.tpot_ms}, costs_of(options.costs)};
  std::vector<fs::path> results = options.outputs;
  for (const auto& [row, file] : options.written) results.emplace_back(file);
  check_outputs(results);
  std::vector<serving::Planned> planned;
  for (const std::string& one : options.asked) planned.push_back({read_asked(options, one), {}});
  std::vector<Machine> machines;
  for (const std::string& name : options.machines) machines.push_back(changed_machine(name, {}));
  for (const auto& [name, cost] : asked.cost) {
    if (name.empty() || std::ranges::count(machines, name, &Machine::name) > 0) continue;
    throw UsageError{
        fmt::format("--cost-per-gpu-hour {}={:g}: no such --machine is asked", name, cost)};
  }
  const bool with_loads = std::ranges::any_of(
      options.outputs, [](const fs::path& file) { return file.extension() != ".csv"; });
  for (serving::Planned& one : planned) {
    one.choices = serving::choices(one.serving, asked.limits, machines, with_loads);
  }
  print_error("{}", rests_notes(planned));
  print_text(options.csv ? csv_of(asked, planned) : text_of(asked, planned));
  for (const fs::path& file : options.outputs) {
    const auto extension = file.extension();
    write_file(file, extension == ".html"   ? page_of(asked, planned)
                     : extension == ".json" ? json_of(asked, planned)
                                            : csv_of(asked, planned));
  }
  write_scenarios(options, planned);
  const bool all = std::ranges::all_of(planned, [](const serving::Planned& one) {
    return !one.choices.empty() && one.choices.front().replicas > 0;
  });
  return all ? kDone : kBadAnswer;
}

}  // namespace

void add_plan_serving_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<PlanServingOptions>();
  CLI::App& command = add_subcommand(
      app, "plan-serving", "The fewest GPUs that serve requests within limits",
      "foretrace plan-serving llama3-70b --rate 20/s --prompt 2000 --output 300 --machine "
      "8xH100-SXM --machine 8xB200 --ttft-ms 500 -o plan.html\n"
      "  foretrace plan-serving hw/serving/chat_70b.yaml --machine 8xB200 --ttft-ms 500\n\n"
      "Engines get the requests in turn. Each layer is split over 1, 2, 4 or 8 GPUs of a node; of\n"
      "each as few engines as answer nine in ten requests within the limits, and are not "
      "overloaded.");
  command
      .add_option("asked", options->asked,
                  "Scenario files with 'serving'; or models, as llama3-70b or a config.json, with "
                  "the requests below")
      ->required()
      ->option_text("FILE|MODEL");
  command
      .add_option("--machine", options->machines, "May be given again, for several kinds of GPU")
      ->option_text("NAME")
      ->allow_extra_args(false);
  command.add_option("--ttft-ms", options->ttft_ms, "Most milliseconds to the first token, p90");
  command.add_option("--tpot-ms", options->tpot_ms, "Most milliseconds for each further one, p90");
  command.add_option("--rate", options->traffic.rate, "Of a model: requests, as 20/s or 30/min");
  command.add_option("--prompt", options->traffic.prompt, "Tokens of a prompt, in the mean");
  command.add_option("--output", options->traffic.output, "Tokens of an answer, in the mean");
  command.add_option("--engine", options->traffic.engine, "Of a model: vllm, sglang, tensorrt-llm")
      ->check(CLI::IsMember({"vllm", "sglang", "tensorrt-llm", "foretrace"}).description(""))
      ->capture_default_str();
  command
      .add_option("--precision", options->traffic.precision,
                  "Of a model's products: bfloat16, float8, nvfp4, or int4 of weights alone")
      ->check(CLI::IsMember({"bfloat16", "float8", "nvfp4", "int4"}).description(""));
  command
      .add_option("--cost-per-gpu-hour", options->costs,
                  "In any currency, of all machines or of one (8xB200=6): adds what 10^6 output "
                  "tokens cost; may be repeated")
      ->option_text("[MACHINE=]NUMBER")
      ->allow_extra_args(false);
  command
      .add_option("-o", options->outputs,
                  "FILE.html is a page with throughput against time per token, FILE.json and "
                  "FILE.csv have every figure; may be repeated")
      ->check(written_file({".html", ".json", ".csv"}), "")
      ->option_text("FILE")
      ->allow_extra_args(false);
  command
      .add_option("--write-scenario", options->written,
                  "Of a model: write a row's scenario, which simulate predicts and hw/serving "
                  "measures; may be repeated")
      ->option_text("ROW FILE")
      ->allow_extra_args(false);
  command.add_flag("--csv", options->csv, "Rows with commas");
  add_set_option(command, options->parameters);
  command.callback([options, &exit_code] { exit_code = run_plan_serving(*options); });
}

}  // namespace foretrace
