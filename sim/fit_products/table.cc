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

/// "256x128" at `at`, and what follows; none if no two numbers are there.
std::optional<std::pair<std::int64_t, std::int64_t>> sides(std::string_view name, std::size_t at) {
  std::pair<std::int64_t, std::int64_t> result;
  const char* const end = name.data() + name.size();
  if (at >= name.size()) return std::nullopt;
  const auto rows = std::from_chars(name.data() + at, end, result.first);
  if (rows.ec != std::errc{} || rows.ptr == end || *rows.ptr != 'x') return std::nullopt;
  if (std::from_chars(rows.ptr + 1, end, result.second).ec != std::errc{}) return std::nullopt;
  return result;
}

/// The tile of "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT": the third part, rows first.
std::optional<products::Plan> nvjet_plan(std::string_view kernel) {
  std::size_t at = 0;
  for (int part = 0; part < 3; ++part) at = kernel.find('_', at) + 1;
  const auto tile = sides(kernel, at);
  if (!tile) return std::nullopt;
  return products::Plan{.tile_m = tile->first,
                        .tile_n = tile->second,
                        .cooperative = kernel.find("_coop") != std::string_view::npos};
}

/// "sm80_xmma_gemm_..._tilesize128x64x8_..." has the columns first (its grid says so),
/// "cutlass_80_simt_sgemm_128x64_8x5_nn_align1" the rows.
std::optional<products::Plan> older_plan(std::string_view kernel) {
  constexpr std::string_view kTilesize = "tilesize";
  if (const std::size_t at = kernel.find(kTilesize); at != std::string_view::npos) {
    const auto tile = sides(kernel, at + kTilesize.size());
    if (!tile) return std::nullopt;
    return products::Plan{.tile_m = tile->second, .tile_n = tile->first, .cooperative = true};
  }
  if (kernel.find("cutlass_") == std::string_view::npos) return std::nullopt;
  std::size_t at = kernel.find("gemm_");
  while (at != std::string_view::npos && (at = kernel.find('_', at)) != std::string_view::npos) {
    if (const auto tile = sides(kernel, ++at)) {
      return products::Plan{
          .tile_m = tile->first, .tile_n = tile->second, .cooperative = true, .padded = true};
    }
  }
  return std::nullopt;
}

std::optional<products::Plan> plan_of(const CsvLine& line, const products::Shape& shape) {
  const std::string_view kernel = line.text("kernel");
  const auto count = [&](std::string_view column) {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(line.number(column)));
  };
  if (kernel.starts_with("nvjet_")) {
    auto plan = nvjet_plan(kernel);
    if (plan) plan->split = count("lt_split_k");
    return plan;
  }
  const bool half = shape.arithmetic == products::Arithmetic::Half;
  if (!half && shape.arithmetic != products::Arithmetic::Float32) return std::nullopt;
  if (family_of(shape) == products::Family::Half) return std::nullopt;
  auto plan = older_plan(kernel);
  if (plan) {
    plan->resident = count("blocks_per_sm");
    plan->split = shape.batch > 1 ? 1 : count("grid_z");
    plan->inside = plan->split > 1 && count("kernels") == 1;
  }
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
  row.shape.brain = line.text("type") == "bfloat16";
  row.contents =
      line.text("contents") == "zeros" ? products::Contents::Zeros : products::Contents::Random;
  row.in_graph = line.text("timed_by") == "graph";
  row.burst = line.number("burst_us") * 1e-6;
  row.sustained = line.number("sustained_us") * 1e-6;
  row.sustained_clock = line.number("sustained_sm_clock_mhz") * 1e6;
  row.plan = plan_of(line, row.shape);
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
