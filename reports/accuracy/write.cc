#include <fmt/format.h>

#include "reports/accuracy/page.h"

namespace foretrace {
namespace {

constexpr std::string_view kHeading = "How exact the predictions are";
constexpr std::string_view kMeaning =
    "Median to worst: of |error|, error being predicted / measured - 1, measured the median over "
    "process launches. Bias: the median error. In band: share of measured medians inside the "
    "predicted band, which is meant to hold 80 %. Noise: median over regions of (slowest - fastest "
    "start) / median: no model can be nearer.";

std::string escaped_bars(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string markdown_row(const std::vector<Section::Cell>& cells) {
  std::string line = "|";
  for (const Section::Cell& cell : cells) {
    const std::string text = escaped_bars(cell.text);
    line += cell.link.empty() ? fmt::format(" {} |", text)
                              : fmt::format(" [{}]({}) |", text, cell.link.generic_string());
  }
  return line + "\n";
}

}  // namespace

std::string accuracy_markdown(const AccuracyPage& page) {
  std::string text = fmt::format("# {}\n\n{}\n\n{}\n", kHeading, page.headline, kMeaning);
  for (const Section& section : page.sections) {
    text += fmt::format("\n## {}\n\n", section.heading);
    if (!section.words.empty()) text += section.words + "\n\n";
    text += markdown_row(section.columns) + "|";
    for (const Section::Cell& column : section.columns) text += column.is_number ? "---:|" : "---|";
    text += "\n";
    for (const auto& row : section.rows) text += markdown_row(row);
  }
  return text;
}

std::string accuracy_html(const AccuracyPage& page) {
  return html_of({.kicker = "foretrace accuracy",
                  .heading = std::string{kHeading},
                  .headline = page.headline,
                  .meaning = std::string{kMeaning},
                  .sections = page.sections});
}

}  // namespace foretrace
