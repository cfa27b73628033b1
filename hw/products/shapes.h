// The products to measure: SHAPES.csv, which of them this process takes, and how each is named.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace foretrace::hw {

/// Tf32: float32 operands whose product may round to TF32, as PyTorch's allow_tf32 asks for.
enum class ProductType : std::uint8_t { Float16, BFloat16, Float32, Tf32, Float64 };

std::string name_of(ProductType type);
std::size_t element_bytes(ProductType type);

/// c = op(a) * op(b) + beta * c, column-major as cuBLAS has it: op(a) is m x k, op(b) is k x n. The
/// operands are packed: leading dimensions are rows, strides of a batch are whole matrices.
struct Shape {
  std::int64_t m{}, n{}, k{};
  ProductType type{};
  ProductType c_type{};  ///< float32 for gradients that are summed in float32, else `type`
  bool transa{}, transb{};
  std::int64_t batch = 1;
  int beta{};          ///< 0 or 1
  std::string family;  ///< why it is in the list; copied to the results, as are the next two
  std::string part;    ///< fit, or judge: held out of every fit
  std::string note;

  double flop() const;  ///< 2 m n k per matrix of the batch
  std::size_t a_bytes() const;
  std::size_t b_bytes() const;
  std::size_t c_bytes() const;
};

/// The columns that tell two products apart: "4096,512,4096,bfloat16,bfloat16,T,N,1,0".
inline constexpr std::string_view kShapeColumns = "m,n,k,type,c_type,transa,transb,batch,beta";
std::string key_of(const Shape& shape);

/// Reads SHAPES.csv: a line of column names (those of kShapeColumns, where c_type, batch and beta
/// may be missing, then family, part and note if wanted), then one product a line; empty lines and
/// lines that begin with # are passed over. Throws UsageError with every mistake's line and column.
std::vector<Shape> read_shapes(const std::filesystem::path& file);

/// The same from text; `name` is what messages call it.
std::vector<Shape> parse_shapes(std::string_view text, const std::string& name);

/// Part `index` (1-based) of `count`.
struct Shard {
  std::size_t index = 1;
  std::size_t count = 1;
};

/// "1/2". Throws UsageError.
Shard parse_shard(const std::string& text);

/// Every count-th shape, so that each part has its share of every family.
std::vector<Shape> shard_of(const std::vector<Shape>& shapes, Shard shard);

/// Cells of one line of a CSV without quotes; an empty cell is kept.
std::vector<std::string_view> csv_cells(std::string_view line);

}  // namespace foretrace::hw
