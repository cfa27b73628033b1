#include "sim/fit_products/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <sstream>
#include <string_view>

#include "scenarios/text/errors.h"
#include "scenarios/text/text_file.h"

namespace foretrace::fit_products {
namespace {

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    const std::size_t comma = line.find(',');
    cells.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

/// A line of the table, by the columns' names.
class Line {
 public:
  Line(std::string where, const std::map<std::string, std::size_t, std::less<>>& columns,
       std::vector<std::string_view> cells)
      : where_{std::move(where)}, columns_{columns}, cells_{std::move(cells)} {}

  std::string_view text(std::string_view column) const {
    const auto at = columns_.find(column);
    if (at == columns_.end()) throw UsageError{fmt::format("{}: no column {}", where_, column)};
    if (at->second >= cells_.size()) {
      throw UsageError{
          fmt::format("{}: {} cells, {} are needed", where_, cells_.size(), columns_.size())};
    }
    return cells_[at->second];
  }
  double number(std::string_view column) const {
    const std::string_view cell = text(column);
    if (cell.empty()) return 0;
    double value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc{} || end != cell.data() + cell.size() || !(std::abs(value) < 1e15)) {
      throw UsageError{fmt::format("{}: {} is '{}', not a number", where_, column, cell)};
    }
    return value;
  }
  std::int64_t count(std::string_view column) const {
    return static_cast<std::int64_t>(number(column));
  }
  products::Arithmetic arithmetic() const {
    const std::string_view type = text("type");
    if (type == "bfloat16" || type == "float16") return products::Arithmetic::Half;
    if (type == "tf32") return products::Arithmetic::Tf32;
    if (type == "float32") return products::Arithmetic::Float32;
    if (type == "float64") return products::Arithmetic::Float64;
    throw UsageError{fmt::format("{}: unknown type '{}'", where_, type)};
  }

 private:
  std::string where_;
  const std::map<std::string, std::size_t, std::less<>>& columns_;
  std::vector<std::string_view> cells_;
};

/// "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT": the third part is the tile.
std::optional<products::Plan> plan_of(std::string_view kernel, std::int64_t split) {
  if (!kernel.starts_with("nvjet_")) return std::nullopt;
  std::size_t at = 0;
  for (int part = 0; part < 3; ++part) at = kernel.find('_', at) + 1;
  products::Plan plan;
  const char* const end = kernel.data() + kernel.size();
  const auto rows = std::from_chars(kernel.data() + at, end, plan.tile_m);
  if (rows.ec != std::errc{} || rows.ptr == end || *rows.ptr != 'x') return std::nullopt;
  if (std::from_chars(rows.ptr + 1, end, plan.tile_n).ec != std::errc{}) return std::nullopt;
  plan.cooperative = kernel.find("_coop") != std::string_view::npos;
  plan.split = std::max<std::int64_t>(1, split);
  return plan;
}

Row row_of(const Line& line) {
  Row row;
  row.shape = {.m = line.count("m"),
               .n = line.count("n"),
               .k = line.count("k"),
               .arithmetic = line.arithmetic(),
               .transposes_a = line.text("transa") == "T",
               .transposes_b = line.text("transb") == "T",
               .batch = line.count("batch"),
               .accumulates = line.number("beta") != 0};
  const bool half = row.shape.arithmetic == products::Arithmetic::Half;
  if (half && line.text("c_type") == "float32") row.shape.result_bytes = 4;
  row.contents =
      line.text("contents") == "zeros" ? products::Contents::Zeros : products::Contents::Random;
  row.in_graph = line.text("timed_by") == "graph";
  row.burst = line.number("burst_us") * 1e-6;
  row.sustained = line.number("sustained_us") * 1e-6;
  row.sustained_clock = line.number("sustained_sm_clock_mhz") * 1e6;
  row.plan = plan_of(line.text("kernel"), line.count("lt_split_k"));
  row.type = line.text("type");
  row.purpose = line.text("family");
  row.judges = line.text("part") == "judge";
  return row;
}

}  // namespace

std::vector<Row> read_table(const std::filesystem::path& file) {
  return parse_table(read_text_file(file), file.string());
}

std::vector<Row> parse_table(const std::string& text, const std::string& file) {
  std::istringstream lines{text};
  std::string line;
  std::map<std::string, std::size_t, std::less<>> columns;
  std::vector<Row> rows;
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    const std::vector<std::string_view> cells = cells_of(line);
    if (columns.empty()) {
      for (const std::string_view name : cells) columns.emplace(name, columns.size());
      continue;
    }
    Row row = row_of({fmt::format("{}:{}", file, number), columns, cells});
    if (row.burst > 0 && row.sustained > 0) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace foretrace::fit_products
