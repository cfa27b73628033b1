// What follows from an architecture's sizes alone: parameters, products, and how it is said.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "scenarios/architecture/architecture.h"

namespace foretrace::training {

/// Parameters of one layer on a process, in elements.
struct LayerParameters {
  std::int64_t products = 0;         ///< weights of linear layers that every token goes through
  std::int64_t expert_products = 0;  ///< weights of the experts' linear layers
  std::int64_t experts = 0;          ///< all of the experts', biases with them
  std::int64_t rest = 0;             ///< norms, biases, sinks
  std::int64_t tensors = 0;          ///< without the experts'
  std::int64_t all() const { return products + experts + rest; }
};

/// Of a process that has a `tensor`-th of heads and widths and `experts` of the layer's experts.
LayerParameters layer_parameters(const Architecture& model, const Layer& layer, std::int64_t tensor,
                                 std::int64_t experts);

/// Parameters of the whole model; tied weights once.
std::int64_t parameter_count(const Architecture& model);
/// Those that a token goes through: of experts the best ones only.
std::int64_t active_parameters(const Architecture& model);
/// The same in floating point, without overflow, for sizes that nobody has judged yet.
double rough_parameter_count(const Architecture& model);
/// Why it is no model that is expanded or served: counts beyond which nothing else is computed.
std::optional<std::string> what_is_too_large(const Architecture& model);

/// Tokens that one attends to, over all tokens of a sequence: half of the square, or less where
/// there is a window. `excess`: tokens more for each row of a kernel that works in tiles.
double attended(const Layer& layer, std::int64_t sequence, std::int64_t excess = 0);

/// "30.5 B parameters (3.3 B active), 48 layers, 32 heads of 128 (4 of keys and values), hidden
/// 2048, 128 experts of which a token goes to 8, embedding not tied, no window".
std::string understood(const Architecture& model);

}  // namespace foretrace::training
