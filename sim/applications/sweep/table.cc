#include "sim/applications/sweep/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "reports/table/text_table.h"
#include "sim/applications/sweep/written_row.h"

namespace foretrace::sweep {
namespace {

using Json = nlohmann::ordered_json;
using Cells = std::map<std::string, std::string>;

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// By column, and the columns in the order in which they appear.
Cells cells_of(const Json& row, std::vector<std::string>& columns) {
  Cells cells;
  const auto put = [&](const std::string& column, const Json& value) {
    cells[column] = text_of(value);
    if (std::ranges::count(columns, column) == 0) columns.push_back(column);
  };
  for (const auto& [key, value] : row.items()) {
    if (key == "regions") {
      for (const Json& region : value) {
        const std::string name = region.at("name");
        for (const char* of : {"us", "low_us", "high_us", "ratio", "ratio_low", "ratio_high"}) {
          if (region.contains(of)) put(name + "." + of, region.at(of));
        }
      }
    } else if (key == kTries) {
      continue;  // of those who go on
    } else if (value.is_object()) {
      for (const auto& [name, of] : value.items()) put(name, of);
    } else {
      put(key, value);
    }
  }
  return cells;
}

}  // namespace

std::string csv_of(const std::vector<Json>& rows) {
  std::vector<std::string> columns;
  std::vector<Cells> lines;
  for (const Json& row : rows) lines.push_back(cells_of(row, columns));
  std::vector<std::string> head;
  for (const std::string& column : columns) head.push_back(csv_cell(column));
  std::string text = fmt::format("{}\n", fmt::join(head, ","));
  for (const Cells& line : lines) {
    std::vector<std::string> cells;
    for (const std::string& column : columns) {
      const auto at = line.find(column);
      cells.push_back(at == line.end() ? "" : csv_cell(at->second));
    }
    text += fmt::format("{}\n", fmt::join(cells, ","));
  }
  return text;
}

}  // namespace foretrace::sweep
