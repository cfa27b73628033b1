// What an iteration takes on a machine: chosen ones are simulated, others lie between them, by
// tokens and by what attention takes.
#pragma once

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
/// each token of a prompt.
struct OwnWork {
  double iteration = 0, request = 0, token = 0;
};

class IterationTimes {
 public:
  /// `timeline`: of the grid's iterations, simulated. Throws UsageError for a timeline without
  /// them.
  IterationTimes(const Serving& serving, const Machine& machine, const Timeline& timeline);

  /// The engine's own work on the host included.
  Time of(const Batch& batch) const;

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
  std::vector<const Row*> graphs_, others_;
  std::vector<Row> rows_;
  OwnWork own_;
};

}  // namespace foretrace::serving
