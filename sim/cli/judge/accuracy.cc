#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "reports/accuracy/blind_round.h"
#include "reports/accuracy/page.h"
#include "reports/compare/compare.h"
#include "reports/compare/run_files.h"
#include "reports/compare/run_scenario.h"
#include "reports/timeline/timeline_json.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/print.h"
#include "scenarios/read/scenario.h"
#include "sim/applications/transfer/transfer.h"
#include "sim/cli/commands.h"
#include "sim/cli/judge/marked_document.h"
#include "sim/cli/judge/predict_all.h"
#include "sim/cli/judge/term_rent.h"
#include "sim/cli/options.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

struct AccuracyOptions {
  fs::path blind = "reports/blind";
  fs::path measured = "reports/measured";
  std::string machine = kDefaultMachine;
  std::vector<std::string> with, without;
  fs::path terms;     ///< empty: no table of them
  fs::path transfer;  ///< a public table; empty: none
  fs::path output;
  std::string format;  ///< empty: as `output` ends
  MarkedDocument document;
  bool blind_only = false;
};

/// Every DIR/NAME/measured.timeline.json whose scenario is still the same program.
struct MeasuredScenarios {
  std::vector<Program> programs;
  std::vector<LoadedTimeline> timelines;
};

MeasuredScenarios load_measured_scenarios(const fs::path& directory) {
  if (!fs::is_directory(directory)) {
    throw UsageError{fmt::format("{}: no such directory", directory.string())};
  }
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator{directory}) {
    fs::path file = entry.path() / kMeasuredFile;
    if (fs::is_regular_file(file)) files.push_back(std::move(file));
  }
  std::ranges::sort(files);
  MeasuredScenarios found;
  for (const fs::path& file : files) {
    LoadedTimeline loaded{file, read_timeline(file)};
    Program program = load_scenario(find_scenario(loaded).string(), {});
    if (program.hash != loaded.timeline.origin.program_hash) {
      print_error("{}: left out: the scenario changed since it was measured\n", file.string());
      continue;
    }
    found.programs.push_back(std::move(program));
    found.timelines.push_back(std::move(loaded));
  }
  return found;
}

void add_regions(const Program& program, const Timeline& predicted, const Timeline& measured,
                 std::vector<ShippedRegion>& regions) {
  for (const RegionRow& row : compare_regions(predicted, measured, 0)) {
    if (!row.error) continue;
    ShippedRegion region{.scenario = program.file,
                         .region = row.name,
                         .is_fit = row.is_fit(),
                         .predicted_us = row.first->median_ns / 1e3,
                         .measured_us = row.second->median_ns / 1e3,
                         .sample = {.error = *row.error, .in_band = {}, .spread = {}}};
    if (row.low_ns && row.high_ns) {
      region.sample.in_band =
          *row.low_ns <= row.second->median_ns && row.second->median_ns <= *row.high_ns;
    }
    regions.push_back(std::move(region));
  }
}

std::vector<ShippedRegion> shipped_regions(const AccuracyOptions& options) {
  const MeasuredScenarios measured = load_measured_scenarios(options.measured);
  const auto& programs = measured.programs;
  Machine machine = changed_machine(options.machine, options.with);
  leave_out_terms(machine, options.without);
  const auto predictions = predict_all(programs, machine);
  std::vector<ShippedRegion> regions;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    if (!predictions[i]) continue;
    add_regions(programs[i], predictions[i]->regions, measured.timelines[i].timeline, regions);
  }
  return regions;
}

fs::path directory_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : ".";
}

MarkedText blind_table(const AccuracyOptions& options) {
  return {.name = "blind",
          .what = "the table of the newest blind rounds",
          .command = "foretrace accuracy",
          .text = [&options](const fs::path& folder) {
            return by_whose_programs(load_blind_rounds(options.blind), folder);
          }};
}

nlohmann::ordered_json sample_json(const ErrorSample& sample) {
  nlohmann::ordered_json json{{"error", sample.error}};
  if (sample.in_band) json["in_band"] = *sample.in_band;
  if (sample.spread) json["spread"] = *sample.spread;
  return json;
}

