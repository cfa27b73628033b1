#include "sim/applications/fit_products/kernel_plan.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace foretrace::fit_products {
namespace {

using Sides = std::pair<std::int64_t, std::int64_t>;

/// "256x128" at `at`, and what follows; none if no two numbers are there.
std::optional<Sides> sides(std::string_view name, std::size_t at) {
  Sides result;
  const char* const end = name.data() + name.size();
  if (at >= name.size()) return std::nullopt;
  const auto rows = std::from_chars(name.data() + at, end, result.first);
  if (rows.ec != std::errc{} || rows.ptr == end || *rows.ptr != 'x') return std::nullopt;
  if (std::from_chars(rows.ptr + 1, end, result.second).ec != std::errc{}) return std::nullopt;
  constexpr std::int64_t kMost = 4096;
  const auto is_side = [](std::int64_t value) { return value >= 1 && value <= kMost; };
  if (!is_side(result.first) || !is_side(result.second)) return std::nullopt;
  return result;
}

std::int64_t whole(std::int64_t value, std::int64_t of) { return (value + of - 1) / of * of; }

/// The tile of "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT": the third part, rows first. With
/// "splitK" in its name the grid has all tiles of all parts, tiles being whole clusters.
std::optional<products::Plan> nvjet_plan(const products::Shape& shape, const Launch& launch) {
  std::size_t at = 0;
  for (int part = 0; part < 3; ++part) at = launch.kernel.find('_', at) + 1;
  const auto tile = sides(launch.kernel, at);
  if (!tile) return std::nullopt;
  products::Plan plan{.tile_m = tile->first,
                      .tile_n = tile->second,
                      .cooperative = launch.kernel.find("_coop") != std::string_view::npos};
  if (launch.kernel.find("splitK") == std::string_view::npos) return plan;
  const std::int64_t down = (shape.m + plan.tile_m - 1) / plan.tile_m;
  const std::int64_t across = (shape.n + plan.tile_n - 1) / plan.tile_n;
  const std::int64_t tiles = whole(down, launch.cluster[0]) * whole(across, launch.cluster[1]);
  const std::int64_t blocks = launch.grid[0] * launch.grid[1] * launch.grid[2];
  if (blocks % tiles != 0 || blocks / tiles < 2 || shape.batch > 1) return std::nullopt;
  plan.split = blocks / tiles;
  return plan;
}

/// "sm80_xmma_gemm_..._tilesize128x64x8_..." has the columns first (its grid says so),
/// "cutlass_80_simt_sgemm_128x64_8x5_nn_align1" the rows.
std::optional<products::Plan> older_plan(std::string_view kernel) {
  constexpr std::string_view kTilesize = "tilesize";
  if (const std::size_t at = kernel.find(kTilesize); at != std::string_view::npos) {
    const auto tile = sides(kernel, at + kTilesize.size());
    if (!tile) return std::nullopt;
    return products::Plan{.tile_m = tile->second, .tile_n = tile->first, .cooperative = true};
  }
  if (kernel.find("cutlass_") == std::string_view::npos) return std::nullopt;
  std::size_t at = kernel.find("gemm_");
  while (at != std::string_view::npos && (at = kernel.find('_', at)) != std::string_view::npos) {
    if (const auto tile = sides(kernel, ++at)) {
      return products::Plan{
          .tile_m = tile->first, .tile_n = tile->second, .cooperative = true, .padded = true};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<products::Plan> plan_of(const products::Shape& shape, const Launch& launch) {
  if (launch.kernel.starts_with("nvjet_")) return nvjet_plan(shape, launch);
  const bool half = shape.arithmetic == products::Arithmetic::Half;
  if (!half && shape.arithmetic != products::Arithmetic::Float32) return std::nullopt;
  const products::Family family = family_of(shape);
  if (family == products::Family::Half || family == products::Family::Vector) return std::nullopt;
  auto plan = older_plan(launch.kernel);
  if (plan) {
    plan->resident = std::max<std::int64_t>(1, launch.blocks_per_sm);
    plan->split = shape.batch > 1 ? 1 : std::max<std::int64_t>(1, launch.grid[2]);
    plan->inside = plan->split > 1 && launch.kernels == 1;
  }
  return plan;
}

const products::Tile* tile_of(const products::Heuristic& heuristic, const products::Plan& plan) {
  constexpr double kAlike = 1.3;  // the same kernel may need a register more for transposed data
  const products::Tile* nearest = nullptr;
  for (const products::Tile& tile : heuristic.tiles) {
    if (tile.m != plan.tile_m || tile.n != plan.tile_n || tile.padded != plan.padded ||
        tile.cooperative != plan.cooperative) {
      continue;
    }
    if (tile.resident == plan.resident) return &tile;
    const auto mine = static_cast<double>(tile.resident);
    const auto other = static_cast<double>(plan.resident);
    if (nearest == nullptr && mine <= kAlike * other && other <= kAlike * mine) nearest = &tile;
  }
  return nearest;
}

}  // namespace foretrace::fit_products
