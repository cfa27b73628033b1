// Spans, lanes and regions of the predicted timeline, as they happen.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "models/machine/machine.h"
#include "reports/timeline/timeline.h"
#include "scenarios/program/program.h"
#include "sim/device/work.h"
#include "sim/record/span_bands.h"
#include "sim/simulate.h"

namespace foretrace::sim {

class Recorder {
 public:
  Recorder(const Program& program, const Machine& machine, Says says = Says::Everything);

  std::uint32_t add_lane(Lane lane);

  /// The detail for spans of `op` that take as long as `time_of(Reading&)` says, a Duration:
  /// the one with their band. Costs a look-up from the operation's second execution on.
  template <class TimeOf>
  std::uint32_t banded(const Op& op, SpanOf which, const DecidedBy& by, const TimeOf& time_of) {
    if (says_ == Says::TimesOnly) return 0;
    return bands_.detail_of(timeline_, op.id.value, which, 0, by, [&] {
      return shares_of(machine_, [&](Reading& read) { return to_seconds(time_of(read)); });
    });
  }
  /// The same of what a device does, a time that has `shares()`: `detail` with its band.
  template <class Shares>
  std::uint32_t banded_by(const Op& op, std::uint32_t detail, const DecidedBy& by,
                          const Shares& shares) {
    if (says_ == Says::TimesOnly) return detail;
    return bands_.detail_of(timeline_, op.id.value, SpanOf::Device, detail, by, shares);
  }
  /// `detail`: from banded(); 0 where the duration is given, or waiting.
  void span(std::uint32_t lane, const Execution& execution, std::uint32_t part, TimePoint begin,
            TimePoint end, std::uint32_t detail) {
    const Span& span = timeline_.spans.emplace_back(Span{
        execution.op->id.value, lane, execution.instance, round_to_ns(begin.time_since_epoch()),
        round_to_ns(end.time_since_epoch()), part, detail});
    if (detail != 0) tally(span);
  }
  /// A kernel of NCCL on `lane` that began at `begin` waited until then for another rank.
  void wait(std::uint32_t lane, TimePoint begin, TimePoint until) {
    timeline_.waits.push_back(
        {lane, round_to_ns(begin.time_since_epoch()), round_to_ns(until.time_since_epoch())});
  }
  void begin_region(const Execution& execution, std::uint32_t process);
  void region(const Execution& execution, std::uint32_t process, TimePoint begin, TimePoint end);
  /// The time between two events; its band is that of the device's work that ended between them.
  void elapsed(const Execution& execution, std::uint32_t process, TimePoint start, TimePoint end);
  std::uint32_t detail(const SpanDetail& detail) { return intern(timeline_, detail); }

  Timeline finish(Outcome outcome) &&;

 private:
  /// Durations of what has a band, since the run's begin: as they are, at the ends of their bands,
  /// and times each parameter's share.
  struct Total {
    double ns = 0;
    double low_ns = 0;
    double high_ns = 0;
    double guessed_ns = 0;         ///< SpanBands::guessed
    std::vector<double> share_ns;  ///< by the parameter's place in params_
  };
  /// Of one process. What has not been added to the total yet is kept by detail: one addition for
  /// each span.
  struct Tally {
    Total total;
    std::vector<double> ns;              ///< by detail
    std::vector<std::uint32_t> changed;  ///< details whose ns is not 0
  };
  using RegionKey = std::tuple<std::uint32_t, std::uint64_t, std::uint32_t>;
  static RegionKey key_of(const Execution& execution, std::uint32_t process) {
    return {execution.op->id.value, execution.instance, process};
  }
  void tally(const Span& span) {
    const std::int64_t ns = span.end_ns - span.begin_ns;
    if (ns <= 0) return;
    Tally& tally = tallies_[timeline_.lanes[span.lane].process];
    if (span.detail >= tally.ns.size()) tally.ns.resize(timeline_.details.size());
    double& sum = tally.ns[span.detail];
    if (sum == 0) tally.changed.push_back(span.detail);
    sum += static_cast<double>(ns);
  }
  const Total& total_of(std::uint32_t process);
  void add(Total& total, std::uint32_t detail, double ns);
  void set_band(RegionSamples& samples, const Total& before, const Total& after) const;

  const Machine& machine_;
  Says says_;
  Timeline timeline_;
  SpanBands bands_;
  std::vector<Tally> tallies_;         ///< by process
  std::vector<Param> params_;          ///< that any span's duration has a share of
  std::vector<std::uint32_t> places_;  ///< by Param: its place in params_, plus one; 0: none
  std::map<RegionKey, Total> opened_;  ///< the process' total when the region began
};

}  // namespace foretrace::sim
