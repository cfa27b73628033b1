// What an iteration takes on a machine: chosen ones are simulated, others lie between them, by
// tokens and by what attention takes.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "models/machine/machine.h"
#include "reports/timeline/timeline.h"
#include "scenarios/serving/grid.h"

namespace foretrace::serving {

/// Seconds, and the band around them.
struct Time {
  double seconds = 0, low = 0, high = 0;
};

/// The engine's own work on the host, in seconds: of an iteration, of each of its requests, and of
/// each token of a prompt; and what a server around it takes until a client has a token.
struct OwnWork {
  double iteration = 0, request = 0, token = 0, front = 0;
};
OwnWork own_work(EngineKind kind);

/// An iteration of the grid, simulated.
struct RegionTime {
  Time time;
  double busy = 0;  ///< s in which the device computes or copies

  double idle() const { return std::max(0.0, time.seconds - busy); }
};
/// Of each region of such a program's timeline.
std::vector<RegionTime> region_times(const Timeline& timeline);

/// Of a simulation in a process of its own.
std::vector<RegionTime> in_child(const std::function<Timeline()>& simulated);

class IterationTimes {
 public:
  /// `times`: of the grid's iterations. Throws UsageError where one is missing.
  IterationTimes(const Serving& serving, const Machine& machine,
                 const std::vector<RegionTime>& times);

  /// The engine's own work on the host included.
  Time of(const Batch& batch) const;
  /// Of a pipeline's other stages, which have no head and hand their rows on over a link.
  Time of_stage(const Batch& batch) const;

 private:
  struct Point {
    double attention = 0;  ///< s
    Time time;
  };
  struct Row {
    double size = 0;
    bool is_graph = false;
    std::vector<Point> points;
  };
  double attention_seconds(const Batch& batch) const;
  double own_attention_seconds(const Batch& batch) const;
  Time between(const std::vector<const Row*>& rows, double size, double attention) const;

  const Serving& serving_;
  const Machine& machine_;
  std::vector<std::pair<training::Layer, double>> layers_;  ///< each kind, and how many there are
  double expert_layers_ = 0;
  std::vector<const Row*> graphs_, others_;
  std::vector<Row> rows_;
  OwnWork own_;
};

}  // namespace foretrace::serving
