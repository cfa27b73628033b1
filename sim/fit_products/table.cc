#include "sim/fit_products/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "reports/capture/unpack.h"
#include "scenarios/text/csv.h"
#include "scenarios/text/errors.h"
#include "scenarios/text/text_file.h"
#include "sim/fit_products/kernel_plan.h"

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

Launch launch_of(const CsvLine& line) {
  const auto count = [&](std::string_view column) {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(line.number(column)));
  };
  return {.kernel = line.text("kernel"),
          .kernels = count("kernels"),
          .grid = {count("grid_x"), count("grid_y"), count("grid_z")},
          .cluster = {count("cluster_x"), count("cluster_y")},
          .blocks_per_sm = count("blocks_per_sm")};
}

products::Shape shape_of(const CsvLine& line) {
  const auto count = [&](std::string_view column) {
    return static_cast<std::int64_t>(line.number(column));
  };
  products::Shape shape{.m = count("m"),
                        .n = count("n"),
                        .k = count("k"),
                        .arithmetic = arithmetic_of(line),
                        .transposes_a = line.text("transa") == "T",
                        .transposes_b = line.text("transb") == "T",
                        .batch = count("batch"),
                        .accumulates = line.number("beta") != 0};
  const bool half = shape.arithmetic == products::Arithmetic::Half;
  if (half && line.text("c_type") == "float32") shape.result_bytes = 4;
  shape.brain = line.text("type") == "bfloat16";
  return shape;
}

Row row_of(const CsvLine& line) {
  Row row;
  row.shape = shape_of(line);
  row.contents =
      line.text("contents") == "zeros" ? products::Contents::Zeros : products::Contents::Random;
  row.in_graph = line.text("timed_by") == "graph";
  row.burst = line.number("burst_us") * 1e-6;
  row.sustained = line.number("sustained_us") * 1e-6;
  row.sustained_clock = line.number("sustained_sm_clock_mhz") * 1e6;
  row.plan = plan_of(row.shape, launch_of(line));
  row.type = line.text("type");
  row.purpose = line.text("family");
  row.judges = line.text("part") == "judge";
  return row;
}

}  // namespace

std::vector<Recorded> read_choices(const std::filesystem::path& file) {
  constexpr std::size_t kMost = std::size_t{256} << 20;
  const std::string bytes = read_text_file(file, kMost);
  if (!capture::is_gzip(bytes)) return parse_choices(bytes, file.string());
  capture::Unpacked unpacked{bytes, file.string(), kMost};
  std::string text;
  std::array<char, 1 << 16> piece{};
  while (true) {
    unpacked.understood();
    const std::streamsize size = unpacked.sgetn(piece.data(), std::ssize(piece));
    if (size == 0) return parse_choices(text, file.string());
    text.append(piece.data(), static_cast<std::size_t>(size));
  }
}

std::vector<Recorded> parse_choices(const std::string& text, const std::string& file) {
  std::vector<Recorded> choices;
  // The first line says which GPU and which library.
  const std::size_t begin = text.starts_with('#') ? text.find('\n') + 1 : 0;
  for (const CsvLine& line : parse_csv(text.substr(begin), file)) {
    const products::Shape shape = shape_of(line);
    if (const auto plan = plan_of(shape, launch_of(line))) choices.push_back({shape, *plan});
  }
  return choices;
}

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
