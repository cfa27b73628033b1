// What every picture of a page shares: text that may stand in XML, and the ticks of an axis.
#pragma once

#include <string>

namespace foretrace {

/// XML has no control characters and no half code points: a name may have been cut.
std::string xml_escaped(const std::string& text);

/// 1, 2 or 5 times a power of ten: the first that gives at most `most` steps in `length` > 0.
double tick_step(double length, int most);

}  // namespace foretrace
