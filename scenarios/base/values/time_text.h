// Times as people read them.
#pragma once

#include <string>

namespace foretrace {

/// "0.123", "1.234", "12.34", "123.4", "1234"
std::string four_digits(double value);
/// "850 ns", "12.35 us", "1.204 s": four significant digits, unit by size.
std::string format_time(double ns);

}  // namespace foretrace
