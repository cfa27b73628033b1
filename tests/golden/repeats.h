// What repeats in a lane: the same operations, with instances and times that advance by the same
// distance each time. Times are whole nanoseconds, rounded from picoseconds, so that a distance of
// 7899.125 ns shows as 7899 or 7900: a repeat states picoseconds, and stands for exactly the
// nanoseconds that it was found in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tests/golden/recorded.h"

namespace foretrace::test {

/// `times` times `body`; the k-th is k times `period_ps` later, with k times the strides added.
struct Repeat {
  struct Line {
    std::string op;
    std::uint64_t instance{};  ///< of the first time
    std::uint64_t part = 1;    ///< of the first time
    std::uint64_t instance_stride{};
    std::uint64_t part_stride{};
    std::int64_t begin_ps{};
    std::int64_t end_ps{};
  };
  std::vector<Line> body;
  std::uint64_t times = 1;
  std::int64_t period_ps{};  ///< 0 when times is 1
};

/// `spans` in their order: repeats where they save lines, else each span for itself.
std::vector<Repeat> find_repeats(std::span<const RecordedSpan> spans);

/// Appends what `repeat` stands for; begins and ends are rounded down.
void expand(const Repeat& repeat, std::vector<RecordedSpan>& spans);

}  // namespace foretrace::test
