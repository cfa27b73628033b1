// How far one timeline is from another of the same program: usually a prediction from its
// measurement, but any two (two models, two machines, two versions). The second one is the
// reference: error = (first - second) / second.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/calls/families.h"
#include "reports/timeline/timeline.h"

namespace foretrace {

/// Of a measurement's versions: captured kernels were stood in for, as its sentence says.
inline constexpr const char* kStandInCaptured = "stand_in_captured";

/// Smallest difference that counts: what a host call's jitter alone makes of a region.
inline constexpr double kNoiseFloorNs = 1500;

enum class Judgement : std::uint8_t {
  WithinTolerance,  ///< |error| <= tolerance
  InsideSpread,     ///< between the reference's p5 and p95: no error at all
  WithinNoise,      ///< off by at most 1.5 us or half the reference's spread
  Outside,
  Missing  ///< one side has no figure
};
std::string to_string(Judgement judgement);

/// One side's figure of a region: over its repetitions, the maximum over processes, divided by
/// the region's `per`.
struct RegionFigure {
  double median_ns{};
  double p5_ns{}, p95_ns{};
  std::size_t samples{};  ///< repetitions
  std::size_t starts{};   ///< process launches they come from
};

struct ProcessFigure {
  std::uint32_t process{};
  std::optional<double> first_ns, second_ns;  ///< medians
};

struct RegionRow {
  std::string name;  ///< with its loop indices: "step [3]"
  std::string
      title;  ///< for readers: with its size instead, where that tells it: "all_reduce 4 MiB"
  std::uint32_t op{};
  std::uint64_t instance{};
  int line{};
  std::uint64_t per = 1;       ///< what the times are divided by
  std::uint64_t size_bytes{};  ///< of the one operation inside; 0: none, or not known
  std::optional<RegionFigure> first, second;
  std::optional<double> low_ns, high_ns;  ///< the first side's band, when it is a prediction
  std::optional<double> error;
  std::vector<std::string> learned_by;   ///< the first side's parameters that learned from it
  std::optional<double> tracing_change;  ///< the second side: traced / median - 1
  std::vector<ProcessFigure> processes;
  Judgement judgement = Judgement::Missing;

  bool is_fit() const { return !learned_by.empty(); }
};

/// All executions of one part of an operation: part 0 is the host's call, 1 what it made a device
/// do. A library's call of two kernels is one operation: its device part is the time in which any
/// of them ran. Of a graph launch every node is a part.
struct OperationRow {
  std::uint32_t op{};
  std::uint32_t part{};
  std::string kind, label;
  int line{};
  std::uint64_t size_bytes{};
  std::size_t matched{}, only_first{}, only_second{};
  std::optional<double> first_ns,
      second_ns;                ///< median durations, of the pairs where there are any
  std::optional<double> error;  ///< of the medians
  std::optional<double>
      begin_offset_ns;           ///< median of first's begin - second's, from the run's begin
  double total_difference_ns{};  ///< sum over pairs of first - second: what it costs
  std::uint32_t first_pieces{}, second_pieces{};  ///< most kernels or copies in one execution
};

/// How much of the device time of one operation runs beside another's, on another stream of the
/// same process: as a share of the shorter of the two operations' whole time.
struct OverlapRow {
  std::uint32_t a{}, b{};  ///< OpIds, a <= b; equal: executions of one operation
  double first_ns{}, second_ns{};
  double first_share{}, second_share{};
  bool differs = false;
};

/// The most memory that the framework's allocator held on a device; bytes.
struct MemoryRow {
  std::uint32_t process{}, device{};
  std::optional<std::int64_t> first, second;
  std::optional<double> error;
};

struct Comparison {
  Origin first_origin, second_origin;
  Outcome first_outcome, second_outcome;
  std::string first_name, second_name;  ///< "predicted", "measured"; "A predicted" when equal
  double tolerance{};
  std::vector<RegionRow> regions;
  std::vector<OperationRow> operations;
  std::vector<OverlapRow> overlaps;          ///< the largest difference in time first
  std::vector<MemoryRow> memory;             ///< of devices of which either side says it
  std::vector<FamilyRow> families;           ///< of a step that was joined call by call
  double first_busy_ns{}, second_busy_ns{};  ///< the same: a GPU's busy time in it
  std::vector<OpRow> ops;                    ///< by OpId: of the side that says more

  /// A side is a framework's own run of the step: its kernels are none of the program's.
  bool is_captured() const;
  /// Of requests that an engine serves.
  bool is_serving() const;
  /// A prediction held against a measurement: only then a region is a fit or a prediction.
  bool judges_a_model() const { return !first_origin.measured && second_origin.measured; }
  /// A measured side's operations are of the traced repetition.
  bool is_traced() const { return first_origin.measured || second_origin.measured; }
  /// A prediction of PyTorch's kernels held against the stand-ins that foretrace-hw has for
  /// library_kernel, or against a framework_call, which takes no time there.
  bool is_stand_in(const RegionRow& row) const;
  /// "fit" when a parameter that decides the region learned from it, else "prediction"; "stand-in"
  /// where the error is none of the model's (is_stand_in); "-" when this judges no model.
  std::string standing(const RegionRow& row) const;
  /// Of all regions: "fit", "prediction", "fit and prediction", "stand-in" or "-".
  std::string standing() const;
  std::size_t unmatched_device_spans() const;
  /// Both completed, both failed, or both never ended: however either found that out.
  bool ended_alike() const;
  std::size_t overlaps_that_differ() const;
  /// Both runs ended alike, every region has both figures (where they completed) and is not
  /// outside, and the same work runs beside each other.
  bool within() const;
};

/// Throws UsageError when the two are of different programs.
Comparison compare(const Timeline& first, const Timeline& second, double tolerance);

/// The region part alone; for harness-sized timelines and tests.
std::vector<RegionRow> compare_regions(const Timeline& first, const Timeline& second,
                                       double tolerance);
/// Sizes and titles, of the regions whose operations tell them.
void set_titles(std::vector<RegionRow>& regions, const std::vector<OpRow>& ops);
/// Of two sides of which one captured what ran, those that both have.
std::vector<OverlapRow> compare_overlaps(const Timeline& first, const Timeline& second);
std::vector<OperationRow> compare_operations(const Timeline& first, const Timeline& second);
/// Peaks where they are known, else the largest sum of what was followed.
std::vector<MemoryRow> compare_memory(const Timeline& first, const Timeline& second);

/// Gives both the same operations: what either captured, joined by kind and name.
void join_captured(Timeline& first, Timeline& second);

}  // namespace foretrace
