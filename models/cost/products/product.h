// Matrix products through cuBLAS: what the library chooses, and how long that takes. Two questions
// apart: choice.h is about the library (learned from recorded choices, the same on every GPU with
// these kernels), time.h about the machine.
#pragma once

#include <compare>
#include <cstdint>

#include "models/machine/reading.h"

namespace foretrace::products {

/// What multiplies: float16 and bfloat16 are alike; TF32 is float32 with PyTorch's allow_tf32.
enum class Arithmetic : std::uint8_t { Half, Tf32, Float32, Float64, Float8, Float4, Int8 };

/// c (m x n) = a (m x k) * b (k x n), column-major as cuBLAS has it, operands packed.
struct Shape {
  std::int64_t m = 1, n = 1, k = 1;
  Arithmetic arithmetic = Arithmetic::Half;
  bool transposes_a = false, transposes_b = false;
  std::int64_t batch = 1;
  bool accumulates = false;        ///< beta is not 0: c is read too
  double operand_bytes = 0;        ///< of an element of a or b with its scales; 0: by its type
  double first_bytes = 0;          ///< of an element of a, where b's has others; 0: as b's
  std::uint32_t result_bytes = 0;  ///< of an element of c; 0: as the operands
  bool is_bf16 = false;            ///< bfloat16, where it has kernels of its own
  double cached = 1;               ///< of the operands, at most: what the level-2 cache still has
  bool fresh = false;              ///< an operand was written since it was last read
  friend auto operator<=>(const Shape&, const Shape&) = default;
};

/// The kernels that a shape can get. What decides is how the rows of a, b and c are aligned: the
/// copies into shared memory (TMA) take leading dimensions that are multiples of 16 bytes.
enum class Family : std::uint8_t {
  Half,            ///< nvjet_sm90: persistent, tiles of any multiple of 8
  HalfPairs,       ///< cutlass_80 align2: leading dimensions are even
  HalfOdd,         ///< cutlass_75 align1: at least one is odd, float16
  Bf16Odd,         ///< the same in bfloat16, which has no tiles of 32 x 32
  Tf32,            ///< sm90_xmma
  Tf32Transposed,  ///< the same where b is transposed: it has to be turned round, tensor cores
                   ///< cannot
  Tf32Odd,         ///< cutlass_80 align1
  Float32,         ///< no tensor cores: sm80_xmma, cutlass_80 simt
  Vector,     ///< a single row or column, but for half precision of whole 16 bytes: gemv kernels
  Float64,    ///< sm90_xmma, cutlass_80 d884
  Unmeasured  ///< whatever a GPU has whose kernels nobody timed: tiles by its facts (facts.h)
};

/// What the operands hold. Zeros switch no transistors, and normally distributed numbers more of
/// them than ones in [0, 1): the power limit takes more of the clock.
enum class Contents : std::uint8_t { Zeros, Random, Normal };

Family family_of(const Shape& shape);
/// At least one leading dimension is odd, in half precision.
inline bool is_odd(Family family) { return family == Family::HalfOdd || family == Family::Bf16Odd; }
/// "nvjet_sm90", as kernels' names begin.
const char* kernel_name(Family family);

std::uint32_t element_bytes(Arithmetic arithmetic);
double flops(const Shape& shape);

/// In bytes.
struct Sizes {
  double element = 0;  ///< of b's, on average
  double result = 0;   ///< an element of c
  double moved = 0;    ///< what has to be read and written once, at least
};
Sizes sizes_of(const Shape& shape);

}  // namespace foretrace::products
