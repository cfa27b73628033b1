#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "reports/compare/run_scenario.h"
#include "reports/judge/expectations.h"
#include "reports/table/text_table.h"
#include "scenarios/base/command_line/command.h"
#include "sim/cli/commands.h"
#include "sim/cli/options.h"
#include "sim/cli/run_program.h"

namespace foretrace {
namespace {

struct AssertOptions {
  std::filesystem::path run;
  std::filesystem::path scenario;
  ParameterValues parameters;
  OutputOptions output;
};

/// A timeline under judgement and its verdicts, one per expectation.
struct Judged {
  std::string origin;
  std::vector<Verdict> verdicts;
};

std::string word(Held held) {
  return held == Held::Yes         ? "holds"
         : held == Held::No        ? "BROKEN"
         : held == Held::Elsewhere ? "-"
                                   : "undecided";
}

Judged judge_all(const Program& program, const LoadedTimeline& loaded) {
  check_same_program(program, loaded);
  Judged judged{loaded.timeline.origin.measured ? "measured" : "predicted", {}};
  for (const Expectation& expectation : program.expectations) {
    judged.verdicts.push_back(judge(expectation, loaded.timeline));
  }
  return judged;
}

TextTable table_of(const Program& program, const std::vector<Judged>& origins) {
  TextTable table;
  table.column("expectation", TextTable::Align::Left);
  table.column("line", TextTable::Align::Right);
  for (const Judged& judged : origins) {
    table.column(judged.origin, TextTable::Align::Left);
    table.column(judged.origin + " found", TextTable::Align::Left);
  }
  for (std::size_t i = 0; i < program.expectations.size(); ++i) {
    const Expectation& expectation = program.expectations[i];
    std::vector<std::string> cells{describe(expectation), fmt::format("{}", expectation.line)};
    for (const Judged& judged : origins) {
      cells.push_back(word(judged.verdicts[i].held));
      cells.push_back(judged.verdicts[i].found);
    }
    table.row(std::move(cells));
  }
  return table;
}

std::string json_of(const Program& program, const std::vector<Judged>& origins) {
  using Json = nlohmann::ordered_json;
  Json json{{"schema_version", 1},
            {"kind", "assertions"},
            {"scenario", program.name},
            {"program_hash", program.hash},
            {"expectations", Json::array()}};
  for (std::size_t i = 0; i < program.expectations.size(); ++i) {
    const Expectation& expectation = program.expectations[i];
    Json row{{"kind", expectation.kind},
             {"line", expectation.line},
             {"expectation", describe(expectation)}};
    for (const Judged& judged : origins) {
      row[judged.origin] = {{"verdict", word(judged.verdicts[i].held)},
                            {"found", judged.verdicts[i].found}};
    }
    json["expectations"].push_back(std::move(row));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string text_of(const Program& program, const std::vector<Judged>& origins) {
  if (program.expectations.empty()) {
    return fmt::format("{} states no expectations.\n", program.name);
  }
  return fmt::format("{} ({})\n\n{}", program.name, program.file,
                     table_of(program, origins).markdown());
}

std::string render(const Program& program, const std::vector<Judged>& origins,
                   OutputFormat format) {
  switch (format) {
    case OutputFormat::Json:
      return json_of(program, origins);
    case OutputFormat::Csv:
      return table_of(program, origins).csv();
    case OutputFormat::Text:
      break;
  }
  return text_of(program, origins);
}

int run_assert(const AssertOptions& options) {
  const Run loaded = load_run(options.run);
  const LoadedTimeline& any = loaded.predicted ? *loaded.predicted : *loaded.measured;
  const Program program = program_of_run(any, options.scenario, options.parameters).program;
  std::vector<Judged> origins;
  if (loaded.predicted) origins.push_back(judge_all(program, *loaded.predicted));
  if (loaded.measured) origins.push_back(judge_all(program, *loaded.measured));
  emit(options.output, render(program, origins, options.output.format));
  const bool broken = std::ranges::any_of(origins, [](const Judged& judged) {
    return std::ranges::any_of(judged.verdicts,
                               [](const Verdict& v) { return v.held == Held::No; });
  });
  return broken ? kBadAnswer : kDone;
}

}  // namespace

void add_assert_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<AssertOptions>();
  CLI::App& command = add_subcommand(
      app, "assert",
      "Judge the scenario's expectations on what is there; exit 1 when one is broken",
      "foretrace assert run/\n"
      "  foretrace assert run/ --scenario scenarios/examples/prefetch_two_streams.yaml");
  command.add_option("run", options->run, "A run directory or a timeline file")
      ->required()
      ->option_text("RUN/");
  add_scenario_options(command, options->scenario, options->parameters);
  add_output_options(command, options->output);
  command.callback([options, &exit_code] { exit_code = run_assert(*options); });
}

}  // namespace foretrace
