#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "reports/page/curves.h"
#include "reports/page/uses_section.h"
#include "reports/table/text_table.h"

namespace foretrace {
namespace {

constexpr double kSecond = 1e9, kMs = 1e6;  // nanoseconds
constexpr std::size_t kMostPoints = 240;    // of a curve over time

Curve::Look look_of(const Side& side) {
  return side.timeline->origin.measured ? Curve::Look::Measured : Curve::Look::Predicted;
}

/// Sums over engines as they change, thinned out to the largest of each stretch of time.
class OverTime {
 public:
  void add(std::uint32_t process, std::int64_t at_ns, double value) {
    changes_.emplace_back(at_ns, std::pair{process, value});
  }
  std::vector<CurvePoint> points() {
    std::ranges::stable_sort(changes_, {}, [](const auto& one) { return one.first; });
    std::vector<CurvePoint> all;
    if (changes_.empty()) return all;
    const double length = std::max(1.0, static_cast<double>(changes_.back().first));
    std::map<std::uint32_t, double> now;
    double sum = 0;
    for (const auto& [at_ns, change] : changes_) {
      double& own = now[change.first];
      sum += change.second - own;
      own = change.second;
      const auto at = static_cast<double>(at_ns);
      const auto place = [&](double ns) { return static_cast<int>(ns / length * kMostPoints); };
      if (!all.empty() && place(all.back().x * kSecond) == place(at)) {
        all.back().y = std::max(all.back().y, sum);
        continue;
      }
      all.push_back({.x = at / kSecond, .y = sum});
    }
    return all;
  }

 private:
  std::vector<std::pair<std::int64_t, std::pair<std::uint32_t, double>>> changes_;
};

std::string occupancy_svg(const ReportRun& run, const std::string& id) {
  Chart chart{
      .title = "Requests at a time", .x = {.title = "s"}, .y = {.title = "requests"}, .curves = {}};
  for (const Side& side : run.sides) {
    if (!side.timeline->serving) continue;
    OverTime running, waiting;
    for (const auto& one : side.timeline->serving->occupancy) {
      running.add(one.process, one.at_ns, static_cast<double>(one.running));
      waiting.add(one.process, one.at_ns, static_cast<double>(one.waiting));
    }
    chart.curves.push_back({side.name + ", running", look_of(side), running.points()});
    chart.curves.push_back(
        {side.name + ", waiting",
         side.timeline->origin.measured ? Curve::Look::Fourth : Curve::Look::Third,
         waiting.points()});
  }
  return draw_curves(chart, id + "-occupancy");
}

std::string cache_svg(const ReportRun& run, const std::string& id) {
  Chart chart{.title = "KV cache in use", .x = {.title = "s"}, .y = {.title = "GB"}, .curves = {}};
  for (const Side& side : run.sides) {
    OverTime used;
    for (const MemorySample& one : side.timeline->memory) {
      used.add(one.process, one.at_ns, static_cast<double>(one.allocated) / kSecond);
    }
    chart.curves.push_back({side.name, look_of(side), used.points()});
  }
  return draw_curves(chart, id + "-cache");
}

/// "TTFT p90" of "TTFT": 90.
std::optional<double> percent_of(const std::string& name, const std::string& what) {
  if (!name.starts_with(what + " p")) return std::nullopt;
  const char* const at = name.data() + what.size() + 2;
  int percent = 0;
  if (std::from_chars(at, name.data() + name.size(), percent).ec != std::errc{}) return {};
  return percent;
}

/// Percentiles of one kind of time; of a prediction with its band.
std::string percentiles_svg(const ReportRun& run, const std::string& what, const std::string& id) {
  Chart chart{.title = what,
              .x = {.title = "percentile of the requests"},
              .y = {.title = "ms"},
              .curves = {}};
  for (std::size_t side = 0; side < run.sides.size(); ++side) {
    Curve curve{run.sides[side].name, look_of(run.sides[side]), {}};
    for (const RegionRow& row : run.comparison.regions) {
      const auto percent = percent_of(row.name, what);
      const auto& figure = side == 0 ? row.first : row.second;
      if (!percent || !figure) continue;
      CurvePoint point{.x = *percent, .y = figure->median_ns / kMs};
      if (side == 0 && row.low_ns && row.high_ns) {
        point.low = *row.low_ns / kMs;
        point.high = *row.high_ns / kMs;
      }
      curve.points.push_back(point);
    }
    std::ranges::sort(curve.points, {}, &CurvePoint::x);
    chart.curves.push_back(std::move(curve));
  }
  return draw_curves(chart, id);
}

std::string headline_of(const ServingFacts& facts, const std::string& side) {
  return fmt::format(
      "{}: {} requests with {} output tokens in {} iterations of {} {} engine{} on {} GPU{}; {} of "
      "the requests' time is waiting, {} preemption{}. ",
      side, format_count(static_cast<std::size_t>(facts.requests)),
      format_count(static_cast<std::size_t>(facts.output_tokens)),
      format_count(static_cast<std::size_t>(facts.iterations)), facts.engines, facts.engine,
      facts.engines == 1 ? "" : "s", facts.gpus, facts.gpus == 1 ? "" : "s",
      format_percent(facts.waiting_share), facts.preemptions, facts.preemptions == 1 ? "" : "s");
}

void add_tables(MustacheData& section, const ServingFacts& facts) {
  MustacheData limits{MustacheData::type::list}, what_if{MustacheData::type::list};
  for (const auto& one : facts.limits) {
    MustacheData row;
    row.set("what", one.what);
    row.set("share", format_percent(one.share));
    limits << row;
  }
  for (const auto& one : facts.what_if) {
    MustacheData row;
    row.set("change", one.change);
    row.set("ttft_p50", format_time(static_cast<double>(one.ttft_p50_ns)));
    row.set("ttft_p90", format_time(static_cast<double>(one.ttft_p90_ns)));
    row.set("tpot_p50", format_time(static_cast<double>(one.tpot_p50_ns)));
    row.set("tokens", fmt::format("{:.0f}", one.tokens_per_s));
    what_if << row;
  }
  section.set("has_limits", !facts.limits.empty());
  section.set("limits", limits);
  section.set("has_what_if", !facts.what_if.empty());
  section.set("what_if", what_if);
}

}  // namespace

MustacheData requests_section(const ReportRun& run, const std::string& run_id) {
  MustacheData section;
  const bool any = std::ranges::any_of(
      run.sides, [](const Side& side) { return side.timeline->serving.has_value(); });
  section.set("has_requests", any);
  if (!any) return section;
  section.set("scenario", run.comparison.first_origin.scenario);
  std::string headline;
  for (const Side& side : run.sides) {
    if (side.timeline->serving) headline += headline_of(*side.timeline->serving, side.name);
  }
  section.set("headline", headline);
  section.set("occupancy", occupancy_svg(run, run_id));
  section.set("cache", cache_svg(run, run_id));
  section.set("ttft", percentiles_svg(run, "TTFT", run_id + "-ttft"));
  section.set("tpot", percentiles_svg(run, "TPOT", run_id + "-tpot"));
  section.set("itl", percentiles_svg(run, "ITL", run_id + "-itl"));
  section.set("e2e", percentiles_svg(run, "end to end", run_id + "-e2e"));
  section.set("words",
              "TTFT: from the arrival to the first token; TPOT: from there to the last one, by "
              "further tokens; ITL: between two tokens, each a value. Shaded: the prediction's "
              "band.");
  const auto& facts = run.sides.front().timeline->serving;
  if (facts) add_tables(section, *facts);
  return section;
}

}  // namespace foretrace
