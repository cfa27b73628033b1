#include "reports/accuracy/page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "reports/table/text_table.h"
#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;
using Cell = Section::Cell;

constexpr std::size_t kWorst = 10;

std::string one_decimal(double fraction) { return fmt::format("{:.1f} %", fraction * 100); }

std::vector<Cell> figure_columns(std::string what) {
  std::vector<Cell> columns{{.text = std::move(what), .is_number = false}};
  for (const char* const name :
       {"regions", "median", "mean", "90th", "95th", "worst", "bias", "in band", "noise"}) {
    columns.push_back({.text = name});
  }
  return columns;
}

std::vector<Cell> figure_row(Cell name, const ErrorFigures& figures) {
  const auto share = [](const std::optional<double>& value) {
    return value ? one_decimal(*value) : "-";
  };
  name.is_number = false;
  return {std::move(name),
          {.text = format_count(figures.regions)},
          {.text = one_decimal(figures.median)},
          {.text = one_decimal(figures.mean)},
          {.text = one_decimal(figures.p90)},
          {.text = one_decimal(figures.p95)},
          {.text = one_decimal(figures.worst)},
          {.text = fmt::format("{:+.1f} %", figures.bias * 100)},
          {.text = share(figures.in_band)},
          {.text = share(figures.spread)}};
}

template <class Regions, class Wanted>
ErrorFigures figures_where(const Regions& regions, Wanted wanted) {
  std::vector<ErrorSample> samples;
  for (const auto& region : regions) {
    if (wanted(region)) samples.push_back(region.sample);
  }
  return figures_of(samples);
}

ErrorFigures figures_of(const std::vector<BlindRegion>& regions) {
  return figures_where(regions, [](const BlindRegion&) { return true; });
}
ErrorFigures figures_of_round(const BlindRound& round) { return figures_of(round.regions); }

/// Random ones lie in a folder of their kind, those by others anywhere; those of a recorded round in
/// its archive.
fs::path program_of(const BlindRound& round, const BlindRegion& region) {
  const fs::path archive = round.directory.string() + ".tar.gz";
  const fs::path programs = round.directory / "programs";
  const std::string name = region.program + ".yaml";
  fs::path file = programs / region.kind / name;
  if (fs::exists(file)) return file;
  if (!fs::is_directory(programs)) return fs::exists(archive) ? archive : file;
  for (const auto& entry : fs::recursive_directory_iterator{programs}) {
    if (entry.path().filename() == name) return entry.path();
  }
  return file;
}

using Series = BlindRound::Series;

const BlindRound& newest_of(std::span<const BlindRound> rounds, const std::string& machine) {
  const BlindRound* newest = nullptr;
  for (const BlindRound& round : rounds) {
    if (round.machine == machine && round.series == Series::Random) newest = &round;
  }
  if (newest == nullptr) {
    throw UsageError{fmt::format("no blind round was evaluated on '{}'", machine)};
  }
  return *newest;
}

/// The newest round of each series and machine, `first` first.
std::vector<const BlindRound*> newest_of_all(std::span<const BlindRound> rounds,
                                             const BlindRound& first) {
  std::map<std::pair<Series, std::string>, const BlindRound*> newest;
  for (const BlindRound& round : rounds) newest[{round.series, round.machine}] = &round;
  std::vector<const BlindRound*> all{&first};
  for (const auto& [key, round] : newest) {
    if (round != &first) all.push_back(round);
  }
  return all;
}

Section rounds_over_time(std::span<const BlindRound> rounds, const fs::path& from) {
  Section section{
      "Blind rounds",
      "Random programs that nobody had seen while the model was made, predicted and "
      "committed before they were measured. Each round has new ones; those on more than "
      "two GPUs have a name of their own, and so have programs that others wrote by hand.",
      figure_columns("round, machine"),
      {}};
  for (const BlindRound& round : rounds) {
    section.rows.push_back(figure_row({.text = fmt::format("{}, {}", round.name(), round.machine),
                                       .link = link_to(round.page(), from)},
        figures_of_round(round)));
  }
  return section;
}

