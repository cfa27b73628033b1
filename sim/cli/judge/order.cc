#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "reports/compare/order_check.h"
#include "reports/compare/run_scenario.h"
#include "reports/table/text_table.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/errors.h"
#include "sim/cli/commands.h"
#include "sim/cli/options.h"
#include "sim/cli/run_program.h"

namespace foretrace {
namespace {

constexpr std::uint64_t kMostOperations = 200'000;
constexpr std::size_t kMostShown = 20;

struct OrderCommandOptions {
  std::vector<std::filesystem::path> runs;
  std::filesystem::path scenario;
  ParameterValues parameters;
  OutputOptions output;
};

struct CheckedRun {
  std::filesystem::path file;
  std::string scenario;
  bool is_measured{};
  OrderCheck check;
  std::vector<std::string> violations;  ///< described: the program is gone by then
};

void check_run(const OrderCommandOptions& options, const std::filesystem::path& path,
               std::vector<CheckedRun>& all) {
  const Run run = load_run(path);
  const LoadedTimeline& any = run.predicted ? *run.predicted : *run.measured;
  const RunProgram of_run = program_of_run(any, options.scenario, options.parameters);
  if (of_run.simulated == Simulated::OneOfEach && of_run.program.processes > 1) {
    throw UsageError{fmt::format(
        "{}: simulated with --one-of-each, so what its ranks wait for is not in it\n"
        "  hint: foretrace simulate without --one-of-each",
        any.file.string())};
  }
  const Program& program = of_run.program;
  const HappensBefore order = happens_before(program, {.most_operations = kMostOperations});
  for (const auto* loaded : {&run.predicted, &run.measured}) {
    if (!*loaded) continue;
    check_same_program(program, **loaded);
    const Timeline& timeline = (*loaded)->timeline;
    CheckedRun& checked = all.emplace_back();
    checked.file = (*loaded)->file;
    checked.scenario = program.name;
    checked.is_measured = timeline.origin.measured;
    checked.check = check_order(program, order, timeline);
    for (const OrderViolation& violation : checked.check.violations) {
      checked.violations.push_back(describe(violation));
    }
  }
}

TextTable table_of(const std::vector<CheckedRun>& all) {
  TextTable table;
  table.column("scenario", TextTable::Align::Left);
  table.column("timeline", TextTable::Align::Left);
  for (const char* heading : {"spans", "in order", "undecided", "neighbours", "violations"}) {
    table.column(heading, TextTable::Align::Right);
  }
  for (const CheckedRun& c : all) {
    table.row({c.scenario, c.is_measured ? "measured" : "predicted", format_count(c.check.spans),
               format_count(c.check.held), format_count(c.check.undecided),
               format_count(c.check.neighbours), format_count(c.check.violations.size())});
  }
  return table;
}

std::string text_of(const std::vector<CheckedRun>& all) {
  std::string text = table_of(all).markdown();
  for (const CheckedRun& c : all) {
    if (!c.check.is_complete) {
      text += fmt::format("\n{}: only its first {} operations were followed.\n", c.file.string(),
                          format_count(kMostOperations));
    }
    if (c.violations.empty()) continue;
    text += fmt::format("\n{}:\n", c.file.string());
    for (std::size_t i = 0; i < std::min(c.violations.size(), kMostShown); ++i) {
      text += "  " + c.violations[i] + "\n";
    }
    if (c.violations.size() > kMostShown) {
      text += fmt::format("  and {} more\n", format_count(c.violations.size() - kMostShown));
    }
  }
  return text;
}

std::string json_of(const std::vector<CheckedRun>& all) {
  using Json = nlohmann::ordered_json;
  Json json{{"schema_version", 1}, {"kind", "order"}, {"timelines", Json::array()}};
  for (const CheckedRun& c : all) {
    Json row{{"file", c.file.string()},
             {"scenario", c.scenario},
             {"origin", c.is_measured ? "measured" : "predicted"},
             {"spans", c.check.spans},
             {"in_order", c.check.held},
             {"undecided", c.check.undecided},
             {"neighbours", c.check.neighbours},
             {"is_complete", c.check.is_complete},
             {"violations", Json::array()}};
    for (std::size_t i = 0; i < c.violations.size(); ++i) {
      const OrderViolation& violation = c.check.violations[i];
      row["violations"].push_back({{"by_ns", violation.by_ns},
                                   {"is_overlap", violation.is_overlap},
                                   {"process", violation.process},
                                   {"text", c.violations[i]}});
    }
    json["timelines"].push_back(std::move(row));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string render(const std::vector<CheckedRun>& all, OutputFormat format) {
  switch (format) {
    case OutputFormat::Json:
      return json_of(all);
    case OutputFormat::Csv:
      return table_of(all).csv();
    case OutputFormat::Text:
      break;
  }
  return text_of(all);
}

int run_order(const OrderCommandOptions& options) {
  std::vector<CheckedRun> all;
  for (const auto& path : options.runs) check_run(options, path, all);
  emit(options.output, render(all, options.output.format));
  const bool is_broken =
      std::ranges::any_of(all, [](const CheckedRun& c) { return !c.violations.empty(); });
  return is_broken ? kBadAnswer : kDone;
}

}  // namespace

void add_order_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<OrderCommandOptions>();
  CLI::App& command = add_subcommand(
      app, "order", "Check that timelines keep the order their programs guarantee; exit 1 if not",
      "foretrace order run/\n"
      "  foretrace order runs/* --format json\n\n"
      "spans: kernels and copies; in order: pairs of which the first had to end before the second "
      "began;\nundecided: closer together than the clocks of two GPUs agree; neighbours: "
      "consecutive on one stream.");
  command.add_option("runs", options->runs, "Run directories or timeline files")
      ->required()
      ->option_text("RUN/...");
  add_scenario_options(command, options->scenario, options->parameters);
  add_output_options(command, options->output);
  command.callback([options, &exit_code] { exit_code = run_order(*options); });
}

}  // namespace foretrace
