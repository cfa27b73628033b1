#include <fmt/format.h>

#include <kainjow/mustache.hpp>

#include "reports/accuracy/page.h"
#include "reports/page/assets.h"
#include "scenarios/text/errors.h"

namespace foretrace {
namespace {

constexpr std::string_view kHeading = "How exact the predictions are";
constexpr std::string_view kMeaning =
    "Median to worst: of |error|, error being predicted / measured - 1, measured the median over "
    "process starts. Bias: the median error. In band: share of measured medians inside the "
    "predicted band, which is meant to hold 80 %. Noise: median over regions of (slowest - fastest "
    "start) / median: no model can be nearer.";

std::string escaped_bars(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) {
    text.insert(at, "\\");
  }
  return text;
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

kainjow::mustache::data html_cells(const std::vector<Section::Cell>& cells) {
  kainjow::mustache::data list{kainjow::mustache::data::type::list};
  for (const Section::Cell& cell : cells) {
    kainjow::mustache::data item;
    item.set("text", cell.text);
    item.set("class", cell.is_number ? "n" : "w");
    if (!cell.link.empty()) item.set("link", cell.link.generic_string());
    list << item;
  }
  return list;
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
  using kainjow::mustache::data;
  data sections{data::type::list};
  for (const Section& section : page.sections) {
    data rows{data::type::list};
    for (const auto& cells : section.rows) {
      data row;
      row.set("cells", html_cells(cells));
      rows << row;
    }
    data item;
    item.set("heading", section.heading);
    item.set("words", section.words);
    item.set("columns", html_cells(section.columns));
    item.set("rows", rows);
    sections << item;
  }
  data view;
  view.set("heading", std::string{kHeading});
  view.set("headline", page.headline);
  view.set("meaning", std::string{kMeaning});
  view.set("sections", sections);
  view.set("colours_css", std::string{assets::colours_css});
  view.set("colours_dark_css", std::string{assets::colours_dark_css});
  view.set("report_css", std::string{assets::report_css});
  kainjow::mustache::mustache html{std::string{assets::accuracy_mustache}};
  FORETRACE_CHECK(html.is_valid(), html.error_message());
  return html.render(view);
}

}  // namespace foretrace
