#include "reports/accuracy/blind_round.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "scenarios/base/text/csv.h"
#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

using Series = BlindRound::Series;

struct RoundName {
  Series series;
  int number;
};

/// "round-12" is the twelfth of random programs.
std::optional<RoundName> round_name(const std::string& name) {
  for (const auto& [prefix, series] : {std::pair{std::string_view{"round-"}, Series::Random},
                                       {"four-gpus-", Series::FourGpus},
                                       {"eight-gpus-", Series::EightGpus},
                                       {"written-", Series::Written}}) {
    if (!name.starts_with(prefix)) continue;
    int number = 0;
    const char* const last = name.data() + name.size();
    const auto [end, error] = std::from_chars(name.data() + prefix.size(), last, number);
    if (error == std::errc{} && end == last) return RoundName{series, number};
  }
  return std::nullopt;
}

/// "evaluation-h200-nvswitch-8.csv" is of "h200-nvswitch-8".
std::optional<std::string> machine_of(const fs::path& file) {
  const std::string stem = file.stem().string();
  constexpr std::string_view prefix = "evaluation-";
  if (file.extension() != ".csv" || !stem.starts_with(prefix)) return std::nullopt;
  return stem.substr(prefix.size());
}

double positive(const CsvLine& line, std::string_view column) {
  const double value = line.number(column);
  if (value <= 0) throw UsageError{fmt::format("{}: {} is not above 0", line.where(), column)};
  return value;
}

BlindRegion region_of(const CsvLine& line) {
  BlindRegion region{.program = std::string{line.text("program")},
                     .kind = std::string{line.text("class")},
                     .region = std::string{line.text("region")},
                     .gpus = std::string{line.text("gpus")},
                     .predicted_us = positive(line, "predicted_us"),
                     .measured_us = positive(line, "measured_us"),
                     .sample = {}};
  // From the times, not from the column `error`, which is rounded.
  region.sample.error = region.predicted_us / region.measured_us - 1;
  region.sample.in_band =
      line.number("low_us") <= region.measured_us && region.measured_us <= line.number("high_us");
  region.sample.spread = line.number("spread");
  return region;
}

std::vector<BlindRegion> regions_in(const fs::path& file) {
  std::vector<BlindRegion> regions;
  for (const CsvLine& line : read_csv(file)) {
    if (line.number("counts") != 0) regions.push_back(region_of(line));
  }
  return regions;
}

}  // namespace

std::vector<BlindRound> load_blind_rounds(const fs::path& named) {
  const fs::path directory = shipped_file(named);
  if (!fs::is_directory(directory)) {
    throw UsageError{fmt::format("{}: no such directory", directory.string())};
  }
  std::vector<BlindRound> rounds;
  for (const auto& entry : fs::directory_iterator{directory}) {
    const auto name = round_name(entry.path().filename().string());
    if (!name || !entry.is_directory()) continue;
    for (const auto& file : fs::directory_iterator{entry.path()}) {
      const auto machine = machine_of(file.path());
      if (!machine) continue;
      BlindRound round{name->series, name->number, *machine, entry.path(), regions_in(file.path())};
      const fs::path known = entry.path() / fmt::format("known-host-{}.csv", *machine);
      if (fs::exists(known)) round.known_host = regions_in(known);
      rounds.push_back(std::move(round));
    }
  }
  if (rounds.empty()) {
    throw UsageError{
        fmt::format("{}: no round-N/evaluation-MACHINE.csv in it\n  hint: "
                    "hw/laboratory/blind/README.md says how a round is made",
                    directory.string())};
  }
  std::ranges::sort(rounds, {},
                    [](const BlindRound& r) { return std::tie(r.series, r.number, r.machine); });
  return rounds;
}

}  // namespace foretrace
