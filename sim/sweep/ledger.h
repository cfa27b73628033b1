// The rows of a sweep on the disk: JSON lines, the first of which says which sweep they are of.
// Every row is on the disk before it counts. A sweep that was killed goes on behind its last whole
// row, and ends with the same file as one that was not. Several processes append to a file each,
// FILE.0, FILE.1 and so on, and the first of them joins these.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reports/timeline/append_file.h"
#include "sim/sweep/paired.h"
#include "sim/sweep/point.h"
#include "sim/sweep/share.h"

namespace foretrace::sweep {

class Ledger {
 public:
  /// Of `sweep` with so many points, in `file`, which may be there. Throws UsageError when it holds
  /// something else.
  Ledger(const std::filesystem::path& file, const Sweep& sweep, std::size_t points,
         Share share = {});

  /// Whose rows are there already, in this file or in another part.
  const std::set<std::size_t>& done() const { return done_; }
  void append(const nlohmann::ordered_json& row);
  /// Waits for the other parts, puts all rows in the points' order, compares them, and returns them
  /// without their first line. Only in the first process; the others are done when they have
  /// appended.
  std::vector<nlohmann::ordered_json> finish(const Against& against);

 private:
  std::vector<std::filesystem::path> parts() const;

  std::filesystem::path file_, own_;
  std::string head_;
  std::size_t points_;
  std::uintmax_t whole_ = 0;  ///< bytes of the own part that are kept
  std::set<std::size_t> done_;
  std::optional<AppendedFile> out_;
};

}  // namespace foretrace::sweep
