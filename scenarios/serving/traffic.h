// The requests of a scenario's traffic.
#pragma once

#include <vector>

#include "scenarios/serving/description.h"

namespace foretrace::serving {

/// In the order of their arrival; in a closed loop all but the first few without a time.
std::vector<Arrival> arrivals_of(const Traffic& traffic);

/// The longest prompt with its output.
std::int64_t longest(const std::vector<Arrival>& arrivals);

/// "20 requests in 0.9 s, prompts of 180 to 410 tokens, outputs of 20".
std::string requests_words(const std::vector<Arrival>& arrivals);

/// Digest of the requests and of what the engine may do with them: two files of one model, layout
/// and lengths have one program, and differ in this.
std::string requests_hash(const Serving& serving);

}  // namespace foretrace::serving
