// Tables that read well on a console and paste into an issue as Markdown; numbers with their unit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/base/values/time_text.h"

namespace foretrace {

/// "+1.6 %"; four digits before the point do without decimals.
std::string format_signed_percent(double fraction);
/// "1.6 %", "-1.6 %"
std::string format_percent(double fraction);
/// "4 MiB", "1000 B": in the largest binary unit that divides it, else with one decimal.
std::string format_size(std::uint64_t bytes);
/// Of a region, as tables name it: "step / 20" where its time is divided.
std::string divided_name(const std::string& name, std::uint64_t per);
/// "1,234,567"
std::string format_count(std::uint64_t count);

/// Quoted as RFC 4180 says, where it must be; a text that a spreadsheet would compute ("=x",
/// "-2+x") stands behind a mark.
std::string csv_cell(const std::string& text);

/// "-" for what is not there.
template <class Format>
std::string format_or_dash(const std::optional<double>& value, Format format) {
  return value ? format(*value) : "-";
}

class TextTable {
 public:
  enum class Align { Left, Right };
  void column(std::string heading, Align align);
  void row(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  /// Ends in a newline. A bar inside a cell is escaped, as Markdown wants.
  std::string markdown() const;
  /// Markdown without padding: one changed cell is one changed line of the document.
  std::string document() const;
  /// With a heading line.
  std::string csv() const;

 private:
  std::vector<std::string> headings_;
  std::vector<Align> aligns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace foretrace
