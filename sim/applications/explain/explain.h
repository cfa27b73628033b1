// Why a run takes as long as it does: its timeline, and the same program without one cause after
// the other.
#pragma once

#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "reports/timeline/timeline.h"
#include "reports/uses/critical_path.h"
#include "reports/uses/uses.h"
#include "scenarios/program/program.h"
#include "sim/applications/explain/repair.h"
#include "sim/record/rests_on.h"
#include "sim/simulate.h"

namespace foretrace::explain {

struct Gain {
  Cause cause{};
  double seconds = 0;  ///< of the run without it
  double gain = 0;     ///< share of the run's time that is saved; never negative
  /// What was simulated, where it contradicts a bound: a run that is longer without a cause, or
  /// shorter than its kernels by themselves. `seconds` is that bound then. Else 0.
  double simulated = 0;
  std::string bound = {};  ///< which one, in words
};

struct Explanation {
  bool ends = true;            ///< the run; else there is nothing to explain
  double seconds = 0;  ///< its longest region, all executions; without regions all of it. With the
                       ///< work that the region starts (covered_time.h)
  bool outlasted = false;      ///< by that work: the region's own time is shorter
  std::string region;          ///< its name; empty: the whole run
  int line = 0;                ///< where it is
  std::string thread;          ///< that runs it, where another one has that name in that line
  std::uint32_t process = 0;   ///< where it takes longest
  std::size_t executions = 0;  ///< there
  std::vector<Gain> gains;  ///< what gains most first; causes that cannot be taken away are absent
  double rest_seconds = 0;  ///< without all causes at once: the work itself; 0: not known
  double rest_host_seconds = 0;  ///< then: its host thread works between its calls
  double rest_gpu_seconds = 0;   ///< then: something runs on a GPU
  double host_seconds = 0;       ///< the same of the run as it is
  double gpu_seconds = 0;
  RestsOn rests_on{};       ///< of the run as it is
  std::string rests_on_text;  ///< rests_text() of that
  std::string rests_on_json;  ///< rests_json(), an object

  /// The GPU idles for what the host does between its calls: that bounds the run.
  bool waits_for_host_work() const {
    return host_seconds > gpu_seconds && 2 * host_seconds > seconds;
  }
  /// The same of what is left without all causes.
  bool rest_waits_for_host_work() const {
    return rest_host_seconds > rest_gpu_seconds && 2 * rest_host_seconds > rest_seconds;
  }
};

/// What `without` seconds in place of `seconds` gain; at least `least` seconds are needed, which
/// `bound` names.
Gain gain_of(Cause cause, double seconds, double without, double least = 0,
             const std::string& bound = {});

/// Simulates the program as it is, without each cause and without all of them, in forked children.
/// What a region starts counts with it, else it would be shorter than its kernels without a wait.
/// Call before any engine exists in this process. Throws UsageError
/// when the machine cannot run it. `simulated`: as the run that is explained was.
Explanation explain(const Program& program, const Machine& machine,
                    Simulated simulated = Simulated::All);

/// "region 'step' in line 9 (the longest; process 0, 4 executions): 8.1 ms, first of all by
/// synchronization: without it 6.7 ms (17.7 % less)"
std::string headline_of(const Explanation& explanation);
/// For people: the causes by what they cost, what each GPU does, the critical path.
std::string text_of(const Timeline& timeline, const Explanation& explanation);
std::string json_of(const Timeline& timeline, const Explanation& explanation);
/// A row for each cause, and one for all of them at once; seconds, and gains as fractions.
std::string csv_of(const Explanation& explanation);

}  // namespace foretrace::explain
