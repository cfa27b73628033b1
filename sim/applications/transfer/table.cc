#include <fmt/format.h>

#include <algorithm>
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

std::optional<cost::TileSpeeds> facts_of(const std::string& part, const std::string& precision) {
  cost::TileSpeeds facts = facts_of_gpu(part);
  if (precision == "bf16") return facts;
  const Machine machine = load_machine("1x" + part);
  if (!machine.has(Param::GpuF8Flops)) return {};
  facts.peak = machine.rate(Param::GpuF8Flops);
  return facts;
}

using Quantized = std::map<std::tuple<std::string, double, double>, double>;

}  // namespace

cost::TileSpeeds facts_of_gpu(const std::string& part) {
  const Machine machine = load_machine("1x" + part);
  Reading read{machine};
  return cost::read_tile_speeds(read, DataType::BFloat16);
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
    Row row{.shape = {.m = line.number("m"), .n = line.number("n"), .k = line.number("k")},
            .us = line.number("time_us")};
    row.shape.weights_cold = true;  // copies of the weights in turn exceed the cache
    if (precision == "fp8") {
      row.shape.bytes = 1;
      const auto found = quantized.find({gpu, row.shape.m, row.shape.k});
      if (found == quantized.end()) continue;
      row.us -= found->second;
    }
    if (!(row.shape.m > 0 && row.shape.n > 0 && row.shape.k > 0)) {
      throw UsageError{fmt::format("{}: a product has m, n and k", line.where())};
    }
    const double weights = row.shape.n * row.shape.k * row.shape.bytes;
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
  return table;
}

}  // namespace foretrace::transfer
