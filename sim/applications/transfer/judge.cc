#include <algorithm>
#include <array>
#include <cmath>

#include "models/cost/products/choice.h"
#include "sim/applications/transfer/search.h"
#include "sim/applications/transfer/transfer.h"

namespace foretrace::transfer {
namespace {

using products::GpuFacts;
using products::TileRatios;

constexpr std::size_t kLearned = 250;  // of a GPU, evenly over its rows: more teach no more

/// What is searched.
using Searched = double& (*)(TileRatios&);
constexpr std::array<Searched, 12> kSearched{
    [](TileRatios& one) -> double& { return one.share; },
    [](TileRatios& one) -> double& { return one.memory; },
    [](TileRatios& one) -> double& { return one.start; },
    [](TileRatios& one) -> double& { return one.cache; },
    [](TileRatios& one) -> double& { return one.tiles.edge; },
    [](TileRatios& one) -> double& { return one.tiles.smooth; },
    [](TileRatios& one) -> double& { return one.tiles.wave; },
    [](TileRatios& one) -> double& { return one.tiles.in_flight; },
    [](TileRatios& one) -> double& { return one.tiles.norm; },
    [](TileRatios& one) -> double& { return one.sum; },
    [](TileRatios& one) -> double& { return one.power; },
    [](TileRatios& one) -> double& { return one.tiles.kept; }};

/// At which the times of models/machines/kinds/common.yaml are given.
double clock_of_times() {
  static const double kClock = facts_of_gpu("H200-SXM").clock;
  return kClock;
}

/// A GPU's speeds with these ratios, whose times are cycles.
products::Speeds with_ratios(const GpuFacts& facts, TileRatios ratios) {
  for (double* const time : {&ratios.start, &ratios.sum, &ratios.tiles.wave}) {
    *time *= clock_of_times() / facts.clock;
  }
  return speeds_of(facts, ratios);
}

/// log(predicted / measured).
double error_of(const Row& row, const products::Speeds& speeds) {
  const auto choices = likely_choices(row.shape, speeds);
  return std::log(mean_time(row.shape, choices, speeds, 1, true) * 1e6 / row.us);
}

std::vector<Row> long_rows(const Rows& rows) {
  std::vector<Row> kept;
  std::ranges::copy_if(rows.rows, std::back_inserter(kept),
                       [](const Row& row) { return row.us >= kLeastUs; });
  return kept;
}

std::vector<Row> some_of(const std::vector<Row>& rows) {
  if (rows.size() <= kLearned) return rows;
  std::vector<Row> some;
  for (std::size_t i = 0; i < kLearned; ++i) some.push_back(rows[i * rows.size() / kLearned]);
  return some;
}

/// A GPU that one may learn from.
struct Learned {
  const Rows* rows;
  std::vector<Row> some;
};

double loss(const TileRatios& ratios, const std::vector<Learned>& gpus) {
  if (gpus.empty()) return 0;  // nothing is found of nothing
  double sum = 0;
  for (const Learned& gpu : gpus) {
    const products::Speeds speeds = with_ratios(gpu.rows->facts, ratios);
    std::vector<double> errors;
    for (const Row& row : gpu.some) errors.push_back(error_of(row, speeds));
    sum += loss_of(errors);
  }
  return sum / static_cast<double>(gpus.size());
}

/// A cache keeps no more than its size, and a wave loses no less than nothing.
void bound(TileRatios& ratios) {
  ratios.tiles.smooth = std::min(ratios.tiles.smooth, 1.0);
  ratios.tiles.kept = std::min(ratios.tiles.kept, 1.0);
}

TileRatios first_ratios() {
  const Machine machine = where_searches_begin();
  Reading read{machine};
  return products::read_tile_ratios(read);
}

TileRatios found(const std::vector<Learned>& gpus, int turns) {
  TileRatios ratios = first_ratios();
  std::vector<double> begin;
  for (const Searched one : kSearched) begin.push_back(one(ratios));
  const auto with = [&](const std::vector<double>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) kSearched.at(i)(ratios) = values[i];
    bound(ratios);
    return ratios;
  };
  const auto best = search(
      begin,
      [&](std::vector<double>& values) {
        const TileRatios next = with(values);
        for (std::size_t i = 0; i < values.size(); ++i) {
          TileRatios bounded = next;
          values[i] = kSearched.at(i)(bounded);
        }
        return loss(next, gpus);
      },
      turns);
  return with(best);
}

std::vector<Learned> learned_from(const Table& table, const std::string& but) {
  std::vector<Learned> gpus;
  for (const Rows& rows : table.all) {
    const std::vector<Row> kept = long_rows(rows);
    if (rows.precision != "bf16" || rows.gpu == but || kept.size() < kEnough) continue;
    gpus.push_back({&rows, some_of(kept)});
  }
  return gpus;
}

}  // namespace

Report judge(const Table& table, int turns) {
  Report report;
  report.unknown = table.unknown;
  for (const Rows& rows : table.all) report.warm += rows.warm;
  const std::vector<Learned> learned = learned_from(table, "");
  report.ratios = found(learned, turns);
  std::vector<Errors> all;
  std::string last;
  TileRatios ratios;
  for (const Rows& rows : table.all) {
    const bool was_learned_from =
        std::ranges::any_of(learned, [&](const Learned& gpu) { return gpu.rows->gpu == rows.gpu; });
    if (rows.gpu != last) {
      ratios = was_learned_from ? found(learned_from(table, rows.gpu), turns) : report.ratios;
    }
    last = rows.gpu;
    Errors errors{rows.gpu, rows.precision, {}};
    const products::Speeds speeds = with_ratios(rows.facts, ratios);
    for (const Row& row : long_rows(rows)) errors.errors.push_back(error_of(row, speeds));
    all.push_back(std::move(errors));
  }
  for (const Errors& one : all) {
    if (one.errors.empty()) continue;
    report.judged.push_back(judged_of(one, band_of(all, one.precision, one.gpu)));
  }
  report.band_bf16 = band_of(all, "bf16");
  report.band_fp8 = band_of(all, "fp8");
  report.attention = judge_attention(table.lines, turns);
  return report;
}

}  // namespace foretrace::transfer
