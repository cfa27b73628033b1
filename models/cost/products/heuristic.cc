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

}  // namespace foretrace::products
