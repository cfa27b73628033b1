// The fewest GPUs of a machine that serve the traffic within limits, by how many share a layer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "scenarios/base/text/diagnostic.h"
#include "scenarios/serving/description.h"
#include "sim/record/rests_on.h"

namespace foretrace::serving {

/// Of nine in ten requests (p90), in milliseconds; empty: any.
struct Limits {
  std::optional<double> ttft_ms, tpot_ms;
};

/// One engine with so many requests at a time, each one that ends followed by the next.
struct Load {
  double requests = 0;
  double ttft_ms = 0, tpot_ms = 0;  ///< p50
  double output_tokens_per_s = 0;   ///< and at the ends of the band
  double low = 0, high = 0;
};

/// One number of GPUs for each layer, and as few engines of it as hold the limits.
struct Choice {
  std::string machine;
  std::int64_t tensor = 1;
  std::int64_t replicas = 0;        ///< 0: none of up to 512 holds them
  double ttft_ms = 0, tpot_ms = 0;  ///< p90; of the most engines tried where none holds
  double output_tokens_per_s = 0;
  double cache = 0;         ///< the largest share of it in use
  bool holds_slow = false;  ///< at the slow end of the band, too
  bool fits = true;         ///< else weights leave no room for a cache
  std::vector<Load> loads = {};
  RestsOn rests = {};
  std::string rests_note = {};  ///< of `rests`, in words; empty: nothing to say
  std::int64_t gpus() const { return tensor * replicas; }
};

/// In the order of GPUs, those that hold nothing last. Each in a child: call before any engine of
/// this process has had a flow. `with_loads`: also one engine of each, alone, under growing load.
std::vector<Choice> choices(const Serving& serving, const Limits& limits,
                            const std::vector<Machine>& machines, bool with_loads = false);

/// Arguments of vLLM's `serve` that say the same.
std::string vllm_command(const Serving& serving, const Choice& choice);

}  // namespace foretrace::serving
