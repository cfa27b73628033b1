#include "reports/compare/words.h"

#include <fmt/format.h>

#include "reports/table/text_table.h"

namespace foretrace {

std::string band_words(const RegionRow& row) {
  if (!row.low_ns || !row.high_ns || *row.low_ns == *row.high_ns) return "-";
  return format_time(*row.low_ns) + " .. " + format_time(*row.high_ns);
}

std::string spread_words(const std::optional<RegionFigure>& figure) {
  if (!figure || figure->samples < 2) return "-";
  return format_time(figure->p5_ns) + " .. " + format_time(figure->p95_ns);
}

std::string median_words(const std::optional<RegionFigure>& figure) {
  return figure ? format_time(figure->median_ns) : "-";
}

std::string samples_words(const std::optional<RegionFigure>& figure) {
  return figure ? fmt::format("{} in {}", figure->samples, figure->starts) : "-";
}

std::string part_words(std::uint32_t part) {
  return part == 0 ? "host call" : part == 1 ? "device" : fmt::format("device {}", part);
}

std::string unmatched_words(const OperationRow& row, const Comparison& comparison) {
  std::string words;
  if (row.only_first != 0) {
    words = fmt::format("{} only {}", row.only_first, comparison.first_name);
  }
  if (row.only_second != 0) {
    words += fmt::format("{}{} only {}", words.empty() ? "" : ", ", row.only_second,
                         comparison.second_name);
  }
  return words;
}

std::string begin_words(const OperationRow& row) {
  return format_or_dash(row.begin_offset_ns, [](double ns) {
    return fmt::format("{}{}", ns < 0 ? "" : "+", format_time(ns));
  });
}

std::string error_words(const Comparison& comparison) {
  return fmt::format("error = ({} - {}) / {}", comparison.first_name, comparison.second_name,
                     comparison.second_name);
}

}  // namespace foretrace
