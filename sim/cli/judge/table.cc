#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "reports/table/row_table.h"
#include "reports/table/rule_table.h"
#include "reports/timeline/timeline_json.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/read/scenario.h"
#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/print.h"
#include "scenarios/base/text/text_file.h"
#include "sim/cli/commands.h"
#include "sim/cli/judge/marked_document.h"
#include "sim/cli/judge/predict_all.h"
#include "sim/cli/options.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

struct TableOptions {
  std::vector<fs::path> roots;
  std::string by = "rule";
  std::string machine = kDefaultMachine;
  std::vector<std::string> with;
  Fidelity fidelity = Fidelity::Flow;
  fs::path measured = "reports/measured";
  MarkedDocument document;
  OutputOptions output;

  bool by_rule() const { return by == "rule"; }
};

/// Without its warnings: they are `check`'s business.
Program read_quietly(const fs::path& file) {
  const std::string text = read_text_file(file);
  auto read = read_scenario(text, file.string());
  if (!read) throw UsageError{render(read.error(), text)};
  return std::move(read->program);
}

std::vector<Program> load_programs(const TableOptions& options) {
  std::vector<fs::path> files;
  for (const fs::path& named : options.roots) {
    const fs::path root = shipped_file(named);
    if (!fs::is_directory(root)) {
      throw UsageError{fmt::format("{}: no such directory", root.string())};
    }
    for (const auto& entry : fs::recursive_directory_iterator{root}) {
      if (entry.path().extension() == ".yaml") files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  std::vector<Program> programs;
  for (const fs::path& file : files) {
    Program program = read_quietly(file);
    const bool wanted = options.by_rule() ? !program.rule.empty() : has_row_tag(program);
    if (wanted) programs.push_back(std::move(program));
  }
  return programs;
}

/// The measurement of x.yaml is in MEASURED/x/.
std::optional<Timeline> load_measured(const TableOptions& options, const Program& program) {
  const fs::path file = options.measured / fs::path{program.file}.stem() / kMeasuredFile;
  if (!fs::is_regular_file(file)) return std::nullopt;
  return read_timeline(file);
}

JudgedSide judge_measured(const Program& program, const std::optional<Timeline>& measured) {
  JudgedSide side;
  if (!measured) return side;
  side.state = JudgedSide::State::Stale;
  if (measured->origin.program_hash != program.hash) return side;
  side.state = JudgedSide::State::Judged;
  for (const Expectation& expectation : program.expectations) {
    side.held.push_back(judge(expectation, *measured).held);
  }
  return side;
}

std::vector<RegionRow> compared_regions(const Prediction& prediction, const Timeline& measured) {
  auto rows = compare_regions(prediction.regions, measured, 0);
  std::erase_if(rows, [](const RegionRow& row) { return !row.first || !row.second; });
  return rows;
}

std::vector<ScenarioResult> evaluate(const TableOptions& options) {
  const std::vector<Program> programs = load_programs(options);
  const auto predictions =
      predict_all(programs, changed_machine(options.machine, options.with), options.fidelity);

  std::vector<ScenarioResult> results;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    ScenarioResult result{.program = programs[i], .predicted = {}, .measured = {}, .regions = {}};
    const auto measured = load_measured(options, result.program);
    result.measured = judge_measured(result.program, measured);
    if (predictions[i]) {
      result.predicted = {JudgedSide::State::Judged, predictions[i]->held};
      if (result.measured.state == JudgedSide::State::Judged) {
        result.regions = compared_regions(*predictions[i], *measured);
      }
    }
    results.push_back(std::move(result));
  }
  return results;
}

std::string render_results(const TableOptions& options,
                           const std::vector<ScenarioResult>& results) {
  switch (options.output.format) {
    case OutputFormat::Json:
      return options.by_rule() ? rule_json(results) : row_json(results);
    case OutputFormat::Csv:
      return options.by_rule() ? rule_csv(results) : row_csv(results);
    case OutputFormat::Text:
      break;
  }
  return options.by_rule() ? rule_text(results) : row_text(results);
}

/// Every expectation that does not hold, and every scenario that states none. True when there are
/// any.
bool print_broken(const std::vector<ScenarioResult>& results) {
  bool any = false;
  for (const ScenarioResult& result : results) {
    if (result.program.expectations.empty()) {
      any = true;
      print_error("{}: states nothing: it has no 'expect:'\n", result.program.file);
    }
    for (const auto& [side, origin] :
         {std::pair{&result.predicted, "predicted"}, std::pair{&result.measured, "measured"}}) {
      for (std::size_t i = 0; i < side->held.size(); ++i) {
        if (side->held[i] != Held::No) continue;
        any = true;
        const Expectation& expectation = result.program.expectations[i];
        print_error("{}:{}: broken in the {} timeline: {}\n", result.program.file, expectation.line,
                    origin, describe(expectation));
      }
    }
  }
  return any;
}

MarkedText table_text(const TableOptions& options, const std::vector<ScenarioResult>& results) {
  return {.name = options.by_rule() ? "rules" : "rows",
          .what = options.by_rule() ? "the table by rule" : "the table by tag",
          .command =
              fmt::format("foretrace table {} --by {}", options.roots.front().string(), options.by),
          .text = [&](const fs::path& folder) {
            return options.by_rule() ? rule_text(results, folder) : row_summary(results, folder);
          }};
}

int run_table(const TableOptions& options) {
  const std::vector<ScenarioResult> results = evaluate(options);
  int exit_code = kDone;
  if (options.document.is_given()) {
    exit_code = write_or_check(options.document, table_text(options, results));
  } else {
    emit(options.output, render_results(options, results));
  }
  return print_broken(results) ? kBadAnswer : exit_code;
}

}  // namespace

void add_table_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<TableOptions>();
  CLI::App& command = add_subcommand(
      app, "table",
      "The tables over all scenarios: which rules hold, and how exact the predictions are",
      "foretrace table scenarios/conformance --by rule\n"
      "  foretrace table scenarios --by tag --format csv");
  command.add_option("DIR", options->roots, "Where to look for scenarios")->required();
  command
      .add_option("--by", options->by,
                  "rule: scenarios that state one, and whether it holds; tag: the rows A1 ... E9, "
                  "whether what they state holds, and their regions' errors")
      ->check(CLI::IsMember({"rule", "tag"}))
      ->capture_default_str();
  add_machine_option(command, options->machine);
  add_with_option(command, options->with);
  add_host_option(command, options->with);
  command
      .add_option("--measured", options->measured,
                  "Where the measured timelines are: of x.yaml in DIR/x/")
      ->capture_default_str()
      ->option_text("DIR");
  add_marked_document(command, options->document, "the table");
  add_fidelity_option(command, options->fidelity);
  add_output_options(command, options->output);
  command.callback([options, &exit_code] { exit_code = run_table(*options); });
}

}  // namespace foretrace
