// What a timeline of requests says beside its spans and regions: the whole traffic, of which only
// some requests have a lane.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace foretrace {

struct ServingFacts {
  /// Requests of an engine from a time on: those that run, those that wait.
  struct Occupancy {
    std::uint32_t process = 0;
    std::int64_t at_ns = 0;
    std::int64_t running = 0, waiting = 0;
    friend bool operator==(const Occupancy&, const Occupancy&) = default;
  };
  struct Share {
    std::string what;
    double share = 0;  ///< of the time that engines compute
    friend bool operator==(const Share&, const Share&) = default;
  };
  struct WhatIf {
    std::string change;
    std::int64_t ttft_p50_ns = 0, ttft_p90_ns = 0, tpot_p50_ns = 0;
    double tokens_per_s = 0;
    friend bool operator==(const WhatIf&, const WhatIf&) = default;
  };

  std::string engine;  ///< as a scenario names it
  std::int64_t engines = 1, gpus = 1;
  std::int64_t requests = 0, output_tokens = 0, iterations = 0, preemptions = 0;
  double waiting_share = 0;  ///< of the requests' time, from arrival to last token
  std::vector<Occupancy> occupancy;
  std::vector<Share> limits;    ///< predicted
  std::vector<WhatIf> what_if;  ///< predicted
  friend bool operator==(const ServingFacts&, const ServingFacts&) = default;
};

}  // namespace foretrace
