// How far products and attention are off on a GPU of which only the datasheet is known: each GPU of
// a public table is left out whole, the ratios (models/cost/products/facts.h, attention.h) are
// found on the others, and its rows judged.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/cost/attention.h"
#include "models/cost/products/facts.h"
#include "scenarios/base/text/csv.h"

namespace foretrace::transfer {

inline constexpr int kMostTurns = 60;  // of a search; a fuzzer takes one

/// A product of the table.
struct Row {
  products::Shape shape;
  double us = 0;
};
/// Those of one GPU and precision.
struct Rows {
  std::string gpu;        ///< as the table has it
  std::string part;       ///< models/machines/gpus
  std::string precision;  ///< bf16, fp8
  products::GpuFacts facts;
  std::vector<Row> rows;
  std::size_t warm = 0;  ///< left out: shorter than memory takes to bring the weights alone
};
struct Table {
  std::vector<Rows> all;
  std::vector<std::string> unknown;  ///< GPUs that have no part
  std::vector<CsvLine> lines;        ///< all of them, of whatever family
};
/// Rows with family gemm of kernels-by-gpu.csv.gz, gzip'ed or not, without its comments. Of fp8 the
/// quantization of x is taken away, where the table has it. Throws UsageError.
Table read_table(const std::filesystem::path& file);

struct Judged {
  std::string gpu, precision;
  std::size_t rows = 0;
  double median = 0, p90 = 0, bias = 0;
  double in_band = 0;    ///< share, by the band that the other GPUs' errors make
  double band = 0;       ///< that band: relative
  bool too_few = false;  ///< never learned from
  /// With the ratios that every other row of the GPU itself asks for, of the others; none of few.
  std::optional<double> own_median;
};
/// Attention (models/cost/attention.h): causal prefill, decoding and an encoder's, each GPU left
/// out whole. Ratios are found on bfloat16 alone.
struct AttentionReport {
  std::vector<Judged> judged;  ///< precision: "prefill bf16"
  cost::AttentionRatios ratios;
  std::map<std::string, double> bands;         ///< of each family, over all
  std::map<std::string, std::size_t> refused;  ///< rows of types that attention cannot be said in
};
struct Report {
  std::vector<Judged> judged;
  std::vector<std::string> unknown;
  std::size_t warm = 0;
  products::TileRatios ratios;         ///< found on all GPUs together, at an H200's clock
  double band_bf16 = 0, band_fp8 = 0;  ///< of a carried-over product, over all
  AttentionReport attention;
};
/// `turns`: of each search at most.
Report judge(const Table& table, int turns = kMostTurns);
AttentionReport judge_attention(const std::vector<CsvLine>& lines, int turns = kMostTurns);

/// Of a file of models/machines/gpus, in bfloat16. Throws UsageError.
products::GpuFacts facts_of_gpu(const std::string& part);

std::string markdown(const Report& report);
std::string json(const Report& report);

}  // namespace foretrace::transfer
