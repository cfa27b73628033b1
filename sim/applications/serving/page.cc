#include <fmt/format.h>

#include <algorithm>

#include "reports/page/curves.h"
#include "reports/page/sections.h"
#include "reports/table/text_table.h"
#include "sim/applications/serving/answers.h"
#include "sim/applications/serving/predict.h"

namespace foretrace::serving {
namespace {

constexpr std::size_t kMostCurves = 4;  // machines of a picture

Section::Cell words(std::string text) { return {.text = std::move(text), .is_number = false}; }
Section::Cell number(std::string text) { return {.text = std::move(text)}; }

std::string limits_words(const Limits& limits) {
  std::string text = "not overloaded";
  if (limits.ttft_ms) text += fmt::format(", first token within {:g} ms", *limits.ttft_ms);
  if (limits.tpot_ms) text += fmt::format(", each further one within {:g} ms", *limits.tpot_ms);
  return text + " for nine requests in ten";
}

Section choices_section(const Asked& asked, const Planned& planned, std::size_t& row) {
  Section section{.heading = planned.serving.name + ": as few GPUs as hold the limits",
                  .words =
                      "Of each number of GPUs that share a layer (tensor) so few engines. "
                      "Times are of nine requests in ten.",
                  .columns = {number("row"), words("machine"), number("tensor"), number("engines"),
                              number("GPUs"), number("TTFT p90, ms"), number("TPOT p90, ms"),
                              number("output tokens/s/GPU"), number("cache in use")},
                  .rows = {}};
  if (!asked.cost.empty()) section.columns.push_back(number("cost of 10^6 tokens"));
  section.columns.push_back(words("limits"));
  for (const Choice& one : planned.choices) {
    const bool holds = one.replicas > 0;
    const double rate =
        one.output_tokens_per_s / static_cast<double>(std::max<std::int64_t>(1, one.gpus()));
    const auto cost = holds ? cost_of(asked, one, rate) : std::nullopt;
    const auto if_fits = [&](std::string text) { return number(one.fits ? std::move(text) : "-"); };
    std::vector<Section::Cell> cells{number(fmt::format("{}", ++row)),
                                     words(one.machine),
                                     number(fmt::format("{}", one.tensor)),
                                     number(holds ? fmt::format("{}", one.replicas) : "-"),
                                     number(holds ? fmt::format("{}", one.gpus()) : "-"),
                                     if_fits(fmt::format("{:.1f}", one.ttft_ms)),
                                     if_fits(fmt::format("{:.2f}", one.tpot_ms)),
                                     number(holds ? fmt::format("{:.0f}", rate) : "-"),
                                     if_fits(format_percent(one.cache))};
    if (!asked.cost.empty()) cells.push_back(number(cost ? fmt::format("{:.2f}", *cost) : "-"));
    cells.push_back(words(verdict_of(one)));
    section.rows.push_back(std::move(cells));
  }
  return section;
}

/// What each user and each GPU get, of one engine under growing load.
Section loads_section(const Asked& asked, const Planned& planned, std::size_t index) {
  Section section{
      .heading = planned.serving.name + ": throughput against time per token",
      .words =
          "One engine of each kind, with so many requests at a time. Rows and points are those "
          "that no other number of requests or GPUs of the machine outdoes; shaded: the band. "
          "To the right users get their tokens faster, upwards a GPU makes more of them.",
      .columns = {words("machine"), number("tensor"), number("requests at a time"),
                  number("TPOT p50, ms"), number("tokens/s of a user"), number("TTFT p50, ms"),
                  number("output tokens/s/GPU"), number("band")},
      .rows = {}};
  if (!asked.cost.empty()) section.columns.push_back(number("cost of 10^6 tokens"));
  Chart chart{.title = "Tokens per second of each GPU",
              .x = {.title = "output tokens/s of a user"},
              .y = {.title = "output tokens/s of a GPU"},
              .curves = {}};
  Chart first{.title = "Time to the first token",
              .x = {.title = "output tokens/s of a GPU"},
              .y = {.title = "TTFT p50, ms", .scale = ChartAxis::Scale::Log10},
              .curves = {}};
  for (const auto& [machine, all] : best_of(planned.choices)) {
    if (chart.curves.size() < kMostCurves) {
      Curve curve{machine, static_cast<Curve::Look>(chart.curves.size()), {}};
      Curve waits{machine, curve.look, {}};
      for (const Best& one : all) {
        waits.points.push_back({one.gpu_tokens_per_s, one.load->ttft_ms});
        curve.points.push_back({one.user_tokens_per_s, one.gpu_tokens_per_s, one.low, one.high});
      }
      std::ranges::sort(curve.points, {}, &CurvePoint::x);
      std::ranges::sort(waits.points, {}, &CurvePoint::x);
      chart.curves.push_back(std::move(curve));
      first.curves.push_back(std::move(waits));
    }
    for (const Best& one : all) {
      std::vector<Section::Cell> cells{words(machine),
                                       number(fmt::format("{}", one.choice->tensor)),
                                       number(fmt::format("{:g}", one.load->requests)),
                                       number(fmt::format("{:.2f}", one.load->tpot_ms)),
                                       number(fmt::format("{:.1f}", one.user_tokens_per_s)),
                                       number(fmt::format("{:.1f}", one.load->ttft_ms)),
                                       number(fmt::format("{:.0f}", one.gpu_tokens_per_s)),
                                       number(fmt::format("{:.0f} .. {:.0f}", one.low, one.high))};
      const auto cost = cost_of(asked, *one.choice, one.gpu_tokens_per_s);
      if (!asked.cost.empty()) cells.push_back(number(cost ? fmt::format("{:.2f}", *cost) : "-"));
      section.rows.push_back(std::move(cells));
    }
  }
  section.svg = draw_curves(chart, fmt::format("pareto{}", index)) +
                draw_curves(first, fmt::format("ttft{}", index));
  return section;
}

Section commands_section(const std::vector<Planned>& planned) {
  Section section{
      .heading = "How to start them",
      .words = "vLLM's arguments that say the same, of the fewest GPUs of each machine.",
      .columns = {words("scenario"), words("machine"), number("engines"), words("each engine")},
      .rows = {}};
  for (const Planned& one : planned) {
    std::vector<std::string> machines;
    for (const Choice& choice : one.choices) {
      if (choice.replicas == 0 || std::ranges::count(machines, choice.machine) > 0) continue;
      machines.push_back(choice.machine);
      section.rows.push_back({words(one.serving.name), words(choice.machine),
                              number(fmt::format("{}", choice.replicas)),
                              words(vllm_command(one.serving, choice))});
    }
  }
  return section;
}

}  // namespace

std::string page_of(const Asked& asked, const std::vector<Planned>& planned) {
  SectionPage page{.kicker = "foretrace plan-serving",
                   .heading = planned.size() == 1 ? planned.front().serving.name
                                                  : fmt::format("{} scenarios", planned.size()),
                   .headline = {},
                   .meaning = fmt::format("Asked: {}. ", limits_words(asked.limits)),
                   .sections = {}};
  for (const Planned& one : planned) {
    page.headline +=
        fmt::format("{}{}{}", page.headline.empty() ? "" : "; ",
                    planned.size() > 1 ? one.serving.name + ": " : "", fewest_words(one));
    std::string note = engine_note(one.serving);
    if (const auto at = note.find("note: "); at != std::string::npos) note = note.substr(at + 6);
    while (note.ends_with('\n')) note.pop_back();
    if (page.meaning.find(note) == std::string::npos) page.meaning += "Note: " + note + ". ";
  }
  page.headline += ".";
  page.meaning += rests_notes(planned);
  std::size_t row = 0, index = 0;
  for (const Planned& one : planned) {
    page.sections.push_back(choices_section(asked, one, row));
    page.sections.push_back(loads_section(asked, one, index++));
  }
  page.sections.push_back(commands_section(planned));
  return html_of(page);
}

}  // namespace foretrace::serving
