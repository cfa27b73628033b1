#include "reports/page/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "reports/compare/accuracy.h"
#include "reports/compare/host_speed.h"
#include "reports/compare/json.h"
#include "reports/compare/words.h"
#include "reports/page/assets.h"
#include "reports/page/html_rows.h"
#include "reports/page/kinds_section.h"
#include "reports/page/lanes_svg.h"
#include "reports/page/overview.h"
#include "reports/page/packed.h"
#include "reports/page/sweeps.h"
#include "reports/page/uses_section.h"
#include "reports/table/text_table.h"
#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

/// How much of a run is shown.
struct Detail {
  LayoutLimits limits;
  bool picture = true;
  bool source = true;
};
constexpr Detail kOneRun{
    {.spans = 4'000, .lanes = 64, .narrow = 0.0005, .until_ns = 0}, true, true};
// A page of many runs stays small enough to open: what takes most gives way first.
constexpr std::size_t kDetailsBytes = 1'300'000;
constexpr std::array<Detail, 5> kManyRuns{
    {{{.spans = 3'000, .lanes = 32, .narrow = 0.001, .until_ns = 0}, true, true},
     {{.spans = 400, .lanes = 32, .narrow = 0.003, .until_ns = 0}, true, true},
     {{.spans = 100, .lanes = 24, .narrow = 0.01, .until_ns = 0}, true, true},
     {{.spans = 50, .lanes = 16, .narrow = 0.03, .until_ns = 0}, true, false},
     {{.spans = 1, .lanes = 1, .narrow = 1, .until_ns = 0}, false, false}}};

constexpr std::size_t kShortVersion = 20;

/// Of the device that holds most; empty where no side says it.
std::string peak_words(const ReportRun& run) {
  const Comparison& c = run.comparison;
  const auto most = std::ranges::max_element(c.memory, {}, [](const MemoryRow& row) {
    return std::max(row.first.value_or(0), row.second.value_or(0));
  });
  if (most == c.memory.end()) return {};
  if (run.sides.size() == 1) return memory_words(most->first);
  return fmt::format("{} {}, {} {}", c.first_name, memory_words(most->first), c.second_name,
                     memory_words(most->second));
}

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
  if (run.step) {
    if (run.sides.size() == 2)
      add("step, " + c.first_name, run.step->figure + ", " + run.step->words);
    add("of it", run.step->limit);
    add("memory of a GPU", run.step->memory);
    add("micro-batches", run.step->left);
  }
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
        fmt::format("{} in {} process launch{}", samples, starts, starts == 1 ? "" : "es"));
  }
  const auto bound =
      std::max(c.first_origin.clock_error_bound_ns, c.second_origin.clock_error_bound_ns);
  if (bound != 0) add("clocks agree to", format_time(static_cast<double>(bound)));
  add("peak memory", peak_words(run));
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
  if (!two && run.step) {
    data.set("has_figure", true);
    data.set("tone", "");
    data.set("figure", run.step->figure);
    data.set("figure_words", "a step, predicted");
    const std::string& words = run.step->words;
    data.set("statement", words.substr(words.find(": ") + 2) + ".");
    data.set("meaning", "Measure it with 'foretrace-hw measure' and report both.");
    return;
  }
  if (!two) {
    data.set("statement", c.first_origin.measured ? "Measured only: nothing to compare with yet."
                                                  : "Predicted only: nothing to compare with yet.");
    data.set("meaning",
             c.first_origin.measured ? "Predict it with 'foretrace simulate' and report both."
             : c.is_serving()        ? "Measure it with hw/serving and report both."
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

std::string kicker_of(const ReportRun& run) {
  const Comparison& c = run.comparison;
  return run.sides.size() < 2 ? c.first_name + " only" : c.first_name + " against " + c.second_name;
}

std::string region_words(const Comparison& c) {
  const std::string stand_ins = stand_in_words(c);
  const std::string host = host_speed_words(c.first_origin, c.second_origin);
  return error_words(c) +
         (stand_ins.empty() ? std::string{} : ". " + stand_ins.substr(0, stand_ins.size() - 1)) +
         (host.empty() ? std::string{} : ". " + host.substr(0, host.size() - 1)) +
         ". Grey bar: p5 to p95 of the repetitions, each the slowest process's; "
         "shaded: the tolerance, on an axis from -25 % to +25 %. Traced: what "
         "tracing changed.";
}

std::string operation_words(const ReportRun& run, bool two) {
  const Comparison& c = run.comparison;
  if (c.is_serving()) {
    return "Median durations: of requests each one's, of iterations those of like size, in their "
           "order.";
  }
  std::string words = "Median durations over all executions";
  if (run.left_out > 0) {
    words = fmt::format("Those {}; {} more are not shown. {}",
                        two ? "whose differences add up to most" : "that take most time",
                        format_count(run.left_out), words);
  }
  if (c.first_origin.measured || two)
    words += " in the traced repetition, which lengthens host calls";
  if (!two) return words + ".";
  return words + fmt::format(". Begin: median of {} - {}, each from its run's begin.", c.first_name,
                             c.second_name);
}

/// The pictures of its sweeps, two for each.
MustacheData sweep_rows(const ReportRun& run, const std::string& id) {
  MustacheData rows{MustacheData::type::list};
  std::size_t number = 0;
  for (const Sweep& sweep : sweeps_of(run.comparison, run.sides.size() == 2)) {
    const std::string name = fmt::format("{}-sweep{}", id, ++number);
    MustacheData row;
    row.set("name", sweep.name);
    row.set("time", draw_curves(sweep.time, name + "-time"));
    row.set("rate", draw_curves(sweep.rate, name + "-rate"));
    rows << row;
  }
  return rows;
}

/// The picture and the words below its heading.
void set_picture(MustacheData& data, const ReportRun& run, const std::string& id,
                 const Detail& detail, SvgUse use) {
  data.set("has_picture", detail.picture);
  if (!detail.picture) return;
  const Comparison& c = run.comparison;
  // A run that was not traced has no lanes of its own.
  std::vector<Side> sides;
  std::string note;
  for (const Side& side : run.sides) {
    if (!side.timeline->spans.empty()) sides.push_back(side);
    if (side.timeline->spans.empty()) note = fmt::format("The {} run was not traced. ", side.name);
  }
  if (sides.empty()) sides = run.sides;
  const LanesPicture picture =
      draw_lanes(sides, detail.limits, use, id + "-lanes", c.first_origin.scenario);
  const std::string lines = c.is_serving()
                                ? "A process is an engine: its requests above its iterations."
                                : "Thin lines lead from a host call to its work on the device.";
  data.set("timeline_words",
           sides.size() == 2
               ? fmt::format("Each lane shows {} (pale) above {} (solid), both from their run's "
                             "begin. {}",
                             c.first_name, c.second_name, lines)
               : lines);
  data.set("note", note + picture.note);
  data.set("svg", picture.svg);
}

/// What is seen of a run before its details are.
MustacheData heading_data(const ReportRun& run, const std::string& id) {
  const Comparison& c = run.comparison;
  MustacheData data;
  data.set("id", id);
  data.set("kicker", kicker_of(run));
  data.set("scenario", c.first_origin.scenario);
  data.set("file", c.first_origin.file);
  data.set("where", run.where);
  set_verdict(data, run);
  return data;
}

MustacheData run_data(const ReportRun& shown, const std::string& id, const Detail& detail,
                      SvgUse use) {
  ReportRun run = shown;
  if (!detail.source) run.source.clear();
  const Comparison& c = run.comparison;
  const bool two = run.sides.size() == 2;
  MustacheData data = heading_data(run, id);
  data.set("first_name", c.first_name);
  data.set("second_name", c.second_name);
  data.set("two", two);
  data.set("range_name", c.first_origin.measured ? "p5 .. p95" : "band");
  data.set("facts", facts_of(run));
  data.set("outcomes", outcome_rows(run));
  MustacheData worst = worst_operation_rows(run, id);
  data.set("has_worst", !worst.is_empty_list());
  data.set("worst", worst);
  set_picture(data, run, id, detail, use);
  data.set("uses", uses_section(run));
  data.set("kinds", kinds_section(run));
  data.set("requests", requests_section(run, id));
  data.set("regions", region_rows(run, id));
  MustacheData sweeps = sweep_rows(run, id);
  data.set("has_sweeps", !sweeps.is_empty_list());
  data.set("sweeps", sweeps);
  const std::string more =
      run.left_out_regions == 0
          ? ""
          : fmt::format("{} more are not shown. ", format_count(run.left_out_regions));
  data.set("region_words", more + (two ? region_words(c) : ""));
  set_families(data, c);
  data.set("operations", operation_rows(run, id));
  data.set("operation_words", operation_words(run, two));
  data.set("has_source", !run.source.empty());
  data.set("open_source", use == SvgUse::InReport);
  data.set("source", source_rows(run, id));
  return data;
}

std::string render(std::string_view text, MustacheData& data) {
  kainjow::mustache::mustache tmpl{std::string{text}};
  FORETRACE_CHECK(tmpl.is_valid(), tmpl.error_message());
  return tmpl.render(data);
}

/// `whole`: operations and overlaps, too.
std::string data_json(std::span<const ReportRun> runs, bool whole) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const ReportRun& run : runs) {
    nlohmann::ordered_json json = to_json(run.comparison);
    if (run.sides.size() < 2) {  // nothing was compared
      for (const char* key : {"second", "standing", "tolerance", "within"}) json.erase(key);
      for (auto& region : json.at("regions")) {
        for (const char* key : {"verdict", "standing"}) region.erase(key);
      }
    }
    if (!whole) {
      for (const char* key : {"operations", "overlaps"}) json.erase(key);
      for (auto& region : json.at("regions")) region.erase("processes");
    }
    const auto note = [&](const char* key, std::size_t count) {
      if (whole && count > 0) json[key] = count;
    };
    note("operations_left_out", run.left_out);
    note("overlaps_left_out", run.left_out_overlaps);
    note("regions_left_out", run.left_out_regions);
    all.push_back(std::move(json));
  }
  const std::string text =
      all.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::string safe;  // inside a script element nothing may look like its end
  for (const char c : text) c == '<' ? safe += "\\u003c" : safe += c;
  return safe;
}

}  // namespace

std::string html_report(std::span<const ReportRun> runs, std::span<const UnreadRun> unread) {
  FORETRACE_CHECK(!runs.empty(), "a report is of at least one run");
  const bool many = runs.size() + unread.size() > 1;
  MustacheData page;
  page.set("producer", "foretrace " FORETRACE_VERSION);
  page.set("title", many ? fmt::format("foretrace: {} runs", runs.size())
                         : "foretrace: " + runs.front().comparison.first_origin.scenario);
  page.set("colours_css", std::string{assets::colours_css});
  page.set("colours_dark_css", std::string{assets::colours_dark_css});
  page.set("lanes_css", std::string{assets::lanes_css});
  page.set("curves_css", std::string{assets::curves_css});
  page.set("parts_css", std::string{assets::parts_css});
  page.set("report_css", std::string{assets::report_css});
  page.set("parts_js", std::string{assets::parts_js});
  page.set("report_js", std::string{assets::report_js});
  page.set("details_js", std::string{assets::details_js});
  const std::string data = data_json(runs, !many);
  page.set("data", many ? packed_element(data, "data")
                        : "<script type=\"application/json\" id=\"data\">" + data + "</script>");
  page.set("data_words", many ? "The regions' figures are in it as JSON, packed: zlib and base64"
                              : "The figures above are in it as JSON");
  page.set("many", many);
  if (many) page.set("overview", overview_data(runs, unread));
  MustacheData sections{MustacheData::type::list};
  const std::vector<std::size_t> order = worst_first(runs);
  const auto packed = [&](std::size_t place, std::size_t level) {
    const std::size_t i = order[place];
    MustacheData run = run_data(runs[i], run_id(i), kManyRuns[level], SvgUse::Packed);
    return packed_element(render(assets::run_mustache, run));
  };
  const std::vector<std::string> details =
      many ? made_within(kDetailsBytes, order.size(), kManyRuns.size(), packed)
           : std::vector<std::string>{};
  for (std::size_t place = 0; place < order.size(); ++place) {
    const std::size_t i = order[place];
    MustacheData section = many ? heading_data(runs[i], run_id(i))
                                : run_data(runs[i], run_id(i), kOneRun, SvgUse::InReport);
    section.set("run", many ? details[place] : render(assets::run_mustache, section));
    sections << section;
  }
  page.set("runs", sections);
  return render(assets::report_mustache, page);
}

}  // namespace foretrace
