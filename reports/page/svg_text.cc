#include "reports/page/svg_text.h"

#include <boost/locale/utf.hpp>
#include <cmath>
#include <kainjow/mustache.hpp>

namespace foretrace {

std::string xml_escaped(const std::string& text) {
  using Utf8 = boost::locale::utf::utf_traits<char>;
  std::string shown;
  for (auto at = text.begin(); at != text.end();) {
    const auto begin = at;
    const auto code = Utf8::decode(at, text.end());
    const bool is_shown = code != boost::locale::utf::illegal &&
                          code != boost::locale::utf::incomplete &&
                          (code >= 0x20 || code == '\t' || code == '\n') &&
                          (code & 0xfffeU) != 0xfffeU && (code < 0x7f || code > 0x9f);
    if (is_shown) {
      shown.append(begin, at);
    } else {
      shown += "\ufffd";
    }
  }
  return kainjow::mustache::html_escape(shown);
}

double tick_step(double length, int most) {
  double step = std::pow(10, std::floor(std::log10(length / most)));
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    if (length / (step * factor) <= most) return step * factor;
  }
  return step * 10;
}

}  // namespace foretrace
