#include "scenarios/base/values/time_text.h"

#include <fmt/format.h>

#include <cmath>

namespace foretrace {

std::string four_digits(double value) {
  const double size = std::abs(value);
  const int decimals = size >= 999.95 ? 0 : size >= 99.995 ? 1 : size >= 9.9995 ? 2 : 3;
  return fmt::format("{:.{}f}", value, decimals);
}

std::string format_time(double ns) {
  const double size = std::abs(ns);
  if (size < 999.5) return fmt::format("{:.0f} ns", ns);
  if (size < 999.95e3) return four_digits(ns / 1e3) + " us";
  if (size < 999.95e6) return four_digits(ns / 1e6) + " ms";
  return four_digits(ns / 1e9) + " s";
}

}  // namespace foretrace
