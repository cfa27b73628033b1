// The predictor: what `program` would do in time on `machine`.
#pragma once

#include <cstdint>

#include "models/machine/machine.h"
#include "reports/timeline/timeline.h"
#include "scenarios/base/text/diagnostic.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/program/program.h"

namespace foretrace {

/// What would take all memory or all day. Who has the scenario's text can show its lines.
class TooLarge : public UsageError {
 public:
  explicit TooLarge(Diagnostics problems);
  const Diagnostics& problems() const { return problems_; }

 private:
  Diagnostics problems_;
};

/// How NCCL's operations, and copies from GPU to GPU, are simulated.
enum class Fidelity : std::uint8_t {
  Flow,  ///< each a latency and one flow through all its ports
  Chunk  ///< slice by slice through ports of first come, first served: sim/chunk/network.h
};

/// Which processes are simulated.
enum class Simulated : std::uint8_t {
  All,
  /// Of processes with the same threads only the first, and none without threads. The others are
  /// taken to do the same at the same time: true where they are alike in all else, too (nodes,
  /// groups, and whom they send to), as the replicas of a training step are. Their spans and
  /// regions are left out.
  OneOfEach
};

/// What is said beside when things begin and end.
enum class Says : std::uint8_t {
  Everything,
  /// No bands, nothing of what decides a duration: for who asks many times how long something
  /// takes.
  TimesOnly
};

/// Once per process: SimGrid's clock and callbacks are process-wide (see sim/README.md). Programs
/// with flows (copies, collectives) load libforetrace_flows.so: IoError where that cannot be.
/// Throws UsageError when the machine lacks a parameter that the program needs, TooLarge. A
/// deadlock is an answer: Timeline::outcome says who waits for what, and what ran until then is in
/// the timeline.
Timeline simulate(const Program& program, const Machine& machine,
                  Fidelity fidelity = Fidelity::Flow, Simulated simulated = Simulated::All,
                  Says says = Says::Everything);

}  // namespace foretrace
