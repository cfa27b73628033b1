// What is told of requests that were served: times as the field defines them
// (scenarios/serving.md).
#pragma once

#include <string>
#include <vector>

#include "sim/applications/serving/serve.h"

namespace foretrace::serving {

inline constexpr int kPercentiles[] = {50, 90, 95, 99};

/// Of one kind of time, in milliseconds.
struct Times {
  double mean = 0;
  double percentiles[4] = {};  ///< kPercentiles
};

enum class Verdict : std::uint8_t { Stable, Backlogged, Overloaded, ClosedLoop };

struct Summary {
  Times ttft, tpot, itl, end_to_end;
  bool has_tpot = false;  ///< some request has more than one token
  double seconds = 0;     ///< from the first arrival to the last token
  double requests_per_s = 0, output_tokens_per_s = 0;
  std::int64_t requests = 0, preemptions = 0, iterations = 0;
  double most_of_cache = 0;  ///< the largest share of its blocks in use
  double mean_running = 0;   ///< requests, over the time of iterations
  double busy = 0;           ///< share of the time in which an iteration ran
  Verdict verdict = Verdict::Stable;
  double falls_behind = 0;  ///< seconds that a request waits longer for each second of arrivals
};

/// Requests' share of waiting in their time from arrival to last token.
double waiting_share(const std::vector<Served>& engines);

/// Of all engines together.
Summary summary_of(const Serving& serving, const std::vector<Served>& engines);

}  // namespace foretrace::serving
