// products.csv: one row for each product and contents of its operands, appended as it is measured,
// so that a run that was cut off goes on where it ended.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "hw/products/load_times.h"
#include "hw/products/shapes.h"

namespace foretrace::hw {

/// A cell has no comma and no line end, whatever a library or a user called something.
std::string cell(std::string text);

enum class Contents : std::uint8_t { Zeros, Random };
std::string name_of(Contents contents);

/// One kernel of a product as it was launched.
struct KernelLaunch {
  std::string name;  ///< as the library has it, mangled
  std::array<unsigned, 3> grid{}, block{};
  std::array<unsigned, 3> cluster{1, 1, 1};
  std::size_t dynamic_shared_bytes{};
  std::size_t static_shared_bytes{};
  int registers{};      ///< per thread
  int blocks_per_sm{};  ///< at most resident on one SM; 0: not known
};

/// The first answer of cublasLtMatmulAlgoGetHeuristic; ids are those of cublasLt.h.
struct LtChoice {
  int algorithm{}, tile{}, stages{}, cluster_shape{}, inner_shape{}, split_k{}, reduction_scheme{},
      swizzle{}, custom_option{};
  double waves{};
  std::size_t workspace_bytes{};
};

/// What the GPU said of itself; nothing where NVML is missing.
struct GpuSample {
  std::optional<double> sm_clock_mhz;
  std::optional<double> power_w;
  std::optional<std::uint64_t> limits;  ///< NVML's bit mask of what holds the clock down
};

struct ProductMeasurement {
  Contents contents{};
  bool by_graph = false;  ///< products of a captured graph; else a loop of calls on a stream
  std::size_t products_per_timing{};
  LoadTimes times;
  GpuSample burst, sustained;
  std::vector<KernelLaunch> kernels;  ///< in the order of their launch
  std::optional<LtChoice> choice;     ///< nothing when the heuristic has no answer
  std::string choice_status;          ///< cuBLAS' word for it
};

/// What all rows of a run share.
struct ProductRun {
  std::string gpu;
  unsigned sm_count{};
  std::string cublas;    ///< version
  bool rotated = false;  ///< operands of successive products lie in different memory
  double rest_ms{};      ///< idle time before each load
};

/// The kernel that multiplies: the one with the most shared memory, the first of equals.
const KernelLaunch& main_kernel(const std::vector<KernelLaunch>& kernels);

std::string product_header();
std::string product_row(const ProductRun& run, const Shape& shape, const ProductMeasurement& row);

class ProductTable {
 public:
  /// Opens or creates the file. A last line that was cut off is removed. Throws UsageError when
  /// the file has other columns, IoError when it cannot be written.
  explicit ProductTable(std::filesystem::path file);
  ~ProductTable();
  ProductTable(const ProductTable&) = delete;
  ProductTable& operator=(const ProductTable&) = delete;

  bool has(const Shape& shape, Contents contents, bool rotated) const;
  std::size_t size() const { return known_.size(); }
  /// Writes and flushes. Throws IoError.
  void append(const ProductRun& run, const Shape& shape, const ProductMeasurement& row);

 private:
  void write(const std::string& line);

  std::filesystem::path file_;
  std::set<std::string> known_;
  std::FILE* out_ = nullptr;
};

}  // namespace foretrace::hw
