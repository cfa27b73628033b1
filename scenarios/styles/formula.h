// Numbers of a style's template, as formulas of a model's sizes.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace foretrace::styles {

/// Sizes of a large model, multiplied, exceed 64 bits.
__extension__ using Wide = __int128;

/// By symbol: "B" sequences, "S" tokens of each, "H" hidden, ...
/// (scenarios/pytorch/styles/README.md).
using Sizes = std::map<std::string, std::int64_t, std::less<>>;

class Formulas {
 public:
  /// `table`: what scenarios/pytorch/styles/formulas.py describes.
  Formulas(nlohmann::json table, Sizes sizes);

  /// `json` with each "=3" replaced by the third formula's value.
  nlohmann::json filled(const nlohmann::json& json) const;
  std::int64_t number(const nlohmann::json& json) const { return filled(json).get<std::int64_t>(); }

 private:
  nlohmann::json value(const nlohmann::json& formula) const;
  /// Numerator and denominator of a product of symbols.
  struct Fraction {
    Wide above = 1, below = 1;
  };
  Fraction product(const nlohmann::json& powers) const;

  Sizes sizes_;
  nlohmann::json values_ = nlohmann::json::array();
};

}  // namespace foretrace::styles
