#include "reports/page/overview.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "reports/compare/accuracy.h"
#include "reports/table/text_table.h"

namespace foretrace {
namespace {

/// How far up a row stands: what fails, then what is far off.
struct Badness {
  bool fails{};
  double error{};  ///< |error|; infinite where a figure is missing
  friend auto operator<=>(const Badness&, const Badness&) = default;
};

Badness badness_of(const RegionRow& row, const ReportRun& run) {
  if (run.sides.size() < 2) return {};
  const bool missing = row.judgement == Judgement::Missing;
  return {.fails = missing || row.judgement == Judgement::Outside,
          .error = row.error ? std::abs(*row.error)
                   : missing ? std::numeric_limits<double>::infinity()
                             : 0};
}

Badness badness_of(const ReportRun& run) {
  Badness worst{.fails = run.sides.size() == 2 && !run.comparison.within(), .error = 0};
  for (const RegionRow& row : run.comparison.regions) {
    worst.error = std::max(worst.error, badness_of(row, run).error);
  }
  return worst;
}

struct OverviewRow {
  Badness badness;
  MustacheData data;
};

/// What else makes a run fail: not to be seen in any of its regions.
std::string failure_words(const ReportRun& run) {
  const Comparison& c = run.comparison;
  if (run.sides.size() < 2) return {};
  if (!c.ended_alike()) return "ENDED OTHERWISE";
  if (const auto count = c.overlaps_that_differ(); count != 0) {
    return fmt::format("{} OVERLAP{} DIFFER{}", count, count == 1 ? "" : "S",
                       count == 1 ? "S" : "");
  }
  return {};
}

/// A row of a run that has no regions, or that fails for something else than a region.
MustacheData row_of_the_whole(const ReportRun& run, const std::string& id,
                              const std::string& failure) {
  MustacheData data;
  data.set("id", id);
  data.set("scenario", run.comparison.first_origin.scenario);
  for (const char* key : {"title", "process", "first", "second", "spread", "error"}) {
    data.set(key, "-");
  }
  data.set("slim_glyph", "");
  data.set("standing", "-");
  data.set("fails", !failure.empty());
  data.set("tone", failure.empty() ? "muted" : "bad");
  data.set("verdict", failure.empty() ? "no regions" : failure);
  return data;
}

std::vector<OverviewRow> rows_of(const ReportRun& run, const std::string& id) {
  std::vector<OverviewRow> rows;
  const MustacheData regions = region_rows(run, id);
  for (std::size_t i = 0; i < run.comparison.regions.size(); ++i) {
    const Badness badness = badness_of(run.comparison.regions[i], run);
    MustacheData data = regions.list_value()[i];
    data.set("fails", badness.fails);
    rows.push_back({badness, std::move(data)});
  }
  const std::string failure = failure_words(run);
  if (rows.empty() || !failure.empty()) {
    rows.push_back({{.fails = !failure.empty(), .error = 0}, row_of_the_whole(run, id, failure)});
  }
  return rows;
}

MustacheData accuracy_data(const char* standing, const Accuracy& accuracy) {
  MustacheData data;
  data.set("standing", standing);
  data.set("median", format_percent(accuracy.median_abs_error));
  data.set("p95", format_percent(accuracy.p95_abs_error));
  data.set("worst", format_percent(accuracy.worst_abs_error));
  data.set("regions", fmt::format("{}", accuracy.regions));
  data.set("share", format_percent(accuracy.share_within));
  return data;
}

MustacheData accuracies_of(std::span<const ReportRun> runs) {
  std::vector<Comparison> comparisons;
  for (const ReportRun& run : runs) {
    if (run.sides.size() == 2) comparisons.push_back(run.comparison);
  }
  MustacheData accuracies{MustacheData::type::list};
  const Accuracy predictions = accuracy_of(comparisons, Regions::Prediction);
  const Accuracy fits = accuracy_of(comparisons, Regions::Fit);
  if (predictions.regions != 0) accuracies << accuracy_data("Predictions", predictions);
  if (fits.regions != 0) accuracies << accuracy_data("Fit", fits);
  return accuracies;
}

}  // namespace

std::string run_id(std::size_t index) { return fmt::format("run{}", index + 1); }

std::vector<std::size_t> worst_first(std::span<const ReportRun> runs) {
  std::vector<std::size_t> order(runs.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, std::greater{},
                           [&](std::size_t i) { return badness_of(runs[i]); });
  return order;
}

MustacheData overview_data(std::span<const ReportRun> runs, std::span<const UnreadRun> unread) {
  std::vector<OverviewRow> rows;
  std::size_t regions = 0;
  std::size_t failures = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    regions += runs[i].comparison.regions.size();
    failures += badness_of(runs[i]).fails ? 1 : 0;
    for (OverviewRow& row : rows_of(runs[i], run_id(i))) rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(rows, std::greater{}, &OverviewRow::badness);
  MustacheData list{MustacheData::type::list};
  for (const OverviewRow& row : rows) list << row.data;
  MustacheData failed{MustacheData::type::list};
  for (const UnreadRun& run : unread) {
    MustacheData data;
    data.set("where", run.where);
    data.set("why", run.why);
    failed << data;
  }
  MustacheData data;
  data.set("heading", fmt::format("{} runs, {} regions", runs.size(), regions));
  data.set("failures", failures == 0   ? "Every run is within its tolerance."
                       : failures == 1 ? "1 run fails; it stands first."
                                       : fmt::format("{} runs fail; they stand first.", failures));
  data.set("has_unread", !unread.empty());
  data.set("unread_heading", fmt::format("{} could not be read", unread.size()));
  data.set("unread", failed);
  data.set("first_name", runs.front().comparison.first_name);
  data.set("second_name", runs.front().comparison.second_name);
  const double tolerance = runs.front().comparison.tolerance;
  data.set("tolerance_low", percent_on_glyph(-tolerance));
  data.set("tolerance_high", percent_on_glyph(tolerance));
  data.set("accuracies", accuracies_of(runs));
  data.set("rows", list);
  return data;
}

}  // namespace foretrace
