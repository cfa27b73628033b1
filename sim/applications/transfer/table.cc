#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "models/machine/parts/composition.h"
#include "scenarios/base/text/csv.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/packed_file.h"
#include "sim/applications/transfer/transfer.h"

namespace foretrace::transfer {
namespace {

constexpr std::size_t kLargest = std::size_t{256} << 20;

/// Lines that do not begin with #, and where the first of them was.
std::pair<std::string, std::size_t> without_comments(const std::string& text) {
  std::string plain;
  std::size_t first = 0, number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    ++number;
    if (text[at] != '#') {
      if (first == 0) first = number;
      plain.append(text, at, end - at).push_back('\n');
    }
    at = end + 1;
  }
  return {plain, std::max<std::size_t>(first, 1)};
}

/// None of a GPU without units for it.
std::optional<products::GpuFacts> facts_of(const std::string& part, const std::string& precision) {
  if (precision == "bf16") return facts_of_gpu(part);
  const Machine machine = load_machine("1x" + part);
  if (!machine.has(Param::GpuF8Flops)) return {};
  Reading read{machine};
  return products::read_gpu_facts(read, products::Arithmetic::Float8);
}

/// Of a product: what is no size is no row of such a table.
std::int64_t whole(const CsvLine& line, const char* column) {
  constexpr double kMost = 1 << 30;
  const double size = line.number(column);
  if (size >= 1 && size <= kMost && size == std::floor(size))
    return static_cast<std::int64_t>(size);
  throw UsageError{fmt::format("{}: {} of a product is a whole number from 1 to {:.0f}, not '{}'",
                               line.where(), column, kMost, line.text(column))};
}

using Quantized = std::map<std::tuple<std::string, double, double>, double>;

}  // namespace

products::GpuFacts facts_of_gpu(const std::string& part) {
  const Machine machine = load_machine("1x" + part);
  Reading read{machine};
  return products::read_gpu_facts(read, products::Arithmetic::Half);
}

Table read_table(const std::filesystem::path& file) {
  const auto [text, first] = without_comments(read_packed_text_file(file, kLargest));
  const std::vector<CsvLine> lines = parse_csv(text, file.string(), first);
  Quantized quantized;
  for (const CsvLine& line : lines) {
    if (line.text("family") != "quantize" || line.text("precision") != "fp8_dynamic") continue;
    quantized[{std::string{line.text("gpu")}, line.number("m"), line.number("k")}] =
        line.number("time_us");
  }
  Table table;
  for (const CsvLine& line : lines) {
    const std::string precision{line.text("precision")}, gpu{line.text("gpu")};
    if (line.text("family") != "gemm" || (precision != "bf16" && precision != "fp8")) continue;
    if (std::ranges::count(table.unknown, gpu) > 0) continue;
    const auto part = find_part(PartFolder::Gpus, gpu);
    if (!part) {
      table.unknown.push_back(gpu);
      continue;
    }
    auto rows = std::ranges::find_if(
        table.all, [&](const Rows& one) { return one.gpu == gpu && one.precision == precision; });
    if (rows == table.all.end()) {
      const auto facts = facts_of(*part, precision);
      if (!facts) continue;
      table.all.push_back({gpu, *part, precision, *facts, {}});
      rows = table.all.end() - 1;
    }
    const auto size = [&line](const char* of) { return whole(line, of); };
    Row row{.shape = {.m = size("m"), .n = size("n"), .k = size("k")},
            .us = line.number("time_us")};
    row.shape.is_bf16 = true;
    row.shape.result_bytes = 2;
    if (precision == "fp8") {
      row.shape.arithmetic = products::Arithmetic::Float8;
      const auto found = quantized.find({gpu, line.number("m"), line.number("k")});
      if (found == quantized.end()) continue;
      row.us -= found->second;
    }
    // Copies of the weights in turn exceed the cache; what else there is was there before.
    const double weights =
        line.number("n") * line.number("k") * products::element_bytes(row.shape.arithmetic);
    row.shape.cached = 1 - weights / sizes_of(row.shape).moved;
    if (row.us * 1e-6 < weights / rows->facts.memory) {
      ++rows->warm;  // they were in the cache, whatever the table means to measure
    } else {
      rows->rows.push_back(row);
    }
  }
  if (table.all.empty()) {
    throw UsageError{fmt::format(
        "{}: no products of GPUs that are known\n  hint: columns gpu, family (gemm), precision "
        "(bf16, fp8), m, n, k, time_us; the GPUs: models/machines/gpus",
        file.string())};
  }
  table.lines = lines;
  return table;
}

}  // namespace foretrace::transfer