/// Of those rounds whose harness noted it.
Section with_known_hosts(std::span<const BlindRound> rounds, const fs::path& from) {
  Section section{
      "Blind rounds, the host's speed known",
      "Hosts of one kind call CUDA up to half as fast again as others, and one host changes "
      "within minutes. The same programs and model, each start predicted with --with host= for "
      "what a kernel's launch took between its repetitions, which stands for all that the host "
      "does.",
      figure_columns("round, machine"),
      {}};
  for (const BlindRound& round : rounds) {
    if (round.known_host.empty()) continue;
    section.rows.push_back(figure_row({.text = fmt::format("{}, {}", round.name(), round.machine),
                                       .link = link_to(round.page_of_known_host(), from)},
        figures_of(round.known_host)));
  }
  return section;
}

std::string count_of_gpus(const std::string& number) {
  return number + (number == "1" ? " GPU" : " GPUs");
}

/// Of each machine, and of programs of each number of GPUs, the newest round that has some.
Section by_number_of_gpus(std::span<const BlindRound> rounds, const fs::path& from) {
  std::map<std::tuple<std::string, std::size_t, std::string>, const BlindRound*> newest;
  for (const BlindRound& round : rounds) {  // the newest ones last
    if (round.series == Series::Written) continue;
    for (const BlindRegion& region : round.regions) {
      newest[{round.machine, region.gpus.size(), region.gpus}] = &round;
    }
  }
  Section section{"Blind rounds by number of GPUs",
                  "The newest round of random programs that has some of so many GPUs.",
                  figure_columns("GPUs, machine, round"),
                  {}};
  for (const auto& [key, round] : newest) {
    const std::string& gpus = std::get<2>(key);
    section.rows.push_back(figure_row(
        {.text = fmt::format("{}, {}, {}", count_of_gpus(gpus), round->machine, round->name()),
         .link = link_to(round->page(), from)},
        figures_where(round->regions, [&gpus](const auto& r) { return r.gpus == gpus; })));
  }
  return section;
}

Section round_by_kind(const BlindRound& round) {
  Section section{fmt::format("Round {} on {}, by kind of program", round.name(), round.machine),
                  "",
                  figure_columns("kind"),
                  {}};
  std::set<std::string> gpus, kinds;
  for (const BlindRegion& region : round.regions) {
    gpus.insert(region.gpus);
    kinds.insert(region.kind);
  }
  section.rows.push_back(figure_row({.text = "all"}, figures_of_round(round)));
  for (const std::string& number : gpus) {
    section.rows.push_back(
        figure_row({.text = count_of_gpus(number)},
                   figures_where(round.regions, [&](const auto& r) { return r.gpus == number; })));
  }
  for (const std::string& kind : kinds) {
    section.rows.push_back(
        figure_row({.text = kind},
                   figures_where(round.regions, [&](const auto& r) { return r.kind == kind; })));
  }
  return section;
}

/// Error by error, largest first.
template <class Region>
std::vector<const Region*> worst_of(std::span<const Region> regions) {
  std::vector<const Region*> worst;
  for (const Region& region : regions) worst.push_back(&region);
  std::ranges::stable_sort(
      worst, [](double a, double b) { return a > b; },
      [](const Region* region) { return std::abs(region->sample.error); });
  if (worst.size() > kWorst) worst.resize(kWorst);
  return worst;
}

std::vector<Cell> worst_columns() {
  return {{.text = "program", .is_number = false},
          {.text = "region", .is_number = false},
          {.text = "predicted"},
          {.text = "measured"},
          {.text = "error"},
          {.text = "noise"}};
}

template <class Region>
std::vector<Cell> worst_row(Cell program, const Region& region) {
  program.is_number = false;
  return {std::move(program),
          {.text = region.region, .is_number = false},
          {.text = format_time(region.predicted_us * 1e3)},
          {.text = format_time(region.measured_us * 1e3)},
          {.text = format_signed_percent(region.sample.error)},
          {.text = region.sample.spread ? one_decimal(*region.sample.spread) : "-"}};
}

