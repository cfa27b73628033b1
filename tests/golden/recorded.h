// All of a predicted timeline that a golden file keeps: every span's begin and end on its lane,
// every region's time, every band, how the run ended. Lanes and operations go by name, so that a
// timeline whose lanes are only numbered differently is the same.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reports/timeline/timeline.h"

namespace foretrace::test {

/// One span. (op, instance, part) is unique on its lane.
struct RecordedSpan {
  std::string op;            ///< "015 gemm backward": number, kind, and label if it has one
  std::uint64_t instance{};  ///< Span::instance
  std::uint64_t part = 1;    ///< Span::part; also 1 for the host's call: the lane tells which
  std::int64_t begin_ns{};   ///< since the run's start
  std::int64_t end_ns{};
  friend bool operator==(const RecordedSpan&, const RecordedSpan&) = default;
};

struct Recorded {
  using Spans = std::vector<RecordedSpan>;  ///< by begin
  using Band = std::pair<double, double>;   ///< factors: low, high

  std::string outcome;                            ///< "completed", "deadlock"
  std::map<std::string, Spans> lanes;             ///< by "process 0 main"
  std::map<std::string, std::int64_t> region_ns;  ///< by "region pipeline process 0"
  /// By "region pipeline process 0", or "op 007 nccl_all_reduce Ring Simple 24 channels fit": what
  /// spans of an operation say besides their times. Several when instances differ, ascending.
  std::map<std::string, std::vector<Band>> bands;
};

Recorded record(const Timeline& timeline);

/// A golden file's text without its first comment: lanes and regions that are alike are written
/// once, and what repeats at equal distances is written once. No time is rounded or left out.
std::string to_text(const Recorded& recorded);
/// The inverse; lines that begin with '#' are comments. Throws std::runtime_error with the line.
Recorded from_text(const std::string& text);

/// The first line that differs by more than rounding, with what was expected and what was got, and
/// how many differ; empty when none does. What may differ, since another libm or SimGrid may round
/// a rate differently: each time by 1 ns and 1e-6 of itself, each distance from the lane's time
/// before it by 2 ns (both ends are rounded) and 1e-6 of itself, each band by its fifth digit.
std::string difference(const Recorded& expected, const Recorded& got);

}  // namespace foretrace::test
