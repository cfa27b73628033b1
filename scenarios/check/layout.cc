// Products that a library serves with a slow kernel because of how their operands lie in memory.
#include <fmt/format.h>

#include <algorithm>
#include <array>

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

struct LeadingDimension {
  const char* name;
  const Expr* size;
  std::int64_t alignment;
};

/// Of c, a and b, in this order where two are alike.
LeadingDimension least_aligned(const Gemm& product, std::int64_t most) {
  const auto leading = [&](const char* name, const Expr& size) {
    return LeadingDimension{name, &size, aligned_to(size, most)};
  };
  const LeadingDimension of_m = leading("m", product.m), of_k = leading("k", product.k),
                         of_n = leading("n", product.n);
  const std::array all{of_m, product.transpose_a ? of_k : of_m, product.transpose_b ? of_n : of_k};
  return *std::ranges::min_element(all, {}, &LeadingDimension::alignment);
}

}  // namespace

Diagnostics slow_layouts(const Program& program) {
  Diagnostics all;
  for_each_op(program, [&](const HostThread&, const Op& op, Around) {
    const auto* product = std::get_if<Gemm>(&op.kind);
    if (product == nullptr || !is_half(product->type)) return;
    const auto most = kLoadedAtOnce / static_cast<std::int64_t>(size_of(product->type).count);
    const LeadingDimension worst = least_aligned(*product, most);
    if (worst.alignment == most) return;
    all.push_back(
        {{program.file, op.line, op.column},
         fmt::format("{} = {} is no multiple of {}, so cuBLAS takes a {} kernel", worst.name,
                     worst.size->constant(), most, worst.alignment == 1 ? "far slower" : "slower"),
         "matrices are column-major, packed: m is the leading dimension of c and of a "
         "(transposed: k), k that of b (transposed: n); pad it",
         Severity::Warning});
    all.back().group = "slow layouts";
  });
  return all;
}

}  // namespace foretrace
