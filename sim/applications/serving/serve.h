// Requests through the engine: a clock that iterations move on.
#pragma once

#include <functional>
#include <vector>

#include "sim/applications/serving/scheduler.h"

namespace foretrace::serving {

struct Iteration {
  std::int64_t begin_ns = 0, end_ns = 0;
  Batch batch;
  std::int64_t running = 0, waiting = 0, blocks = 0;  ///< while it runs
};

/// What became of the requests of one engine.
struct Served {
  std::vector<Request> requests;
  std::vector<Iteration> iterations;
  std::int64_t preemptions = 0;
  std::int64_t blocks = 0;  ///< of the cache
};

inline constexpr std::size_t kMostIterations = std::size_t{1} << 23;  // of an engine: 900 MB

/// `seconds_of`: of an iteration. Throws UsageError where a request needs more than the cache, and
/// where there are more than `most` iterations.
Served serve(const Serving& serving, const std::vector<Arrival>& arrivals, std::int64_t blocks,
             const std::function<double(const Batch&)>& seconds_of,
             std::size_t most = kMostIterations);

/// The arrivals of one of `serving.replicas` engines: dealt out one by one. A closed loop is split
/// into loops of their own.
std::vector<Arrival> of_replica(const Serving& serving, const std::vector<Arrival>& arrivals,
                                std::int64_t replica);

}  // namespace foretrace::serving
