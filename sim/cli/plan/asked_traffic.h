// A scenario with `serving:` from a command's options: a model's name and the requests.
#pragma once

#include <optional>
#include <string>

#include "sim/applications/serving/choose.h"

namespace foretrace {

struct AskedTraffic {
  std::string rate;  ///< "20/s"
  std::optional<std::int64_t> prompt, output;
  std::string engine = "vllm", precision;
  bool is_empty() const { return rate.empty() && !prompt && !output && precision.empty(); }
};

/// Of two minutes of requests, 200 to 3,000 of them. Throws UsageError where something is missing.
std::string scenario_of(const std::string& model, const AskedTraffic& asked, std::int64_t tensor,
                        std::int64_t replicas);

}  // namespace foretrace
