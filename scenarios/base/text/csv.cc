#include "scenarios/base/text/csv.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <sstream>

#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/text_file.h"

namespace foretrace {
namespace {

constexpr std::string_view kMarkOfSpreadsheets = "\xef\xbb\xbf";  // as spreadsheets write it

std::vector<std::string> csv_cells(std::string_view line, const std::string& where) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += line[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  if (quoted) throw UsageError{fmt::format("{}: a quote does not end", where)};
  for (std::string& cell : cells) {
    const bool is_marked = cell.size() > 1 && cell[0] == '\'' &&
                           std::string_view{"=+-@\t"}.find(cell[1]) != std::string_view::npos;
    if (is_marked) cell.erase(0, 1);
  }
  return cells;
}

std::shared_ptr<const CsvLine::Columns> csv_columns(const std::vector<std::string>& names,
                                                    const std::string& where) {
  auto columns = std::make_shared<CsvLine::Columns>();
  for (const std::string& name : names) {
    if (!columns->emplace(name, columns->size()).second) {
      throw UsageError{fmt::format("{}: column '{}' twice", where, name)};
    }
  }
  return columns;
}

}  // namespace

CsvLine::CsvLine(std::string where, std::shared_ptr<const Columns> columns,
                 std::vector<std::string> cells)
    : where_{std::move(where)}, columns_{std::move(columns)}, cells_{std::move(cells)} {
  if (cells_.size() != columns_->size()) {
    throw UsageError{fmt::format("{}: {} cells; the table has {} columns", where_, cells_.size(),
                                 columns_->size())};
  }
}

std::string_view CsvLine::text(std::string_view column) const {
  const auto at = columns_->find(column);
  if (at == columns_->end()) throw UsageError{fmt::format("{}: no column '{}'", where_, column)};
  return cells_[at->second];
}

double CsvLine::number(std::string_view column) const {
  const std::string_view cell = text(column);
  if (cell.empty()) return 0;
  double value = 0;
  const char* const last = cell.data() + cell.size();
  const auto [end, error] = std::from_chars(cell.data(), last, value);
  if (error != std::errc{} || end != last || !(std::abs(value) < 1e15)) {
    throw UsageError{fmt::format("{}: {} is '{}', not a number", where_, column, cell)};
  }
  return value;
}

std::vector<CsvLine> read_csv(const std::filesystem::path& file) {
  return parse_csv(read_text_file(file), file.string());
}

std::vector<CsvLine> parse_csv(const std::string& text, const std::string& file,
                               std::size_t first_line) {
  std::istringstream in{text};
  std::shared_ptr<const CsvLine::Columns> columns;
  std::vector<CsvLine> lines;
  std::string line;
  for (std::size_t number = first_line; std::getline(in, line); ++number) {
    if (number == first_line && line.starts_with(kMarkOfSpreadsheets))
      line.erase(0, kMarkOfSpreadsheets.size());
    if (line.empty() || line == "\r") continue;       // at the end, of some programs
    if (!columns && line.starts_with('#')) continue;  // what a table says of itself
    const std::string where = fmt::format("{}:{}", file, number);
    std::vector<std::string> cells = csv_cells(line, where);
    if (!columns) {
      columns = csv_columns(cells, where);
    } else {
      lines.emplace_back(where, columns, std::move(cells));
    }
  }
  if (!columns) throw UsageError{fmt::format("{}: an empty file", file)};
  return lines;
}

}  // namespace foretrace
