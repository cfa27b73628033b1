#include "sim/fit_products/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "scenarios/text/csv.h"
#include "scenarios/text/errors.h"
#include "scenarios/text/text_file.h"

namespace foretrace::fit_products {
namespace {

products::Arithmetic arithmetic_of(const CsvLine& line) {
  const std::string_view type = line.text("type");
  if (type == "bfloat16" || type == "float16") return products::Arithmetic::Half;
  if (type == "tf32") return products::Arithmetic::Tf32;
  if (type == "float32") return products::Arithmetic::Float32;
  if (type == "float64") return products::Arithmetic::Float64;
  throw UsageError{fmt::format("{}: unknown type '{}'", line.where(), type)};
}

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

Row row_of(const CsvLine& line) {
  const auto count = [&](std::string_view column) {
    return static_cast<std::int64_t>(line.number(column));
  };
  Row row;
  row.shape = {.m = count("m"),
               .n = count("n"),
               .k = count("k"),
               .arithmetic = arithmetic_of(line),
               .transposes_a = line.text("transa") == "T",
               .transposes_b = line.text("transb") == "T",
               .batch = count("batch"),
               .accumulates = line.number("beta") != 0};
  const bool half = row.shape.arithmetic == products::Arithmetic::Half;
  if (half && line.text("c_type") == "float32") row.shape.result_bytes = 4;
  row.contents =
      line.text("contents") == "zeros" ? products::Contents::Zeros : products::Contents::Random;
  row.in_graph = line.text("timed_by") == "graph";
  row.burst = line.number("burst_us") * 1e-6;
  row.sustained = line.number("sustained_us") * 1e-6;
  row.sustained_clock = line.number("sustained_sm_clock_mhz") * 1e6;
  row.plan = plan_of(line.text("kernel"), count("lt_split_k"));
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
  std::vector<Row> rows;
  for (const CsvLine& line : parse_csv(text, file)) {
    Row row = row_of(line);
    if (row.burst > 0 && row.sustained > 0) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace foretrace::fit_products
