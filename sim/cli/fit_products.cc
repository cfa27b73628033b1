#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "scenarios/command_line/command.h"
#include "scenarios/text/print.h"
#include "sim/cli/commands.h"
#include "sim/fit_products/fit.h"
#include "sim/fit_products/report.h"

namespace foretrace {
namespace {

struct ProductOptions {
  std::vector<std::string> tables;
  std::string machine = "h200-nvswitch-8";
  bool with_taste = false;
  bool judge = false;
  bool float32 = false;
  bool older_half = false;
  bool straddle = false;

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

int fit_from_table(const ProductOptions& options) {
  std::vector<fit_products::Row> rows;
  for (const std::string& table : options.tables) {
    const auto more = fit_products::read_table(table);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  const Machine machine = load_machine(options.machine);
  if (options.judge) {
    for (const bool judges : {false, true}) {
      print_out("{} rows, as the machine file has it\n{}", judges ? "held out" : "learned from",
                fit_products::errors_text(fit_products::errors_of(
                    machine, products::recorded_tastes(), part_of(rows, judges))));
    }
    return 0;
  }
  const std::vector<fit_products::Row> learned = part_of(rows, false);
  const auto fit = [&](const std::vector<fit_products::Row>& part) {
    return fit_products::fit(machine, products::recorded_tastes(), part, options.part(),
                             options.with_taste);
  };
  print_out("# five folds, each predicted from the other four\n{}",
            fit_products::errors_text(fit_products::cross_validated(learned, fit)));
  const fit_products::Fit result = fit(learned);
  print_out("# for the machine file\n{}", fit_products::parameters_text(result));
  if (options.with_taste) {
    print_out("# for models/cost/products/taste.cc\n{}", fit_products::taste_text(result.tastes));
  }
  return 0;
}

}  // namespace

void add_fit_products_command(CLI::App& app, int& exit_code) {
  CLI::App* command = &add_subcommand(
      app, "fit-products",
      "Parameters of matrix products from a table that foretrace-hw products wrote",
      "foretrace fit-products reports/measured/products/h200.csv --machine h200-nvswitch-8");
  const auto options = std::make_shared<ProductOptions>();
  command->add_option("tables", options->tables, "products.csv; several of one kind of GPU")
      ->required();
  command->add_option("--machine", options->machine, "to start from")->capture_default_str();
  command->add_flag("--taste", options->with_taste,
                    "learn which tiles the library likes, too (models/cost/products/taste.cc)");
  command->add_flag("--float32", options->float32,
                    "only float32's kernels, speeds and taste; the rest stays");
  command
      ->add_flag("--older-half", options->older_half,
                 "only half precision whose leading dimensions are no whole 16 bytes")
      ->excludes("--float32");
  command
      ->add_flag("--straddle", options->straddle,
                 "of nvjet only products.half.straddle, and its taste; the rest stays")
      ->excludes("--float32")
      ->excludes("--older-half");
  command->add_flag("--judge", options->judge,
                    "fit nothing: errors of the machine file as it is, held-out rows apart");
  command->callback([options, &exit_code] { exit_code = fit_from_table(*options); });
}

}  // namespace foretrace
