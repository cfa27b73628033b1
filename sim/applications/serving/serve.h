// Requests through engines: a clock that iterations move on.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "sim/applications/serving/scheduler.h"

namespace foretrace::serving {

/// In a pipeline its part on the last stage.
struct Iteration {
  std::int64_t begin_ns = 0, end_ns = 0;
  Batch batch;                                        ///< of all groups of the engine
  std::int64_t running = 0, waiting = 0, blocks = 0;  ///< while it runs
};

/// What became of the requests of one engine.
struct Served {
  std::vector<Request> requests;  ///< that had their last token here
  std::vector<Iteration> iterations;
  std::int64_t preemptions = 0;
  std::int64_t blocks = 0;  ///< of the cache, of all groups
};

inline constexpr std::size_t kMostIterations = std::size_t{1} << 23;  // of an engine: 900 MB

/// Engines that are alike.
struct Engines {
  Serving serving;          ///< `replicas` of them, each with `layout.data` groups
  std::int64_t blocks = 0;  ///< of a group's cache
  /// Of an iteration in which the group that has most to do has such a batch.
  std::function<double(const Batch&)> seconds_of;
  /// The same of each stage of a pipeline but the last one, with what it takes to hand rows on.
  std::function<double(const Batch&)> stage_seconds_of = {};
};

/// Engines that answer requests. With `prompts` these compute prompts and first tokens, and the
/// others go on when the cache of so many tokens has come over.
struct Fleet {
  Engines engines;
  std::optional<Engines> prompts = {};
  std::function<double(std::int64_t)> transfer_seconds = {};
  /// Of a closed loop: from an engine's last token of a request to the client's next request there,
  /// on average.
  std::int64_t client_ns = 0;
};

/// Of each engine, those of `prompts` first. Throws UsageError where a request needs more than the
/// cache, and where an engine has more than `most` iterations. Groups of an engine begin and end
/// their iterations together.
std::vector<Served> serve(const Fleet& fleet, const std::vector<Arrival>& arrivals,
                          std::size_t most = kMostIterations);

}  // namespace foretrace::serving
