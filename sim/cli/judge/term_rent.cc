#include "sim/cli/judge/term_rent.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "models/machine/machine.h"
#include "reports/accuracy/error_figures.h"
#include "scenarios/read/scenario.h"
#include "scenarios/base/text/csv.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/print.h"
#include "sim/cli/judge/predict_all.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

using RegionKey = std::tuple<std::string, std::string, std::uint64_t, std::uint32_t>;

/// A round on one machine: its programs, and what was measured of their regions.
struct MeasuredRound {
  std::string name, machine;
  std::vector<Program> programs;
  std::vector<std::string> names;  ///< of the programs
  std::map<RegionKey, double> measured_us;
};

RegionKey key_of(const CsvLine& line) {
  return {std::string{line.text("program")}, std::string{line.text("region")},
          static_cast<std::uint64_t>(line.number("instance")),
          static_cast<std::uint32_t>(line.number("process"))};
}

/// Regions of several processes count where they took longest.
void read_measured(const fs::path& file, MeasuredRound& round) {
  for (const CsvLine& line : read_csv(file)) {
    if (line.number("counts") != 0) round.measured_us[key_of(line)] = line.number("measured_us");
  }
}

void read_programs(const fs::path& directory, MeasuredRound& round) {
  std::map<std::string, bool> wanted;
  for (const auto& [key, us] : round.measured_us) wanted[std::get<0>(key)] = true;
  for (const CsvLine& line : read_csv(directory / "programs.csv")) {
    const std::string name{line.text("program")};
    if (!wanted.contains(name)) continue;
    round.programs.push_back(load_scenario(directory / std::string{line.text("file")}, {}));
    round.names.push_back(name);
  }
}

std::vector<MeasuredRound> read_rounds(const fs::path& blind, const fs::path& programs) {
  std::vector<fs::path> directories;
  for (const auto& entry : fs::directory_iterator{programs}) {
    if (fs::exists(entry.path() / "programs.csv")) directories.push_back(entry.path());
  }
  std::ranges::sort(directories);
  constexpr std::string_view kPrefix = "evaluation-";
  std::vector<MeasuredRound> rounds;
  for (const fs::path& directory : directories) {
    const fs::path evaluations = blind / directory.filename();
    if (!fs::is_directory(evaluations)) continue;
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator{evaluations}) {
      const std::string stem = entry.path().stem().string();
      if (entry.path().extension() == ".csv" && stem.starts_with(kPrefix)) {
        files.push_back(entry.path());
      }
    }
    std::ranges::sort(files);
    for (const fs::path& file : files) {
      MeasuredRound round{.name = directory.filename().string(),
                          .machine = file.stem().string().substr(kPrefix.size()),
                          .programs = {},
                          .names = {},
                          .measured_us = {}};
      read_measured(file, round);
      read_programs(directory, round);
      rounds.push_back(std::move(round));
    }
  }
  if (rounds.empty()) {
    throw UsageError{fmt::format(
        "{}: no ROUND/programs.csv whose evaluation is in {}\n  hint: hw/laboratory/blind/blind.py "
        "unpack reports/blind/round-37 {}",
        programs.string(), blind.string(), programs.string())};
  }
  return rounds;
}

/// predicted / measured - 1 of every region, in the measurements' order; none where the machine
/// cannot run the program.
std::vector<std::optional<double>> errors_of(const std::vector<MeasuredRound>& rounds,
                                             const TermSet& without) {
  std::vector<std::optional<double>> errors;
  for (const MeasuredRound& round : rounds) {
    Machine machine = load_machine(round.machine);
    machine.leave_out(without);
    const auto predictions = predict_all(round.programs, machine);
    std::map<RegionKey, double> predicted;
    for (std::size_t i = 0; i < predictions.size(); ++i) {
      if (!predictions[i]) continue;
      for (const RegionSamples& region : predictions[i]->regions.regions) {
        const double us =
            static_cast<double>(region.samples_ns.front()) / 1e3 / static_cast<double>(region.per);
        predicted[{round.names[i], region.name, region.instance, region.process}] = us;
      }
    }
    for (const auto& [key, measured] : round.measured_us) {
      const auto found = predicted.find(key);
      errors.push_back(found != predicted.end() && measured > 0
                           ? std::optional{found->second / measured - 1}
                           : std::nullopt);
    }
  }
  return errors;
}

