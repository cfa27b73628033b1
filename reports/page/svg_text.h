// What every picture of a page shares: text that may stand in XML, and the ticks of an axis.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <utility>

namespace foretrace {

/// A picture that is written from its beginning to its end.
class SvgWriter {
 protected:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  std::string out_;
};

/// XML has no control characters and no half code points: a name may have been cut.
std::string xml_escaped(const std::string& text);

/// 1, 2 or 5 times a power of ten: the first that gives at most `most` steps in `length` > 0.
double tick_step(double length, int most);

}  // namespace foretrace
