// What launchers put before each line of nccl-tests' output: mpirun --tag-output and
// --timestamp-output, srun -l, kubectl logs --timestamps --prefix, Ray, ts, quoted mail.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace foretrace {

/// The text with escape sequences of terminals as blanks, so that columns stay.
std::string without_colours(std::string_view text);

/// Prefixes are alike where only their numbers, days and months differ. Which there are is read off
/// the lines that every run has: those with nThread, Using devices, or a table's heading.
class LinePrefixes {
 public:
  explicit LinePrefixes(std::string_view text);

  /// Where nccl-tests' own line begins in `line`: 0 where no known prefix stands before it.
  std::size_t end_in(std::string_view line) const;

 private:
  std::vector<std::string> shapes_;
};

}  // namespace foretrace