std::string json_of(const AccuracyPage& page, const std::vector<BlindRound>& rounds,
                    const std::vector<ShippedRegion>& shipped) {
  using Json = nlohmann::ordered_json;
  Json blind = Json::array(), regions = Json::array();
  for (const BlindRound& round : rounds) {
    Json rows = Json::array();
    for (const BlindRegion& region : round.regions) {
      rows.push_back({{"program", region.program},
                      {"kind", region.kind},
                      {"region", region.region},
                      {"gpus", region.gpus},
                      {"predicted_us", region.predicted_us},
                      {"measured_us", region.measured_us}});
      rows.back().update(sample_json(region.sample));
    }
    blind.push_back({{"round", round.name()}, {"machine", round.machine}, {"regions", rows}});
  }
  for (const ShippedRegion& region : shipped) {
    regions.push_back({{"scenario", region.scenario},
                       {"region", region.region},
                       {"standing", region.is_fit ? "fit" : "prediction"},
                       {"predicted_us", region.predicted_us},
                       {"measured_us", region.measured_us}});
    regions.back().update(sample_json(region.sample));
  }
  const Json json{{"schema_version", 1},
                  {"kind", "accuracy"},
                  {"headline", page.headline},
                  {"blind_rounds", blind},
                  {"shipped_scenarios", regions}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string rendered(const AccuracyOptions& options, const std::vector<BlindRound>& rounds,
                     const std::vector<ShippedRegion>& shipped) {
  const AccuracyPage page =
      accuracy_page(rounds, shipped, options.machine, directory_of(options.output));
  if (options.format == "json") return json_of(page, rounds, shipped);
  return options.format == "html" ? accuracy_html(page) : accuracy_markdown(page);
}

/// The file's ending, which --format may say once more.
std::string format_of(const AccuracyOptions& options) {
  if (!options.output.has_extension()) return options.format.empty() ? "text" : options.format;
  const std::string ending = options.output.extension().string().substr(1);
  const std::string format = ending == "md" ? "text" : ending;
  if (!options.format.empty() && options.format != format) {
    throw UsageError{fmt::format("{}: its ending says another format than --format {}",
                                 options.output.string(), options.format)};
  }
  return format;
}

int run_accuracy(AccuracyOptions& options) {
  options.format = format_of(options);
  if (options.document.is_given()) return write_or_check(options.document, blind_table(options));
  if (!options.terms.empty()) {
    if (options.format == "html") throw UsageError{"--terms: a table as Markdown or JSON"};
    const TermRents rents = term_rents(options.blind, options.terms);
    const bool json = options.format == "json";
    emit({.file = options.output}, json ? term_rent_json(rents) : term_rent_markdown(rents));
    return kDone;
  }
  if (!options.transfer.empty()) {
    if (options.format == "html") throw UsageError{"--transfer: a table as Markdown or JSON"};
    const transfer::Report report = transfer::judge(transfer::read_table(options.transfer));
    const bool json = options.format == "json";
    emit({.file = options.output}, json ? transfer::json(report) : transfer::markdown(report));
    return kDone;
  }
  if (options.blind_only && !(options.with.empty() && options.without.empty())) {
    throw UsageError{
        "--with and --without change the predictions of shipped scenarios, which --blind-only "
        "leaves out\n"
        "  hint: blind rounds stay as they were recorded"};
  }
  const auto rounds = load_blind_rounds(options.blind);
  std::vector<ShippedRegion> shipped;
  if (!options.blind_only) shipped = shipped_regions(options);
  emit({.file = options.output}, rendered(options, rounds, shipped));
  return kDone;
}

}  // namespace

void add_accuracy_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<AccuracyOptions>();
  CLI::App& command =
      add_subcommand(app, "accuracy",
                     "How exact the predictions are: programs that nobody tuned to first, then "
                     "predictions of shipped scenarios, then fits",
                     "foretrace accuracy -o out/accuracy.html\n"
                     "  foretrace accuracy --blind-only");
  command.add_option("--blind", options->blind, "Where the blind rounds are: DIR/round-N/")
      ->capture_default_str()
      ->option_text("DIR");
  command.add_option("--measured", options->measured, "Measured timelines of scenarios: DIR/NAME/")
      ->capture_default_str()
      ->option_text("DIR");
  command.add_flag("--blind-only", options->blind_only, "Predict no shipped scenarios: at once");
  CLI::Option* const machine = add_machine_option(command, options->machine);
  add_with_option(command, options->with);
  add_host_option(command, options->with);
  add_without_option(command, options->without);
  CLI::Option* const terms =
      command
          .add_option("--terms", options->terms,
                      "Instead: what each term of the model gains on the blind rounds in DIR, as "
                      "hw/laboratory/blind/blind.py unpack writes them")
          ->check(CLI::ExistingDirectory.description(""))
          ->option_text("DIR");
  CLI::Option* const transfer =
      command
          .add_option("--transfer", options->transfer,
                      "Instead: how far products and attention are off on GPUs of which only facts "
                      "are known, each GPU "
                      "of FILE left out in turn; FILE: kernels-by-gpu.csv.gz, a public table")
          ->check(CLI::ExistingFile.description(""))
          ->option_text("FILE");
  transfer->excludes(terms);
  for (const char* const other : {"--machine", "--with", "--without", "--blind-only"}) {
    terms->excludes(command.get_option(other));
    transfer->excludes(command.get_option(other));
  }
  command
      .add_option("-o,--output", options->output,
                  "FILE.html is a page, FILE.json has every region, FILE.md is Markdown; default: "
                  "stdout")
      ->check(written_file({".html", ".md", ".json"}), "")
      ->option_text("FILE");
  command
      .add_option("--format", options->format, "text (Markdown), html or json; default: as FILE")
      ->check(CLI::IsMember({"text", "html", "json"}).description(""))
      ->option_text("text|html|json");
  add_marked_document(command, options->document, "the table of the newest blind rounds");
  for (const char* const document : {"--write", "--check"}) {
    command.get_option(document)->excludes(machine);  // the table is of all machines
  }
  command.callback([options, &exit_code] { exit_code = run_accuracy(*options); });
}

}  // namespace foretrace
