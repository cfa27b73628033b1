#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "reports/accuracy/page.h"
#include "reports/table/text_table.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;
using Series = BlindRound::Series;

/// A round's regions of one number of GPUs, of all machines that it was measured on.
struct RowOfReadme {
  const BlindRound* round{};
  std::set<std::string> measured_on{};
  std::vector<ErrorSample> samples{};
};

/// "h200-nvswitch-8" models a machine of H200s.
std::string gpu_of(const std::string& machine) {
  std::string name = machine.substr(0, machine.find('-'));
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
  return name;
}

bool is_same_round(const BlindRound& a, const BlindRound& b) {
  return std::tie(a.series, a.number) == std::tie(b.series, b.number);
}

/// By whether others wrote the programs, then by the number of GPUs: as text, shorter is less.
using RowKey = std::tuple<bool, std::size_t, std::string>;

std::map<RowKey, RowOfReadme> newest_rows(std::span<const BlindRound> rounds) {
  std::map<RowKey, RowOfReadme> rows;
  for (const BlindRound& round : rounds) {  // the newest ones last
    for (const BlindRegion& region : round.regions) {
      RowOfReadme& row = rows[{round.series == Series::Written, region.gpus.size(), region.gpus}];
      if (row.round == nullptr || !is_same_round(*row.round, round)) row = {.round = &round};
      row.measured_on.insert(gpu_of(round.machine));
      row.samples.push_back(region.sample);
    }
  }
  return rows;
}

/// What was learned from it, where somebody wrote that down.
fs::path notes_of(const BlindRound& round) {
  fs::path notes = round.directory / "NOTES.md";
  return fs::exists(notes) ? notes : round.page();
}

}  // namespace

std::string by_whose_programs(std::span<const BlindRound> rounds, const fs::path& from) {
  TextTable table;
  table.column("Programs", TextTable::Align::Left);
  for (const char* const heading :
       {"GPUs", "Measured on", "Regions", "Median error", "90th percentile", "In the band"}) {
    table.column(heading, TextTable::Align::Right);
  }
  for (const auto& [key, row] : newest_rows(rounds)) {
    const auto& [is_written, length, gpus] = key;
    const ErrorFigures figures = figures_of(row.samples);
    table.row({fmt::format("{}, [{}]({})", is_written ? "by other authors" : "random",
                           is_written || row.round->series != Series::Random
                               ? row.round->name()
                               : "round " + row.round->name(),
                           link_to(notes_of(*row.round), from).generic_string()),
               gpus, fmt::format("{}", fmt::join(row.measured_on, ", ")),
               format_count(figures.regions), fmt::format("{:.1f} %", figures.median * 100),
               fmt::format("{:.0f} %", figures.p90 * 100),
               fmt::format("{:.0f} %", figures.in_band.value_or(0) * 100)});
  }
  return table.document();
}

}  // namespace foretrace
