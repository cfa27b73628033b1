#include "reports/page/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/compare/accuracy.h"
#include "reports/compare/json.h"
#include "reports/compare/words.h"
#include "reports/page/assets.h"
#include "reports/page/html_rows.h"
#include "reports/page/lanes_svg.h"
#include "reports/table/text_table.h"
#include "scenarios/text/errors.h"

namespace foretrace {
namespace {

// A page of many runs stays small enough to open.
constexpr LayoutLimits kOneRun{.spans = 10'000, .lanes = 64, .narrow = 0.0005, .until_ns = 0};
constexpr LayoutLimits kManyRuns{.spans = 3'000, .lanes = 32, .narrow = 0.001, .until_ns = 0};

constexpr std::size_t kShortVersion = 20;

MustacheData facts_of(const ReportRun& run) {
  const Comparison& c = run.comparison;
  MustacheData facts{MustacheData::type::list};
  const auto add = [&](const std::string& name, const std::string& value) {
    if (value.empty()) return;
    MustacheData fact;
    fact.set("name", name);
    fact.set("value", value);
    facts << fact;
  };
  const auto add_side = [&](const Origin& origin, const std::string& name) {
    const std::string by = origin.producer.empty() ? "" : ", by " + origin.producer;
    add(name, origin.machine + by);
    std::string versions;
    for (const auto& [key, value] : origin.versions) {
      if (value.size() > kShortVersion) continue;
      versions += fmt::format("{}{} {}", versions.empty() ? "" : ", ", key, value);
    }
    add("versions", versions);
    for (const auto& [key, value] : origin.versions) {  // sentences, not numbers
      if (value.size() <= kShortVersion) continue;
      std::string words = key;
      std::ranges::replace(words, '_', ' ');
      add(words, value);
    }
  };
  add_side(c.first_origin, c.first_name);
  if (run.sides.size() == 2) add_side(c.second_origin, c.second_name);
  std::size_t samples = 0;
  std::size_t starts = 0;
  for (const RegionRow& row : c.regions) {
    if (!row.second) continue;
    samples = std::max(samples, row.second->samples);
    starts = std::max(starts, row.second->starts);
  }
  if (samples > 1) {
    add("repetitions",
        fmt::format("{} in {} process start{}", samples, starts, starts == 1 ? "" : "s"));
  }
  const auto bound =
      std::max(c.first_origin.clock_error_bound_ns, c.second_origin.clock_error_bound_ns);
  if (bound != 0) add("clocks agree to", format_time(static_cast<double>(bound)));
  add("program", c.first_origin.program_hash.substr(0, 16));
  return facts;
}

std::string regions_within(const Comparison& c) {
  const auto within = std::ranges::count_if(c.regions, [](const RegionRow& row) {
    return row.judgement != Judgement::Outside && row.judgement != Judgement::Missing;
  });
  return fmt::format("{} of {} region{} within tolerance ({:g} %, 1.5 us or the measured spread)",
                     within, c.regions.size(), c.regions.size() == 1 ? "" : "s", c.tolerance * 100);
}

/// What the regions' standing means for the figure above.
std::string standing_words(const Comparison& c) {
  const auto fits = std::ranges::count_if(c.regions, &RegionRow::is_fit);
  if (fits == 0) return " The model learned from none of these regions.";
  return fmt::format(
      " The model learned from {} of these {} regions: they say how well the fit holds, not how "
      "well it predicts.",
      fits, c.regions.size());
}

/// The first screen's big figure and what it means.
void set_verdict(MustacheData& data, const ReportRun& run) {
  const Comparison& c = run.comparison;
  const bool two = run.sides.size() == 2;
  const Accuracy accuracy = accuracy_of({&c, 1}, Regions::All);
  data.set("has_figure", two && accuracy.regions != 0);
  data.set("tone", c.within() ? "good" : "bad");
  if (!two) {
    data.set("statement", c.first_origin.measured ? "Measured only: nothing to compare with yet."
                                                  : "Predicted only: nothing to compare with yet.");
    data.set("meaning", c.first_origin.measured
                            ? "Predict it with 'foretrace simulate' and report both."
                            : "Measure it with 'foretrace-hw measure' and report both.");
    return;
  }
  if (accuracy.regions == 1) {
    const auto row =
        std::ranges::find_if(c.regions, [](const auto& r) { return r.error.has_value(); });
    data.set("figure", format_signed_percent(*row->error));
    data.set("figure_words", fmt::format("error of region {}", row->name));
    data.set("statement", regions_within(c) + ".");
  } else if (accuracy.regions != 0) {
    data.set("figure", format_percent(accuracy.median_abs_error));
    data.set("figure_words", "median |error|");
    data.set("statement", fmt::format("95th percentile {}, worst {}. {}.",
                                      format_percent(accuracy.p95_abs_error),
                                      format_percent(accuracy.worst_abs_error), regions_within(c)));
  } else {
    data.set("statement", "No region has a figure on both sides.");
  }
  const bool has_standing = c.standing() != "-";
  data.set("has_standing", has_standing);
  data.set("standing", c.standing());
  data.set("meaning", error_words(c) + "." + (has_standing ? standing_words(c) : ""));
}

MustacheData outcome_rows(const ReportRun& run) {
  const Comparison& c = run.comparison;
  MustacheData rows{MustacheData::type::list};
  const auto add = [&](const Outcome& outcome, const std::string& name) {
    if (outcome.kind == Outcome::Kind::Completed) return;
    std::string explanation;
    for (const std::string& line : outcome.explanation) explanation += line + "\n";
    MustacheData row;
    row.set("words", fmt::format("The {} run did not complete", name));
    row.set("explanation", explanation);
    rows << row;
  };
  add(c.first_outcome, c.first_name);
  if (run.sides.size() == 2) add(c.second_outcome, c.second_name);
  return rows;
}

MustacheData source_rows(const ReportRun& run, const std::string& run_id) {
  MustacheData rows{MustacheData::type::list};
  int number = 0;
  for (const std::string& line : run.source) {
    ++number;
    MustacheData row;
    row.set("id", line_anchor(run_id, number, true));
    row.set("number", fmt::format("{}", number));
    row.set("text", line.empty() ? " " : line);
    rows << row;
  }
  return rows;
}

std::string kicker_of(const ReportRun& run) {
  const Comparison& c = run.comparison;
  return run.sides.size() < 2 ? c.first_name + " only" : c.first_name + " against " + c.second_name;
}

std::string region_words(const Comparison& c) {
  return error_words(c) +
         ". Grey bar: p5 to p95 of the repetitions, each the slowest process's; "
         "shaded: the tolerance, on an axis from -25 % to +25 %. Traced: what "
         "tracing changed.";
}

std::string operation_words(const Comparison& c, bool two) {
  std::string words = "Median durations over all executions";
  if (c.first_origin.measured || two)
    words += " in the traced repetition, which lengthens host calls";
  if (!two) return words + ".";
  return words + fmt::format(". Begin: median of {} - {}, each from its run's begin.", c.first_name,
                             c.second_name);
}

MustacheData run_data(const ReportRun& run, const std::string& id, const LayoutLimits& limits) {
  const Comparison& c = run.comparison;
  const bool two = run.sides.size() == 2;
  const LanesPicture picture =
      draw_lanes(run.sides, limits, SvgUse::InReport, id + "-lanes", c.first_origin.scenario);
  MustacheData data;
  data.set("id", id);
  data.set("kicker", kicker_of(run));
  data.set("scenario", c.first_origin.scenario);
  data.set("file", c.first_origin.file);
  data.set("first_name", c.first_name);
  data.set("second_name", c.second_name);
  data.set("two", two);
  data.set("range_name", c.first_origin.measured ? "p5 .. p95" : "band");
  set_verdict(data, run);
  data.set("facts", facts_of(run));
  data.set("outcomes", outcome_rows(run));
  MustacheData worst = worst_operation_rows(run, id);
  data.set("has_worst", !worst.is_empty_list());
  data.set("worst", worst);
  data.set("timeline_words",
           two ? fmt::format("Each lane shows {} (pale) above {} (solid), both from their run's "
                             "begin. Thin lines lead from a host call to its work on the device.",
                             c.first_name, c.second_name)
               : std::string{"Thin lines lead from a host call to its work on the device."});
  data.set("note", picture.note);
  data.set("svg", picture.svg);
  data.set("regions", region_rows(run, id));
  data.set("region_words", two ? region_words(c) : "");
  data.set("operations", operation_rows(run, id));
  data.set("operation_words", operation_words(c, two));
  data.set("has_source", !run.source.empty());
  data.set("open_source", limits.spans == kOneRun.spans);
  data.set("source", source_rows(run, id));
  return data;
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

/// All regions of all runs, and the accuracy over them.
MustacheData overview_data(std::span<const ReportRun> runs) {
  std::vector<Comparison> comparisons;
  MustacheData rows{MustacheData::type::list};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].sides.size() == 2) comparisons.push_back(runs[i].comparison);
    const MustacheData of_run = region_rows(runs[i], fmt::format("run{}", i + 1));
    for (const MustacheData& row : of_run.list_value()) rows << row;
  }
  MustacheData accuracies{MustacheData::type::list};
  const Accuracy predictions = accuracy_of(comparisons, Regions::Prediction);
  const Accuracy fits = accuracy_of(comparisons, Regions::Fit);
  if (predictions.regions != 0) accuracies << accuracy_data("Predictions", predictions);
  if (fits.regions != 0) accuracies << accuracy_data("Fit", fits);
  MustacheData data;
  data.set("heading", fmt::format("{} runs, {} regions", runs.size(), rows.list_value().size()));
  data.set("first_name", runs.front().comparison.first_name);
  data.set("second_name", runs.front().comparison.second_name);
  data.set("accuracies", accuracies);
  data.set("rows", rows);
  return data;
}

std::string data_json(std::span<const ReportRun> runs) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const ReportRun& run : runs) {
    nlohmann::ordered_json json = to_json(run.comparison);
    if (run.sides.size() < 2) {  // nothing was compared
      for (const char* key : {"second", "standing", "tolerance", "within"}) json.erase(key);
      for (auto& region : json.at("regions")) {
        for (const char* key : {"verdict", "standing"}) region.erase(key);
      }
    }
    all.push_back(std::move(json));
  }
  const std::string text =
      all.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::string safe;  // inside a script element nothing may look like its end
  for (const char c : text) c == '<' ? safe += "\\u003c" : safe += c;
  return safe;
}

}  // namespace

std::string html_report(std::span<const ReportRun> runs) {
  FORETRACE_CHECK(!runs.empty(), "a report is of at least one run");
  const bool many = runs.size() > 1;
  MustacheData page;
  page.set("producer", "foretrace " FORETRACE_VERSION);
  page.set("title", many ? fmt::format("foretrace: {} runs", runs.size())
                         : "foretrace: " + runs.front().comparison.first_origin.scenario);
  page.set("colours_css", std::string{assets::colours_css});
  page.set("colours_dark_css", std::string{assets::colours_dark_css});
  page.set("lanes_css", std::string{assets::lanes_css});
  page.set("report_css", std::string{assets::report_css});
  page.set("report_js", std::string{assets::report_js});
  page.set("data", data_json(runs));
  if (many) page.set("overview", overview_data(runs));
  MustacheData sections{MustacheData::type::list};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    sections << run_data(runs[i], fmt::format("run{}", i + 1), many ? kManyRuns : kOneRun);
  }
  page.set("runs", sections);
  kainjow::mustache::mustache tmpl{std::string{assets::report_mustache}};
  FORETRACE_CHECK(tmpl.is_valid(), tmpl.error_message());
  return tmpl.render(page);
}

}  // namespace foretrace
