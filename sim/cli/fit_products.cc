#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/cost/products/choice.h"
#include "models/machine/machine.h"
#include "models/products/learned.h"
#include "reports/table/text_table.h"
#include "reports/timeline/write_file.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/print.h"
#include "sim/applications/fit_products/fit.h"
#include "sim/applications/fit_products/heuristic.h"
#include "sim/applications/fit_products/report.h"
#include "sim/applications/fit_products/residual.h"
#include "sim/cli/commands.h"
#include "sim/cli/options.h"

namespace foretrace {
namespace {

struct ProductOptions {
  std::vector<std::string> tables;
  std::string machine = kDefaultMachine;
  std::string choices;
  std::string heuristic_to;
  std::vector<std::string> residuals;
  std::string residuals_to;
  bool with_tiles = false;
  bool judge = false;
  bool float32 = false;
  bool older_half = false;
  bool straddle = false;
  OutputFormat format = OutputFormat::Text;

  bool is_text() const { return format == OutputFormat::Text; }
  fit_products::Part part() const {
    using enum fit_products::Part;
    if (float32) return Float32;
    if (older_half) return OlderHalf;
    return straddle ? Straddle : All;
  }
};

std::vector<fit_products::Row> part_of(const std::vector<fit_products::Row>& rows, bool judges) {
  std::vector<fit_products::Row> result;
  std::ranges::copy_if(rows, std::back_inserter(result),
                       [&](const fit_products::Row& row) { return row.judges == judges; });
  return result;
}

using nlohmann::ordered_json;

/// The rows of all lists, with the list's name first.
std::string lists_csv(const ordered_json& lists) {
  std::vector<std::string> columns;
  for (const ordered_json& list : lists) {
    for (const ordered_json& row : list) {
      for (const auto& [key, value] : row.items()) {
        if (std::ranges::find(columns, key) == columns.end()) columns.push_back(key);
      }
    }
  }
  std::string text = "list";
  for (const std::string& column : columns) text += "," + csv_cell(column);
  text += "\n";
  for (const auto& [name, list] : lists.items()) {
    for (const ordered_json& row : list) {
      text += csv_cell(name);
      for (const std::string& column : columns) {
        const ordered_json value = row.value(column, ordered_json{});
        text += "," + csv_cell(value.is_string() ? value.get<std::string>()
                               : value.is_null() ? ""
                                                 : value.dump());
      }
      text += "\n";
    }
  }
  return text;
}

/// `lists`: by name, each of rows with the same keys.
void print_data(const ProductOptions& options, const std::string& machine,
                const ordered_json& lists) {
  if (options.format == OutputFormat::Csv) {
    print_text(lists_csv(lists));
    return;
  }
  ordered_json all{{"kind", "foretrace fit-products"},
                   {"schema_version", 1},
                   {"producer", "foretrace " FORETRACE_VERSION}};
  if (!machine.empty()) all["machine"] = machine;
  all.update(lists);
  print_text(all.dump(1) + "\n");
}

using LearnedFiles = std::map<std::filesystem::path, std::string>;

/// Before hours of work. Throws UsageError.
void check_directory(const std::string& directory) {
  if (directory.empty() || std::filesystem::is_directory(directory)) return;
  throw UsageError{fmt::format("{}: no such directory", directory)};
}

/// All of them, or nothing where one of them learned nothing or no number.
void write_all(const LearnedFiles& files) {
  for (const auto& [file, text] : files) {
    if (text.find("nan") == std::string::npos && text.find("inf") == std::string::npos) continue;
    throw UsageError{
        fmt::format("{}: what was learned is no number; nothing is written", file.string())};
  }
  for (const auto& [file, text] : files) write_file(file, text, Over::Anything);
}

LearnedFiles heuristic_files(const products::Heuristics& heuristics, const std::string& directory,
                             const std::string& by) {
  LearnedFiles files;
  for (const auto& [family, heuristic] : heuristics) {
    files[std::filesystem::path{directory} / (products::name_of(family) + ".json")] =
        text_of(heuristic, by);
  }
  return files;
}

/// Each family by itself, some of them at once.
int learn_from_choices(const ProductOptions& options) {
  check_directory(options.heuristic_to);
  const auto choices = fit_products::read_choices(options.choices);
  const Machine machine = load_machine(options.machine);
  Reading read{machine};
  const double sms = read.value(Param::SmCount);
  std::map<products::Family, std::future<fit_products::Learned>> all;
  for (const auto& known : products::recorded_heuristics()) {
    all[known.first] = std::async(std::launch::async, [&choices, &known, sms] {
      return fit_products::learn_heuristic(known.first, choices, known.second, sms);
    });
  }
  products::Heuristics heuristics;
  ordered_json rows = ordered_json::array();
  if (options.is_text()) {
    print_out("{:12} {:>6} {:>8} {:>8} {:>9} {:>7} {:>9}\n", "family", "tiles", "learned", "judged",
              "left out", "right", "time off");
  }
  for (auto& [family, future] : all) {
    fit_products::Learned learned = future.get();
    rows.push_back({{"family", products::name_of(family)},
                    {"tiles", learned.heuristic.tiles.size()},
                    {"learned", learned.learned_from},
                    {"judged", learned.judged},
                    {"left_out", learned.left_out},
                    {"right", learned.right},
                    {"time_off", learned.off}});
    if (options.is_text()) {
      print_out("{:12} {:6} {:8} {:8} {:9} {:5.1f} % {:7.1f} %\n", products::name_of(family),
                learned.heuristic.tiles.size(), learned.learned_from, learned.judged,
                learned.left_out, learned.right * 100, learned.off * 100);
    }
    if (learned.learned_from == 0) {
      throw UsageError{fmt::format("{}: too few products of {} to learn from; nothing is written",
                                   options.choices, products::name_of(family))};
    }
    heuristics[family] = std::move(learned.heuristic);
  }
  if (!options.is_text()) print_data(options, machine.name, {{"families", rows}});
  if (!options.heuristic_to.empty()) {
    write_all(
        heuristic_files(heuristics, options.heuristic_to, "--choices: what cuBLAS 13.1 chooses"));
  }
  return 0;
}

/// "h100-nvswitch-8=h100.csv", and so on.
std::vector<fit_products::Timed> timed_rows(const std::vector<std::string>& tables) {
  std::map<std::string, fit_products::Timed> by_machine;
  for (const std::string& text : tables) {
    const std::size_t at = text.find('=');
    if (at == std::string::npos || at == 0 || at + 1 == text.size()) {
      throw UsageError{fmt::format(
          "--residuals {}: a machine and its table, as h200-nvswitch-8=h200.csv", text)};
    }
    const std::string machine = text.substr(0, at);
    const auto [found, is_new] = by_machine.try_emplace(machine);
    if (is_new) found->second.machine = load_machine(machine);
    const auto rows = fit_products::read_table(text.substr(at + 1));
    found->second.rows.insert(found->second.rows.end(), rows.begin(), rows.end());
  }
  std::vector<fit_products::Timed> timed;
  for (auto& [name, one] : by_machine) timed.push_back(std::move(one));
  return timed;
}

int learn_residuals(const ProductOptions& options) {
  check_directory(options.residuals_to);
  const auto timed = timed_rows(options.residuals);
  LearnedFiles files;
  ordered_json rows = ordered_json::array();
  if (options.is_text()) {
    print_out("{:12} {:>8} {:>8}  {:>16} {:>16}\n", "kernels", "learned", "judged", "before",
              "after");
  }
  for (const auto& learned : fit_products::learn_residuals(timed)) {
    rows.push_back({{"kernels", learned.name},
                    {"learned", learned.learned_from},
                    {"judged", learned.judged},
                    {"before", learned.before},
                    {"before_90", learned.before_90},
                    {"after", learned.after},
                    {"after_90", learned.after_90}});
    if (options.is_text()) {
      print_out("{:12} {:8} {:8}  {:5.1f} %, {:5.1f} % {:5.1f} %, {:5.1f} %\n", learned.name,
                learned.learned_from, learned.judged, learned.before * 100, learned.before_90 * 100,
                learned.after * 100, learned.after_90 * 100);
    }
    if (learned.learned_from == 0) {
      throw UsageError{fmt::format(
          "--residuals: no product of {} to learn from; nothing is written", learned.name)};
    }
    files[std::filesystem::path{options.residuals_to} / (learned.name + ".json")] = text_of(
        learned.residual, "--residuals: what cuBLAS 13.1's kernels take beside the formula");
  }
  if (!options.is_text()) print_data(options, "", {{"residuals", rows}});
  if (!options.residuals_to.empty()) write_all(files);
  return 0;
}

int fit_from_table(const ProductOptions& options) {
  if (!options.residuals.empty()) return learn_residuals(options);
  if (!options.choices.empty()) return learn_from_choices(options);
  if (options.tables.empty()) throw UsageError{"a table is needed, or --choices, or --residuals"};
  if (!options.heuristic_to.empty() && !options.with_tiles) {
    throw UsageError{"--heuristic-to needs --choices or --tiles: nothing else learns a heuristic"};
  }
  check_directory(options.heuristic_to);
  std::vector<fit_products::Row> rows;
  for (const std::string& table : options.tables) {
    const auto more = fit_products::read_table(table);
    if (!options.judge && !more.empty() && more.front().quick) {
      throw UsageError{fmt::format(
          "{}: a list of --quick, which says nothing of clock and power: for --residuals, "
          "or --judge",
          table)};
    }
    if (more.empty()) throw UsageError{table + ": no row of a product in it"};
    rows.insert(rows.end(), more.begin(), more.end());
  }
  const Machine machine = load_machine(options.machine);
  if (options.judge) {
    const auto errors = [&](bool judges) {
      return fit_products::errors_of(machine, products::recorded_heuristics(),
                                     part_of(rows, judges));
    };
    if (!options.is_text()) {
      print_data(options, machine.name,
                 {{"learned_from", fit_products::errors_json(errors(false))},
                  {"held_out", fit_products::errors_json(errors(true))}});
      return 0;
    }
    for (const bool judges : {false, true}) {
      print_out("{} rows, as the machine file has it\n{}", judges ? "held out" : "learned from",
                fit_products::errors_text(errors(judges)));
    }
    return 0;
  }
  const std::vector<fit_products::Row> learned = part_of(rows, false);
  const auto fit = [&](const std::vector<fit_products::Row>& part) {
    return fit_products::fit(machine, products::recorded_heuristics(), part, options.part(),
                             options.with_tiles);
  };
  const auto folds = fit_products::cross_validated(learned, fit);
  if (options.is_text()) {
    print_out("# five folds, each predicted from the other four\n{}",
              fit_products::errors_text(folds));
  }
  const fit_products::Fit result = fit(learned);
  if (!options.is_text()) {
    print_data(options, machine.name,
               {{"cross_validated", fit_products::errors_json(folds)},
                {"parameters", fit_products::parameters_json(result)}});
  } else {
    print_out("# for the machine file\n{}", fit_products::parameters_text(result));
  }
  if (!options.heuristic_to.empty()) {
    write_all(heuristic_files(result.heuristics, options.heuristic_to,
                              "--tiles, and --choices before it"));
  }
  return 0;
}

}  // namespace

void add_fit_products_command(CLI::App& app, int& exit_code) {
  CLI::App* command = &add_subcommand(
      app, "fit-products",
      "Parameters of matrix products from a table that foretrace-hw products wrote",
      "foretrace fit-products reports/measured/products/h200.csv.gz --machine h200-nvswitch-8");
  const auto options = std::make_shared<ProductOptions>();
  CLI::Option* tables =
      command->add_option("tables", options->tables, "products.csv; several of one kind of GPU");
  CLI::Option* machine =
      command->add_option("-m,--machine", options->machine, "to start from")->capture_default_str();
  CLI::Option* choices = command->add_option("--choices", options->choices,
                                             "learn which plans the library chooses, from a list "
                                             "that foretrace-hw products --choices-only "
                                             "wrote (minutes, 2 GB)");
  CLI::Option* residuals = command->add_option(
      "--residuals", options->residuals,
      "learn what kernels take beside the formula, from tables of several machines: MACHINE=TABLE");
  CLI::Option* residuals_to =
      command->add_option("--residuals-to", options->residuals_to,
                          "directory for what was learned of it: models/products/residual");
  CLI::Option* heuristic_to = command->add_option(
      "--heuristic-to", options->heuristic_to,
      "directory for what --choices or --tiles learned: models/products/heuristic");
  CLI::Option* tiles = command->add_flag("--tiles", options->with_tiles,
                                         "learn how slow each tile of the older kernels is, too");
  CLI::Option* float32 = command->add_flag("--float32", options->float32,
                                           "only float32's kernels and speeds; the rest stays");
  CLI::Option* older =
      command->add_flag("--older-half", options->older_half,
                        "only half precision whose leading dimensions are no whole 16 bytes");
  CLI::Option* straddle = command->add_flag("--straddle", options->straddle,
                                            "of nvjet only products.half.straddle; the rest stays");
  CLI::Option* judge =
      command->add_flag("--judge", options->judge,
                        "fit nothing: errors of the machine file as it is, held-out rows apart");
  add_format_option(*command, options->format, "tables, and lines of a machine file");
  residuals_to->needs(residuals);
  for (CLI::Option* other :
       {tables, choices, machine, heuristic_to, tiles, float32, older, straddle, judge}) {
    residuals->excludes(other);
  }
  for (CLI::Option* other : {tables, tiles, float32, older, straddle, judge}) {
    choices->excludes(other);
  }
  for (CLI::Option* other : {tiles, float32, older, straddle, heuristic_to}) judge->excludes(other);
  float32->excludes(older)->excludes(straddle);
  older->excludes(straddle);
  command->callback([options, &exit_code] { exit_code = fit_from_table(*options); });
}

}  // namespace foretrace
