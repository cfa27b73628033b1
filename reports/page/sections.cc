#include "reports/page/sections.h"

#include <kainjow/mustache.hpp>

#include "reports/page/assets.h"
#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

kainjow::mustache::data section_cells(const std::vector<Section::Cell>& cells) {
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

std::string html_of(const SectionPage& page) {
  using kainjow::mustache::data;
  data sections{data::type::list};
  for (const Section& section : page.sections) {
    data rows{data::type::list};
    for (const auto& cells : section.rows) {
      data row;
      row.set("cells", section_cells(cells));
      rows << row;
    }
    data item;
    item.set("heading", section.heading);
    item.set("words", section.words);
    item.set("svg", section.svg);
    item.set("columns", section_cells(section.columns));
    item.set("rows", rows);
    sections << item;
  }
  data view;
  view.set("kicker", page.kicker);
  view.set("heading", page.heading);
  view.set("headline", page.headline);
  view.set("meaning", page.meaning);
  constexpr std::size_t kLong = 400;  // letters: the figures come first then
  view.set("is_long", page.meaning.size() > kLong);
  view.set("sections", sections);
  view.set("colours_css", std::string{assets::colours_css});
  view.set("colours_dark_css", std::string{assets::colours_dark_css});
  view.set("parts_css", std::string{assets::parts_css});
  view.set("parts_js", std::string{assets::parts_js});
  view.set("report_css", std::string{assets::report_css});
  view.set("curves_css", std::string{assets::curves_css});
  kainjow::mustache::mustache html{std::string{assets::sections_mustache}};
  FORETRACE_CHECK(html.is_valid(), html.error_message());
  return html.render(view);
}

}  // namespace foretrace
