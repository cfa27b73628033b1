#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "models/cost/products/choice.h"
#include "sim/applications/transfer/transfer.h"

namespace foretrace::transfer {
namespace {

using products::GpuFacts;
using products::TileRatios;

constexpr double kLeastUs = 10;        // below, the gaps of the host and of graphs decide
constexpr std::size_t kEnough = 50;    // rows of a GPU that one may learn from
constexpr std::size_t kLearned = 250;  // of a GPU, evenly over its rows: more teach no more
constexpr double kInBand = 0.82;       // of rows that a band shall hold
constexpr double kWorth = 1e-4;        // of the loss: less is no gain
constexpr int kMostTurns = 60;         // of a search

/// The ratios, and where the search for each begins.
struct Searched {
  double& (*of)(TileRatios&);
  double begin;
};
constexpr std::array kSearched{
    Searched{[](TileRatios& one) -> double& { return one.share; }, 0.9},
    Searched{[](TileRatios& one) -> double& { return one.memory; }, 0.85},
    Searched{[](TileRatios& one) -> double& { return one.start; }, 2.5e-6},
    Searched{[](TileRatios& one) -> double& { return one.cache; }, 80},
    Searched{[](TileRatios& one) -> double& { return one.tiles.edge; }, 0.1},
    Searched{[](TileRatios& one) -> double& { return one.tiles.smooth; }, 0.2},
    Searched{[](TileRatios& one) -> double& { return one.tiles.wave; }, 2e-6},
    Searched{[](TileRatios& one) -> double& { return one.tiles.in_flight; }, 1.7},
    Searched{[](TileRatios& one) -> double& { return one.tiles.norm; }, 4},
    Searched{[](TileRatios& one) -> double& { return one.sum; }, 0.5e-6},
    Searched{[](TileRatios& one) -> double& { return one.power; }, 0.2},
    Searched{[](TileRatios& one) -> double& { return one.tiles.kept; }, 1}};

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

/// The `share` quantile of values, which this sorts.
double quantile(std::vector<double>& values, double share) {
  std::ranges::sort(values);
  const double at = share * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
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

/// Mean over the GPUs of the mean error, large ones cut, and of a third of its 90th percentile.
double loss(const TileRatios& ratios, const std::vector<Learned>& gpus) {
  constexpr double kCut = 0.7, kTail = 0.3;
  double sum = 0;
  for (const Learned& gpu : gpus) {
    const products::Speeds speeds = with_ratios(gpu.rows->facts, ratios);
    std::vector<double> errors;
    double mean = 0;
    for (const Row& row : gpu.some) {
      errors.push_back(std::abs(error_of(row, speeds)));
      mean += std::min(errors.back(), kCut);
    }
    sum += mean / static_cast<double>(errors.size()) + kTail * quantile(errors, 0.9);
  }
  return sum / static_cast<double>(gpus.size());
}

/// A cache keeps no more than its size, and a wave loses no less than nothing.
void bound(TileRatios& ratios) {
  ratios.tiles.smooth = std::min(ratios.tiles.smooth, 1.0);
  ratios.tiles.kept = std::min(ratios.tiles.kept, 1.0);
}

/// Each ratio a step up or down, where that helps.
bool improve(TileRatios& best, double& least, double step, const std::vector<Learned>& gpus) {
  bool helps = false;
  for (const Searched& one : kSearched) {
    for (const double factor : {1 + step, 1 / (1 + step)}) {
      TileRatios next = best;
      one.of(next) *= factor;
      bound(next);
      const double now = loss(next, gpus);
      if (now >= least - kWorth) continue;
      least = now;
      best = next;
      helps = true;
      break;
    }
  }
  return helps;
}

TileRatios where_searches_begin() {
  const Machine machine = load_machine("1xH200-SXM");
  Reading read{machine};
  TileRatios ratios = products::read_tile_ratios(read);
  for (const Searched& one : kSearched) one.of(ratios) = one.begin;
  return ratios;
}

/// The search of Hooke and Jeeves: along one ratio after the other, then once more the way that all
/// of them have gone; by smaller steps where nothing helps.
TileRatios found(const std::vector<Learned>& gpus) {
  constexpr double kFirst = 0.4, kLast = 0.02;
  TileRatios best = where_searches_begin();
  double least = loss(best, gpus);
  int turns = 0;
  for (double step = kFirst; step >= kLast && turns < kMostTurns; ++turns) {
    TileRatios before = best;
    if (!improve(best, least, step, gpus)) {
      step /= 2;
      continue;
    }
    TileRatios further = best;
    for (const Searched& one : kSearched) one.of(further) *= one.of(best) / one.of(before);
    bound(further);
    double then = loss(further, gpus);
    improve(further, then, step, gpus);
    if (then >= least - kWorth) continue;
    least = then;
    best = further;
  }
  return best;
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

/// What is left of the errors of one GPU: its rows from 10 us on.
struct Errors {
  const Rows* rows;
  std::vector<double> errors;
};

/// So far off are 82 % of the rows of the GPUs with enough of them, but one.
double band_of(const std::vector<Errors>& all, const std::string& precision, const Rows* but) {
  std::vector<double> off;
  for (const Errors& one : all) {
    const bool counts = one.rows->precision == precision && one.errors.size() >= kEnough;
    if (!counts || (but != nullptr && one.rows->gpu == but->gpu)) continue;
    for (const double error : one.errors) off.push_back(std::abs(error));
  }
  return off.empty() ? 0 : std::exp(quantile(off, kInBand)) - 1;
}

Judged judged_of(const Errors& one, double band) {
  Judged judged{.gpu = one.rows->gpu,
                .precision = one.rows->precision,
                .rows = one.errors.size(),
                .band = band,
                .too_few = one.errors.size() < kEnough};
  if (one.errors.empty()) return judged;
  std::vector<double> off, with_sign;
  std::size_t in_band = 0;
  for (const double error : one.errors) {
    with_sign.push_back(std::expm1(error));
    off.push_back(std::abs(with_sign.back()));
    if (std::abs(error) <= std::log1p(band)) ++in_band;
  }
  judged.median = quantile(off, 0.5);
  judged.p90 = quantile(off, 0.9);
  judged.bias = quantile(with_sign, 0.5);
  judged.in_band = static_cast<double>(in_band) / static_cast<double>(off.size());
  return judged;
}

}  // namespace

Report judge(const Table& table) {
  Report report;
  report.unknown = table.unknown;
  for (const Rows& rows : table.all) report.warm += rows.warm;
  const std::vector<Learned> learned = learned_from(table, "");
  report.ratios = found(learned);
  std::vector<Errors> all;
  std::string last;
  TileRatios ratios;
  for (const Rows& rows : table.all) {
    const bool was_learned_from =
        std::ranges::any_of(learned, [&](const Learned& gpu) { return gpu.rows->gpu == rows.gpu; });
    if (rows.gpu != last) {
      ratios = was_learned_from ? found(learned_from(table, rows.gpu)) : report.ratios;
    }
    last = rows.gpu;
    Errors errors{&rows, {}};
    const products::Speeds speeds = with_ratios(rows.facts, ratios);
    for (const Row& row : long_rows(rows)) errors.errors.push_back(error_of(row, speeds));
    all.push_back(std::move(errors));
  }
  for (const Errors& one : all) {
    if (one.errors.empty()) continue;
    report.judged.push_back(judged_of(one, band_of(all, one.rows->precision, one.rows)));
  }
  report.band_bf16 = band_of(all, "bf16", nullptr);
  report.band_fp8 = band_of(all, "fp8", nullptr);
  return report;
}

}  // namespace foretrace::transfer
