// What `foretrace-hw products` measured: reports/measured/products/README.md has its columns.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "models/cost/products/time.h"

namespace foretrace::fit_products {

/// One row: a product with one kind of contents.
struct Row {
  products::Shape shape;
  products::Contents contents{};
  bool in_graph = false;       ///< timed as nodes of a CUDA graph
  double burst = 0;            ///< s, from one product's begin to the next one's
  double sustained = 0;        ///< s
  double sustained_clock = 0;  ///< Hz; 0 when NVML said nothing
  /// Recorded; none for vectors, TF32 and float64.
  std::optional<products::Plan> plan;
  std::string type;     ///< bfloat16, float16, tf32, float32, float64
  std::string purpose;  ///< training, random, skinny, ladder, attention
  bool judges = false;  ///< held out of every fit
  bool quick = false;   ///< of --quick: its clock counts beside others' only
};

/// What cuBLAS takes for a product, not timed: a row of `foretrace-hw products LIST
/// --choices-only`.
struct Recorded {
  products::Shape shape;
  products::Plan plan;
};
/// Plain or gzip. Kernels without tiles are left out. Throws UsageError naming the file and the
/// line.
std::vector<Recorded> read_choices(const std::filesystem::path& file);
std::vector<Recorded> parse_choices(const std::string& text, const std::string& file);

/// What `foretrace-hw products` wrote, or its --quick, of which every tenth product judges. Plain
/// or gzip. Throws UsageError naming the file and the line.
std::vector<Row> read_table(const std::filesystem::path& file);
std::vector<Row> parse_table(const std::string& text, const std::string& file);

}  // namespace foretrace::fit_products
