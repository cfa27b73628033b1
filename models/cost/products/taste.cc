#include "models/cost/products/taste.h"

#include "models/cost/products/taste/recorded.h"

namespace foretrace::products {

const Tastes& recorded_tastes() {
  static const Tastes kTastes{{Family::Half, recorded::half()},
                              {Family::HalfPairs, recorded::half_pairs()},
                              {Family::HalfOdd, recorded::half_odd()},
                              {Family::BrainOdd, recorded::brain_odd()},
                              {Family::Float32, recorded::float32()}};
  return kTastes;
}

const Tile* tile_of(const Taste& taste, const Plan& plan) {
  constexpr double kAlike = 1.3;  // the same kernel may need a register more for transposed data
  const Tile* nearest = nullptr;
  for (const Tile& tile : taste.tiles) {
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
