// Products that a library serves with a slow kernel because of how their operands lie in memory.
#include <fmt/format.h>

#include <algorithm>

#include "scenarios/check/check.h"
#include "scenarios/program/program_walk.h"

namespace foretrace {
namespace {

/// Tensor cores' fast kernels load 16 bytes at once.
constexpr std::int64_t kLoadedAtOnce = 16;

bool is_half(DataType type) { return type == DataType::Float16 || type == DataType::BFloat16; }

/// 1 where it is odd; what is not constant, or a vector's only row, counts as aligned.
std::int64_t aligned_to(const Expr& dimension, std::int64_t most) {
  if (!dimension.is_constant() || dimension.constant() == 1) return most;
  std::int64_t alignment = 1;
  while (alignment < most && dimension.constant() % (2 * alignment) == 0) alignment *= 2;
  return alignment;
}

}  // namespace

Diagnostics slow_layouts(const Program& program) {
  Diagnostics all;
  for_each_op(program, [&](const HostThread&, const Op& op, Around) {
    const auto* product = std::get_if<Gemm>(&op.kind);
    if (product == nullptr || !is_half(product->type)) return;
    const auto most = kLoadedAtOnce / static_cast<std::int64_t>(size_of(product->type).count);
    // The leading dimensions: m of a and c, k of b.
    const std::int64_t of_m = aligned_to(product->m, most);
    const std::int64_t of_k = aligned_to(product->k, most);
    if (of_m == most && of_k == most) return;
    const bool names_m = of_m <= of_k;
    const Expr& dimension = names_m ? product->m : product->k;
    all.push_back(
        {{program.file, op.line, op.column},
         fmt::format("{} = {} is no multiple of {}, so cuBLAS takes a {} kernel",
                     names_m ? "m" : "k", dimension.constant(), most,
                     std::min(of_m, of_k) == 1 ? "far slower" : "slower"),
         "matrices are column-major, packed: m is the leading dimension of a and c, k that "
         "of b; pad it",
         Severity::Warning});
  });
  return all;
}

}  // namespace foretrace
