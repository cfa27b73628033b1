// Tables that our own tools and scripts wrote: comma-separated, names of the columns in line 1
// or behind lines that begin with '#', cells quoted as RFC 4180 says where they must be; no line
// break inside a cell. A mark before a cell that a spreadsheet would take for a formula ('=x) is
// none of its text.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace foretrace {

/// A line of the table, its cells by the columns' names.
class CsvLine {
 public:
  using Columns = std::map<std::string, std::size_t, std::less<>>;
  CsvLine(std::string where, std::shared_ptr<const Columns> columns,
          std::vector<std::string> cells);

  /// "file:line"
  const std::string& where() const { return where_; }
  bool has(std::string_view column) const { return columns_->contains(column); }
  /// Throws UsageError when the table has no such column.
  std::string_view text(std::string_view column) const;
  /// 0 for an empty cell. Throws UsageError for what is no number below 1e15.
  double number(std::string_view column) const;

 private:
  std::string where_;
  std::shared_ptr<const Columns> columns_;
  std::vector<std::string> cells_;
};

/// Throws UsageError naming file and line: not readable, a line of too few or too many cells, a
/// quote that does not end, a column twice.
std::vector<CsvLine> read_csv(const std::filesystem::path& file);
/// The same of a text; `file` is named in errors, and `first_line` is the text's first line there.
std::vector<CsvLine> parse_csv(const std::string& text, const std::string& file,
                               std::size_t first_line = 1);

}  // namespace foretrace
