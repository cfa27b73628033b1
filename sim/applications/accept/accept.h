// An acceptance gate: measurements of a machine against what the model says of such machines. What
// is judged is the machine, not the model: a value fails where it is beyond its band's slow end.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "sim/applications/nccl_tests/log.h"

namespace foretrace {

struct Timeline;

/// One measured value.
struct AcceptCheck {
  std::string name;  ///< "64 MiB", "GPU 0 -> GPU 3", "region step, line 12"
  std::string unit;  ///< "GB/s" where more is better, else "us"
  double measured = 0, expected = 0, floor = 0;
  std::vector<std::string> links;  ///< where it ran, where that is one link or process
  double best = 0;                 ///< the band's fast end

  bool more_is_better() const { return unit == "GB/s"; }
  /// Of the floor: 1 and more is accepted.
  double score() const { return more_is_better() ? measured / floor : floor / measured; }
  bool is_slow() const { return !(score() >= 1); }
  bool is_fast() const { return more_is_better() ? measured > best : measured < best; }
};

/// Checks that are judged together: a table's sizes of one class, a matrix, a run's regions.
struct AcceptPart {
  std::string file;
  std::string name;                ///< "all_reduce, 16 ranks on 2 nodes, from 1 MiB"
  std::vector<std::string> hosts;  ///< that took part; empty: not told
  double allowed = 0;              ///< share of checks that may be slow
  std::vector<AcceptCheck> checks;
  std::string expected_from{};  ///< what the band rests on

  std::size_t slow() const;
  /// More than half of it is beyond the fast end: another machine than was named.
  bool is_too_fast() const;
  bool is_accepted() const;
  double median_score() const;
};

/// A host or link with the parts (or checks) that it was in.
struct AcceptPlace {
  std::string name;
  std::size_t slow = 0, all = 0;
  double worst = 0;  ///< lowest score
};

struct Acceptance {
  std::string machine;
  std::vector<AcceptPart> parts;
  std::vector<std::string> notes;  ///< what was not judged, and why

  bool is_accepted() const;
  /// Hosts and links that were slow, the worst first.
  std::vector<AcceptPlace> worst_places() const;
};

struct AcceptOptions {
  double allowed = 0;  ///< of a table's sizes, and of a run's regions
  NcclTestsAssumed assumed;
};

/// Tables of nccl-tests. Old ones do not tell their operation: then the file's name may. Throws
/// UsageError.
void accept_nccl_tests(const std::filesystem::path& file, const Machine& machine,
                       const AcceptOptions& options, Acceptance& into);
/// Matrices of nvbandwidth: each link for itself.
void accept_nvbandwidth(const std::string& text, const std::string& file, const Machine& machine,
                        Acceptance& into);
/// A measured scenario against its prediction.
void accept_run(const Timeline& predicted, const Timeline& measured, const std::string& file,
                const AcceptOptions& options, Acceptance& into);

}  // namespace foretrace
