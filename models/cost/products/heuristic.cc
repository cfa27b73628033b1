#include "models/cost/products/heuristic.h"

#include "models/products/learned.h"

namespace foretrace::products {

const Heuristics& recorded_heuristics() {
  static const Heuristics kAll = [] {
    Heuristics all;
    for (const Family family :
         {Family::Half, Family::HalfPairs, Family::HalfOdd, Family::Bf16Odd, Family::Float32}) {
      all[family] = read_heuristic(learned_directory() / "heuristic" / (name_of(family) + ".json"));
    }
    return all;
  }();
  return kAll;
}

const Tile* tile_of(const Heuristic& heuristic, const Plan& plan) {
  constexpr double kAlike = 1.3;  // the same kernel may need a register more for transposed data
  const Tile* nearest = nullptr;
  for (const Tile& tile : heuristic.tiles) {
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

}  // namespace foretrace::products
