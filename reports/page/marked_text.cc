#include "reports/page/marked_text.h"

#include <fmt/format.h>

#include "scenarios/base/text/errors.h"

namespace foretrace {

std::string with_marked_text(std::string_view document, std::string_view name,
                             std::string_view text, const std::string& file) {
  const std::string begin = fmt::format("<!-- begin: {} -->\n", name);
  const std::string end = fmt::format("<!-- end: {} -->", name);
  const auto first = document.find(begin);
  const auto last = document.find(end, first == std::string_view::npos ? 0 : first);
  if (first == std::string_view::npos || last == std::string_view::npos) {
    throw UsageError{
        fmt::format("{}: the lines '<!-- begin: {} -->' and '{}' are not there", file, name, end)};
  }
  std::string result{document.substr(0, first + begin.size())};
  result += "\n";  // Markdown: a table needs an empty line before it
  result += text;
  result += "\n";
  result += document.substr(last);
  return result;
}

}  // namespace foretrace
