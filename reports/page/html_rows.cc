#include "reports/page/html_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "reports/compare/words.h"
#include "reports/table/text_table.h"

namespace foretrace {
namespace {

constexpr std::size_t kWorstRegions = 6;

SpanClass class_of_row(const OperationRow& row) {
  Lane lane;
  lane.kind = row.part == 0 ? LaneKind::HostThread : LaneKind::Stream;
  OpRow op;
  op.kind = row.kind;
  return class_of(op, lane);
}

std::string title_of_row(const OperationRow& row) {
  return row.label.empty() ? row.kind : row.kind + " " + row.label;
}

std::string row_anchor(const std::string& run_id, const OperationRow& row) {
  return fmt::format("{}-op{}-{}", run_id, row.op, row.part);
}

/// A glyph's axis goes from -25 % to +25 %: the place of an error on it, 0 to 1.
double place_of_error(double error) { return 0.5 + std::clamp(error / 0.25, -1.0, 1.0) / 2; }

/// A measured spread's ends, as errors against its median.
std::pair<double, double> spread_of(const RegionFigure& figure) {
  return {place_of_error(figure.p5_ns / figure.median_ns - 1),
          place_of_error(figure.p95_ns / figure.median_ns - 1)};
}

/// The error as a dot, over the tolerance and the measured spread.
std::string error_glyph(const RegionRow& row, double tolerance) {
  if (!row.error) return {};
  const auto x = [](double place) { return 6 + place * 120; };
  const auto [low, high] = spread_of(*row.second);
  return fmt::format(
      "<svg class=\"glyph\" viewBox=\"0 0 132 18\" aria-hidden=\"true\">"
      "<rect class=\"tolerance\" x=\"{:.1f}\" y=\"1\" width=\"{:.1f}\" height=\"16\"/>"
      "<rect class=\"spread\" x=\"{:.1f}\" y=\"6\" width=\"{:.1f}\" height=\"6\"/>"
      "<path class=\"zero\" d=\"M66 1V17\"/>"
      "<circle class=\"dot{}\" cx=\"{:.1f}\" cy=\"9\" r=\"4\"/></svg>",
      x(place_of_error(-tolerance)), (place_of_error(tolerance) - place_of_error(-tolerance)) * 120,
      x(low), std::max((high - low) * 120, 1.0), row.judgement == Judgement::Outside ? " out" : "",
      x(place_of_error(*row.error)));
}

/// The same in a few letters, for the table of all regions: drawn by report.css.
std::string slim_glyph(const RegionRow& row) {
  if (!row.error) return {};
  const auto [low, high] = spread_of(*row.second);
  return fmt::format("<i class=\"slim\" style=\"--l:{:.0f}%;--w:{:.0f}%;--e:{:.0f}%\"></i>",
                     low * 100, (high - low) * 100, place_of_error(*row.error) * 100);
}

const char* tone_of(const RegionRow& row, const ReportRun& run) {
  if (run.sides.size() < 2) return "muted";
  const bool bad = row.judgement == Judgement::Outside || row.judgement == Judgement::Missing;
  return bad ? "bad" : "good";
}

std::string facts_of(const OperationRow& row, const ReportRun& run) {
  const OpRow& op = run.comparison.ops[row.op];
  std::string facts = row.size_bytes == 0 ? "" : format_size(row.size_bytes);
  if (!op.shape.empty()) facts = fmt::format("{}", fmt::join(op.shape, " x "));
  if (op.sizes.size() > 1) {
    const auto [low, high] = std::ranges::minmax(op.sizes);
    facts = format_size(low) + " .. " + format_size(high);
  }
  if (!op.variant.empty()) facts += (facts.empty() ? "" : ", ") + op.variant;
  return facts;
}

/// What worst and complete tables share.
MustacheData operation_row(const OperationRow& row, const ReportRun& run,
                           const std::string& run_id) {
  MustacheData data;
  data.set("row_id", row_anchor(run_id, row));
  data.set("line_id", line_anchor(run_id, row.line, !run.source.empty()));
  data.set("line", fmt::format("{}", row.line));
  data.set("class", std::string{name_of(class_of_row(row))});
  data.set("title", title_of_row(row));
  data.set("part", part_words(row, run.comparison));
  data.set("of", facts_of(row, run));
  data.set("first", format_or_dash(row.first_ns, format_time));
  data.set("second", format_or_dash(row.second_ns, format_time));
  data.set("error", format_or_dash(row.error, format_signed_percent));
  data.set("achieved", achieved_words(row, run.comparison));
  return data;
}

}  // namespace

std::string percent_on_glyph(double error) {
  return fmt::format("{:.0f}%", place_of_error(error) * 100);
}

std::string line_anchor(const std::string& run_id, int line, bool has_source) {
  return has_source ? fmt::format("{}-L{}", run_id, line) : run_id;
}

MustacheData region_rows(const ReportRun& run, const std::string& run_id) {
  const Comparison& c = run.comparison;
  MustacheData rows{MustacheData::type::list};
  for (const RegionRow& row : c.regions) {
    MustacheData data;
    data.set("id", run_id);
    data.set("scenario", c.first_origin.scenario);
    data.set("title", title_words(row));
    data.set("process", process_words(row));
    data.set("achieved", achieved_words(row, c));
    data.set("line_id", line_anchor(run_id, row.line, !run.source.empty()));
    data.set("line", fmt::format("{}", row.line));
    data.set("first", median_words(row.first));
    data.set("second", median_words(row.second));
    data.set("range", c.first_origin.measured ? spread_words(row.first) : band_words(row));
    data.set("spread", spread_words(row.second));
    data.set("samples", samples_words(run.sides.size() < 2 ? row.first : row.second));
    data.set("error", format_or_dash(row.error, format_signed_percent));
    data.set("traced", format_or_dash(row.tracing_change, format_signed_percent));
    data.set("glyph", error_glyph(row, c.tolerance));
    data.set("slim_glyph", slim_glyph(row));
    data.set("standing", run.sides.size() < 2 ? "-" : c.standing(row));
    data.set("tone", tone_of(row, run));
    data.set("verdict", run.sides.size() < 2 ? "-" : to_string(row.judgement));
    rows << data;
  }
  return rows;
}

MustacheData operation_rows(const ReportRun& run, const std::string& run_id) {
  MustacheData rows{MustacheData::type::list};
  for (const OperationRow& row : run.comparison.operations) {
    MustacheData data = operation_row(row, run, run_id);
    data.set("n", format_count(row.matched != 0 ? row.matched
                                                : std::max(row.only_first, row.only_second)));
    data.set("begin", begin_words(row));
    data.set("unmatched", run.sides.size() < 2 ? "" : note_words(row, run.comparison));
    rows << data;
  }
  return rows;
}

MustacheData worst_operation_rows(const ReportRun& run, const std::string& run_id) {
  std::vector<const OperationRow*> worst;
  for (const OperationRow& row : run.comparison.operations) {
    const SpanClass kind = class_of_row(row);
    const bool is_work = kind == SpanClass::Kernel || kind == SpanClass::Copy ||
                         kind == SpanClass::Nccl || kind == SpanClass::HostWork ||
                         kind >= SpanClass::Waiting;
    if (is_work && row.matched != 0 && row.total_difference_ns != 0) worst.push_back(&row);
  }
  std::ranges::stable_sort(worst, std::greater{}, [](const OperationRow* row) {
    return std::abs(row->total_difference_ns);
  });
  worst.resize(std::min(worst.size(), kWorstRegions));
  MustacheData rows{MustacheData::type::list};
  for (const OperationRow* row : worst) {
    MustacheData data = operation_row(*row, run, run_id);
    data.set("sum", fmt::format("{}{}", row->total_difference_ns < 0 ? "" : "+",
                                format_time(row->total_difference_ns)));
    rows << data;
  }
  return rows;
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
  if (run.left_out_lines > 0) {
    MustacheData row;
    row.set("number", "...");
    row.set("text", fmt::format("{} more lines are not shown", format_count(run.left_out_lines)));
    rows << row;
  }
  return rows;
}

}  // namespace foretrace
