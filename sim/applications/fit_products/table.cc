#include "sim/applications/fit_products/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "scenarios/base/text/csv.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/packed_file.h"
#include "sim/applications/fit_products/kernel_plan.h"

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

/// A whole number of that many at least; an empty cell is `least`.
std::int64_t count(const CsvLine& line, std::string_view column, std::int64_t least) {
  constexpr double kMost = 0x1p31;
  if (line.text(column).empty()) return least;
  const double value = line.number(column);
  if (value != std::floor(value) || value > kMost || value < static_cast<double>(least)) {
    throw UsageError{fmt::format("{}: {} is '{}'; a whole number from {} to 2^31", line.where(),
                                 column, line.text(column), least)};
  }
  return static_cast<std::int64_t>(value);
}

/// A table of a driver that does not tell kernels has zeros there.
Launch launch_of(const CsvLine& line) {
  const auto told = [&](std::string_view column) {
    return std::max<std::int64_t>(1, count(line, column, 0));
  };
  return {.kernel = line.text("kernel"),
          .kernels = told("kernels"),
          .grid = {told("grid_x"), told("grid_y"), told("grid_z")},
          .cluster = {told("cluster_x"), told("cluster_y")},
          .blocks_per_sm = told("blocks_per_sm")};
}

bool is_turned(const CsvLine& line, std::string_view column) {
  const std::string_view text = line.text(column);
  if (text == "T" || text == "N") return text == "T";
  throw UsageError{fmt::format("{}: {} is '{}'; N or T", line.where(), column, text)};
}

products::Shape shape_of(const CsvLine& line) {
  products::Shape shape{.m = count(line, "m", 1),
                        .n = count(line, "n", 1),
                        .k = count(line, "k", 1),
                        .arithmetic = arithmetic_of(line),
                        .transposes_a = is_turned(line, "transa"),
                        .transposes_b = is_turned(line, "transb"),
                        .batch = count(line, "batch", 1),
                        .accumulates = line.number("beta") != 0};
  const std::string_view type = line.text("type");
  const std::string_view result = line.text("c_type");
  const bool wider = result == "float32" && shape.arithmetic == products::Arithmetic::Half;
  if (result != type && !wider && !(type == "tf32" && result == "float32")) {
    throw UsageError{fmt::format("{}: c_type is '{}'; {}, or float32 where that is half precision",
                                 line.where(), result, type)};
  }
  if (wider) shape.result_bytes = 4;
  shape.is_bf16 = type == "bfloat16";
  constexpr double kMostElements = 1e15;
  const auto size = [](std::int64_t value) { return static_cast<double>(value); };
  if (size(shape.m) * size(shape.n) * size(shape.batch) > kMostElements ||
      size(shape.k) * size(std::max(shape.m, shape.n)) * size(shape.batch) > kMostElements) {
    throw UsageError{fmt::format("{}: a product of more than 10^15 elements", line.where())};
  }
  return shape;
}

/// Operands that the level-2 cache has as far as it holds them, or not at all.
double cached_of(const CsvLine& line) {
  if (!line.has("operands")) return 1;
  const std::string_view text = line.text("operands");
  if (text == "same" || text == "rotated") return text == "same" ? 1 : 0;
  throw UsageError{
      fmt::format("{}: operands is '{}'; same or rotated", line.where(), std::string{text})};
}

Row row_of(const CsvLine& line) {
  Row row;
  row.shape = shape_of(line);
  row.shape.cached = cached_of(line);
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

double between(const CsvLine& line, std::string_view column, double least, double most) {
  const double value = line.number(column);
  if (value >= least && value <= most) return value;
  throw UsageError{fmt::format("{}: {} is '{}'; {} to {}", line.where(), column, line.text(column),
                               least, most)};
}

bool is_of_graph(const CsvLine& line) {
  const std::string_view text = line.text("timed_by");
  if (text == "graph" || text == "stream") return text == "graph";
  throw UsageError{
      fmt::format("{}: timed_by is '{}'; graph or stream", line.where(), std::string{text})};
}

/// A line of --quick: the clock that was read counts beside others' only.
Row quick_row_of(const CsvLine& line) {
  Row row;
  row.shape = shape_of(line);
  row.shape.cached = cached_of(line);
  row.contents = products::Contents::Zeros;
  row.in_graph = is_of_graph(line);
  row.burst = row.sustained = between(line, "us", 0.1, 1e7) * 1e-6;
  row.sustained_clock = between(line, "sm_clock_mhz", 100, 10'000) * 1e6;
  row.plan = plan_of(row.shape, launch_of(line));
  row.type = line.text("type");
  row.purpose = "quick";
  row.quick = true;
  return row;
}

std::string text_of(const std::filesystem::path& file) {
  return read_packed_text_file(file, std::size_t{256} << 20);
}

/// The first line may say which GPU and which library.
std::vector<CsvLine> lines_of(const std::string& text, const std::string& file) {
  const std::size_t end = text.starts_with('#') ? text.find('\n') : std::string::npos;
  const bool told = end != std::string::npos;
  return parse_csv(told ? text.substr(end + 1) : text, file, told ? 2 : 1);
}

}  // namespace

std::vector<Recorded> read_choices(const std::filesystem::path& file) {
  return parse_choices(text_of(file), file.string());
}

std::vector<Recorded> parse_choices(const std::string& text, const std::string& file) {
  std::vector<Recorded> choices;
  for (const CsvLine& line : lines_of(text, file)) {
    const products::Shape shape = shape_of(line);
    if (const auto plan = plan_of(shape, launch_of(line))) choices.push_back({shape, *plan});
  }
  return choices;
}

std::vector<Row> read_table(const std::filesystem::path& file) {
  return parse_table(text_of(file), file.string());
}

std::vector<Row> parse_table(const std::string& text, const std::string& file) {
  constexpr std::size_t kJudges = 10;  // one of so many
  std::vector<Row> rows;
  std::size_t quick = 0;
  for (const CsvLine& line : lines_of(text, file)) {
    if (line.has("kernel") && !line.has("us") && !line.has("burst_us")) {
      throw UsageError{
          fmt::format("{}: a list of --choices-only, which has no times: for --choices", file)};
    }
    Row row = line.has("us") ? quick_row_of(line) : row_of(line);
    if (row.quick) row.judges = quick++ % kJudges == 0;
    if (row.burst > 0 && row.sustained > 0) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace foretrace::fit_products
