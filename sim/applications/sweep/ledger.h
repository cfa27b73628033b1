// The rows of a sweep on the disk: JSON lines, the first of which says which sweep they are of, by
// which program; another kind of line has the digests of the files that rows were predicted from.
// Every row is on the disk before it counts. A sweep that was killed goes on behind its last whole
// row, and ends with the same file as one that was not. Several processes append to a file each,
// FILE.0, FILE.1 and so on, and the first of them joins these.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reports/timeline/append_file.h"
#include "scenarios/base/text/made_from.h"
#include "sim/applications/sweep/paired.h"
#include "sim/applications/sweep/point.h"
#include "sim/applications/sweep/share.h"

namespace foretrace::sweep {

class Ledger {
 public:
  /// Of `sweep` with so many points, in `file`, which may be there; others are kept from writing
  /// this process' part. Throws UsageError when the file holds something else, or rows from files
  /// that are not as they were.
  Ledger(const std::filesystem::path& file, const Sweep& sweep, std::size_t points,
         Share share = {});
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  /// Whose rows are there already, in this file or in another part. A row that may pass when it is
  /// tried again is not.
  const std::set<std::size_t>& done() const { return done_; }
  /// `files`: what the row was predicted from.
  void append(const nlohmann::ordered_json& row, const FileDigests& files = {});
  /// Waits for the other parts, puts all rows in the points' order, compares them, and returns them
  /// without their first line. Only in the first process; the others are done when they have
  /// appended. Throws IoError when a process that has rows to append shows no life for so long.
  std::vector<nlohmann::ordered_json> finish(const Against& against,
                                             std::chrono::seconds patience = std::chrono::seconds{
                                                 60});

 private:
  struct Row {
    std::string line;
    std::uint64_t tries = 0;  ///< so often a point failed that may pass; 0: the row stays
  };
  using Rows = std::map<std::size_t, Row>;  ///< by point

  std::vector<std::filesystem::path> parts() const;
  std::filesystem::path part_of(std::size_t rank) const;
  std::size_t read(const std::filesystem::path& part, Rows& rows);
  bool take(const std::string& line, const nlohmann::ordered_json& axes, Rows& rows);
  void take_files(const nlohmann::ordered_json& files);
  Rows all_rows(std::chrono::seconds patience);

  std::filesystem::path file_, own_;
  std::string head_;
  std::size_t points_;
  Share share_;
  std::optional<AppendedFile> out_;
  std::uintmax_t whole_ = 0;  ///< bytes of the own part that are kept
  std::set<std::size_t> done_;
  std::map<std::size_t, std::uint64_t> tries_;  ///< of earlier calls
  FileDigests files_;                           ///< that rows were predicted from
};

}  // namespace foretrace::sweep