Section worst_of_round(const BlindRound& round, const fs::path& from) {
  Section section{fmt::format("Worst ten of round {} on {}", round.name(), round.machine),
                  "",
                  worst_columns(),
                  {}};
  for (const BlindRegion* region : worst_of(std::span{round.regions})) {
    section.rows.push_back(worst_row(
        {.text = region->program, .link = link_to(program_of(round, *region), from)}, *region));
  }
  return section;
}

void add_shipped(AccuracyPage& page, std::span<const ShippedRegion> shipped,
                 const std::string& machine, const fs::path& from) {
  Section figures{
      fmt::format("Shipped scenarios, measured on {}", machine),
      "prediction: no parameter that decides the region learned from that scenario, "
      "number of GPUs and size; fit: one did. Both were in sight while the model was made.",
      figure_columns("standing"),
      {}};
  for (const bool fit : {false, true}) {
    figures.rows.push_back(
        figure_row({.text = fit ? "fit" : "prediction"},
                   figures_where(shipped, [&](const auto& r) { return r.is_fit == fit; })));
  }
  Section worst{"Worst ten predictions of shipped scenarios", "", worst_columns(), {}};
  std::vector<ShippedRegion> predictions;
  std::ranges::copy_if(shipped, std::back_inserter(predictions),
                       [](const ShippedRegion& region) { return !region.is_fit; });
  for (const ShippedRegion* region : worst_of(std::span<const ShippedRegion>{predictions})) {
    worst.rows.push_back(worst_row({.text = fs::path{region->scenario}.stem().string(),
                                    .link = link_to(region->scenario, from)},
                                   *region));
  }
  page.sections.push_back(std::move(figures));
  page.sections.push_back(std::move(worst));
}

/// "1 GPU", "1 and 2 GPUs"
std::string gpus_in_words(const std::set<std::string>& gpus) {
  return fmt::format("{}{}", fmt::join(gpus, " and "),
                     gpus == std::set<std::string>{"1"} ? " GPU" : " GPUs");
}

std::string headline(const BlindRound& round) {
  const ErrorFigures figures = figures_of_round(round);
  std::set<std::string> programs, gpus;
  for (const BlindRegion& region : round.regions) {
    programs.insert(region.program);
    gpus.insert(region.gpus);
  }
  return fmt::format(
      "On programs that nobody had seen while the model was made, predicted before they were "
      "measured: median error {}, nine of ten regions within {:.0f} %, {:.0f} % of the medians "
      "inside the predicted band ({} regions of {} random programs on {}, predicted by {}",
      one_decimal(figures.median), figures.p90 * 100, figures.in_band.value_or(0) * 100,
      figures.regions, programs.size(), gpus_in_words(gpus), round.machine);
}

}  // namespace

fs::path link_to(const fs::path& file, const fs::path& from) {
  return fs::absolute(file).lexically_normal().lexically_relative(
      fs::absolute(from).lexically_normal());
}

AccuracyPage accuracy_page(std::span<const BlindRound> rounds,
                           std::span<const ShippedRegion> shipped, const std::string& machine,
                           const fs::path& from) {
  const BlindRound& newest = newest_of(rounds, machine);
  AccuracyPage page{fmt::format("{}, blind round {}).", headline(newest), newest.number), {}};
  page.sections.push_back(rounds_over_time(rounds, from));
  Section known = with_known_hosts(rounds, from);
  if (!known.rows.empty()) page.sections.push_back(std::move(known));
  page.sections.push_back(by_number_of_gpus(rounds, from));
  for (const BlindRound* round : newest_of_all(rounds, newest)) {
    page.sections.push_back(round_by_kind(*round));
    page.sections.push_back(worst_of_round(*round, from));
  }
  if (!shipped.empty()) add_shipped(page, shipped, machine, from);
  return page;
}

}  // namespace foretrace
