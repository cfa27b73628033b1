#include <fmt/format.h>

#include <algorithm>

#include "reports/page/curves.h"
#include "reports/page/sections.h"
#include "reports/table/text_table.h"
#include "sim/applications/plan/write.h"

namespace foretrace::plan {
namespace {

constexpr std::size_t kMostCurves = 4;  // machines of a picture

/// For each machine one curve through the best row of each number of GPUs.
template <class ValueOf>
Chart chart_of(const std::vector<Answer>& answers, std::string title, std::string axis,
               bool has_band, const ValueOf& value_of) {
  std::vector<Curve> curves;
  for (const Answer& answer : answers) {
    if (answer.best.empty()) continue;
    auto curve = std::ranges::find(curves, answer.machine, &Curve::name);
    if (curve == curves.end()) {
      if (curves.size() == kMostCurves) continue;
      const auto look = static_cast<Curve::Look>(curves.size());
      curves.push_back({.name = answer.machine, .look = look, .points = {}});
      curve = std::prev(curves.end());
    }
    const Row& row = answer.best.front();
    CurvePoint point{.x = static_cast<double>(answer.gpus), .y = value_of(row)};
    if (has_band) {  // of a rate: the slow end of the step is the low one
      point.low = point.y / row.prediction.high;
      point.high = point.y / row.prediction.low;
    }
    curve->points.push_back(point);
  }
  return {.title = std::move(title),
          .x = {.title = "GPUs", .scale = ChartAxis::Scale::Log2},
          .y = {.title = std::move(axis)},
          .curves = std::move(curves)};
}

std::string curves_of(const Question& question, const std::vector<Answer>& answers) {
  if (answers.size() < 2) return {};
  std::string svg = draw_curves(chart_of(answers, "Tokens per second of each GPU", "tokens/s", true,
                                         [](const Row& row) { return row.tokens_per_gpu_second; }),
                                "tokens");
  svg += draw_curves(chart_of(answers, "Time of a step", "s", false,
                              [](const Row& row) { return row.prediction.seconds; }),
                     "step");
  if (question.cost_per_gpu_hour) {
    svg += draw_curves(chart_of(answers, "Cost of 10^12 tokens", "cost", false,
                                [](const Row& row) { return row.cost.value_or(0); }),
                       "cost");
  } else {
    svg += draw_curves(chart_of(answers, "GPU-hours for 10^12 tokens", "hours", false,
                                [](const Row& row) { return row.gpu_hours; }),
                       "hours");
  }
  return svg;
}

}  // namespace

std::string page_of(const Question& question, const std::vector<Answer>& answers) {
  Section table{.heading = "The best layouts", .words = {}, .columns = {}, .rows = {}};
  Section remedies{.heading = "What would help",
                   .words =
                       "Each simulated: the same layout on a machine of which one thing is "
                       "twice as fast, or without a cause that foretrace explain knows. Less time "
                       "for each token.",
                   .columns = {{.text = "row"},
                               {.text = "what if", .is_number = false},
                               {.text = "what it is", .is_number = false},
                               {.text = "less time"}},
                   .rows = {}};
  Section files{.heading = "Their scenarios",
                .words = "foretrace plan ... --write-scenario ROW FILE writes one.",
                .columns = {{.text = "row"}, {.text = "scenario", .is_number = false}},
                .rows = {}};
  Section rests{.heading = "On what they rest",
                .words = "Where more than a fifth of the GPUs' time is of numbers that nobody "
                         "measured.",
                .columns = {{.text = "row"}, {.text = "what", .is_number = false}},
                .rows = {}};
  const std::vector<Column> columns = columns_of(question);
  for (const Column& column : columns) {
    table.columns.push_back({.text = column.name, .is_number = column.is_number});
  }
  for_each_row(answers, [&](const Answer& answer, const Row& row, std::size_t number) {
    const auto cells = cells_of(question, answer, row, number);
    std::vector<Section::Cell> line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      line.push_back({.text = cells[i], .is_number = columns[i].is_number});
    }
    table.rows.push_back(std::move(line));
    const auto add = [&](const std::string& what, const std::string& words, double gain) {
      remedies.rows.push_back({{.text = std::to_string(number)},
                               {.text = what, .is_number = false},
                               {.text = words, .is_number = false},
                               {.text = format_percent(gain)}});
    };
    for (const Remedy& remedy : row.remedies) add(remedy.what, remedy.words, remedy.gain);
    for (const explain::Gain& cause : row.causes) {
      add("without " + std::string{name_of(cause.cause)}, std::string{change_of(cause.cause)},
          cause.gain);
    }
    for (const std::string& note : rests_of(answer, row)) {
      rests.rows.push_back({{.text = std::to_string(number)}, {.text = note, .is_number = false}});
    }
    files.rows.push_back({{.text = std::to_string(number)},
                          {.text = scenario_text(question, row.layout), .is_number = false}});
  });
  Section curves{.heading = "Over the number of GPUs", .words = {}, .columns = {}, .rows = {}};
  curves.svg = curves_of(question, answers);
  SectionPage page{.kicker = "foretrace plan",
                   .heading = fmt::format("{} on {}", question.model_name, question.machine.name),
                   .headline = headline_of(question, answers),
                   .meaning = meaning_of(question, answers),
                   .sections = {table}};
  if (!curves.svg.empty()) page.sections.push_back(curves);
  page.sections.push_back(remedies);
  if (!rests.rows.empty()) page.sections.push_back(rests);
  page.sections.push_back(files);
  return html_of(page);
}

}  // namespace foretrace::plan
