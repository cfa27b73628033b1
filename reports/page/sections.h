// A page of sections: words, curves, a table. What the commands without a timeline answer with.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace foretrace {

/// A table with words above it, before it is HTML or Markdown.
struct Section {
  struct Cell {
    std::string text;
    std::filesystem::path link = {};  ///< relative to the page; empty for none
    bool is_number = true;
  };
  std::string heading, words;
  std::vector<Cell> columns;
  std::vector<std::vector<Cell>> rows;
  std::string svg = {};  ///< above the table: draw_curves()
};

struct SectionPage {
  std::string kicker;    ///< "foretrace plan"
  std::string heading;   ///< also the title
  std::string headline;  ///< the answer in one sentence
  std::string meaning;   ///< what the figures are, small
  std::vector<Section> sections;
};

/// One self-contained file; light and dark.
std::string html_of(const SectionPage& page);

}  // namespace foretrace
