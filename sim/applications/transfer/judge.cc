#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "sim/applications/transfer/transfer.h"

namespace foretrace::transfer {
namespace {

using cost::TileSpeeds;

constexpr double kLeastUs = 10;        // below, the gaps of the host and of graphs decide
constexpr std::size_t kEnough = 50;    // rows of a GPU that one may learn from
constexpr std::size_t kLearned = 250;  // of a GPU, evenly over its rows: more teach no more
constexpr double kInBand = 0.82;       // of rows that a band shall hold
constexpr double kWorth = 1e-4;        // of the loss: less is no gain
constexpr int kMostTurns = 60;         // of a search

/// The ratios, and where the search for each begins.
struct Searched {
  double TileSpeeds::*field;
  double begin;
};
constexpr std::array kSearched{
    Searched{&TileSpeeds::share, 0.9},    Searched{&TileSpeeds::memory_share, 0.85},
    Searched{&TileSpeeds::start, 2.5e-6}, Searched{&TileSpeeds::cache, 80},
    Searched{&TileSpeeds::edge, 0.1},     Searched{&TileSpeeds::smooth, 0.2},
    Searched{&TileSpeeds::wave, 2e-6},    Searched{&TileSpeeds::in_flight, 1.7},
    Searched{&TileSpeeds::norm, 4},       Searched{&TileSpeeds::sum, 0.5e-6},
    Searched{&TileSpeeds::power, 0.2},    Searched{&TileSpeeds::kept, 1}};

/// At which the times of models/machines/kinds/common.yaml are given.
double clock_of_times() {
  static const double kClock = facts_of_gpu("H200-SXM").clock;
  return kClock;
}

/// A GPU's facts with these ratios; their times are cycles.
TileSpeeds with_ratios(const TileSpeeds& facts, const TileSpeeds& ratios) {
  TileSpeeds speeds = facts;
  for (const Searched& one : kSearched) speeds.*one.field = ratios.*one.field;
  for (const auto field : {&TileSpeeds::start, &TileSpeeds::wave, &TileSpeeds::sum}) {
    speeds.*field *= clock_of_times() / facts.clock;
  }
  return speeds;
}

/// log(predicted / measured).
double error_of(const Row& row, const TileSpeeds& speeds) {
  return std::log(cost::tile_time(row.shape, speeds).seconds * 1e6 / row.us);
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
double loss(const TileSpeeds& ratios, const std::vector<Learned>& gpus) {
  constexpr double kCut = 0.7, kTail = 0.3;
  double sum = 0;
  for (const Learned& gpu : gpus) {
    const TileSpeeds speeds = with_ratios(gpu.rows->facts, ratios);
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
void bound(TileSpeeds& ratios) {
  ratios.smooth = std::min(ratios.smooth, 1.0);
  ratios.kept = std::min(ratios.kept, 1.0);
}

/// Each ratio a step up or down, where that helps.
bool improve(TileSpeeds& best, double& least, double step, const std::vector<Learned>& gpus) {
  bool helps = false;
  for (const Searched& one : kSearched) {
    for (const double factor : {1 + step, 1 / (1 + step)}) {
      TileSpeeds next = best;
      next.*one.field *= factor;
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

/// The search of Hooke and Jeeves: along one ratio after the other, then once more the way that all
/// of them have gone; by smaller steps where nothing helps.
TileSpeeds found(const std::vector<Learned>& gpus) {
  constexpr double kFirst = 0.4, kLast = 0.02;
  TileSpeeds best;
  for (const Searched& one : kSearched) best.*one.field = one.begin;
  double least = loss(best, gpus);
  int turns = 0;
  for (double step = kFirst; step >= kLast && turns < kMostTurns; ++turns) {
    const TileSpeeds before = best;
    if (!improve(best, least, step, gpus)) {
      step /= 2;
      continue;
    }
    TileSpeeds further = best;
    for (const Searched& one : kSearched) further.*one.field *= best.*one.field / before.*one.field;
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
  TileSpeeds ratios;
  for (const Rows& rows : table.all) {
    const bool was_learned_from =
        std::ranges::any_of(learned, [&](const Learned& gpu) { return gpu.rows->gpu == rows.gpu; });
    if (rows.gpu != last) {
      ratios = was_learned_from ? found(learned_from(table, rows.gpu)) : report.ratios;
    }
    last = rows.gpu;
    Errors errors{&rows, {}};
    const TileSpeeds speeds = with_ratios(rows.facts, ratios);
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
