// A timeline in a few sorted lines: how often each operation ran and for how long in all, and every
// region's time. What a golden file holds; small enough to read in a review.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "reports/timeline/timeline.h"

namespace foretrace::test {

struct Sum {
  std::uint64_t count{};
  std::int64_t total_ns{};
};
/// Key: "region pipeline process 0" or "op 004 memcpy_async h2d process 0 device".
using Summary = std::map<std::string, Sum>;

Summary summarise(const Timeline& timeline);

/// One line per entry: the key, a colon, the count, the nanoseconds.
std::string to_text(const Summary& summary);
/// The inverse; lines that begin with '#' are comments.
Summary from_text(const std::string& text);

}  // namespace foretrace::test