ErrorFigures figures(const std::vector<double>& errors) {
  std::vector<ErrorSample> samples;
  for (const double error : errors) samples.push_back({.error = error, .in_band = {}, .spread = {}});
  return figures_of(samples);
}

TermRent rent_of(Term term, const std::vector<std::optional<double>>& with,
                 const std::vector<std::optional<double>>& without) {
  constexpr double kMoves = 0.01;
  TermRent rent{.term = term};
  std::vector<double> of_with, of_without;
  for (std::size_t i = 0; i < with.size(); ++i) {
    if (!with[i] || !without[i]) continue;
    if (std::abs((1 + *without[i]) / (1 + *with[i]) - 1) <= kMoves) continue;
    of_with.push_back(*with[i]);
    of_without.push_back(*without[i]);
    rent.better += std::abs(*with[i]) < std::abs(*without[i]) ? 1 : 0;
  }
  rent.moved = of_with.size();
  const ErrorFigures left = figures(of_with);
  const ErrorFigures right = figures(of_without);
  rent.mean_with = left.mean;
  rent.mean_without = right.mean;
  rent.median_with = left.median;
  rent.median_without = right.median;
  return rent;
}

}  // namespace

TermRents term_rents(const fs::path& blind, const fs::path& programs) {
  if (!fs::is_directory(programs)) {
    throw UsageError{fmt::format("{}: no such directory", programs.string())};
  }
  const std::vector<MeasuredRound> rounds = read_rounds(blind, programs);
  const auto with = errors_of(rounds, {});
  TermRents rents;
  for (const MeasuredRound& round : rounds) {
    rents.rounds.push_back(fmt::format("{} on {}", round.name, round.machine));
  }
  std::vector<double> known;
  for (const auto& error : with) {
    if (error) known.push_back(*error);
  }
  const ErrorFigures all = figures(known);
  rents.regions = known.size();
  rents.median = all.median;
  rents.p90 = all.p90;
  rents.p95 = all.p95;
  rents.mean = all.mean;
  for (std::size_t i = 0; i < kTermCount; ++i) {
    const auto term = static_cast<Term>(i);
    rents.terms.push_back(rent_of(term, with, errors_of(rounds, TermSet{}.set(i))));
    print_error("note: {} of {} terms: {}\n", i + 1, kTermCount, info(term).id);
  }
  std::ranges::stable_sort(rents.terms, std::ranges::greater{}, [](const TermRent& rent) {
    return static_cast<double>(rent.moved) * (rent.mean_without - rent.mean_with);
  });
  return rents;
}

std::string term_rent_markdown(const TermRents& rents) {
  std::string text = fmt::format(
      "{} regions of {}: median {:.2f} %, 90th {:.1f} %, 95th {:.1f} %, mean {:.2f} %\n\n"
      "| Term | Explains | Regions moved by 1 % | Better with it | Median with | without | Mean with "
      "| without | Evidence |\n| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n",
      rents.regions, fmt::join(rents.rounds, ", "), rents.median * 100, rents.p90 * 100,
      rents.p95 * 100, rents.mean * 100);
  for (const TermRent& rent : rents.terms) {
    const TermInfo& term = info(rent.term);
    text += fmt::format(
        "| `{}` | {} | {} | {} | {:.1f} % | {:.1f} % | {:.1f} % | {:.1f} % | models/evidence/{} |\n",
        term.id, term.explains, rent.moved, rent.better, rent.median_with * 100,
        rent.median_without * 100, rent.mean_with * 100, rent.mean_without * 100, term.evidence);
  }
  return text;
}

std::string term_rent_json(const TermRents& rents) {
  using Json = nlohmann::ordered_json;
  Json terms = Json::array();
  for (const TermRent& rent : rents.terms) {
    terms.push_back({{"term", info(rent.term).id},
                     {"moved", rent.moved},
                     {"better", rent.better},
                     {"median_with", rent.median_with},
                     {"median_without", rent.median_without},
                     {"mean_with", rent.mean_with},
                     {"mean_without", rent.mean_without}});
  }
  const Json all{{"schema_version", 1},       {"kind", "terms"},       {"rounds", rents.rounds},
                 {"regions", rents.regions},  {"median", rents.median}, {"p90", rents.p90},
                 {"p95", rents.p95},          {"mean", rents.mean},     {"terms", terms}};
  return all.dump(2) + "\n";
}

}  // namespace foretrace
