#include "reports/timeline.h"

#include <algorithm>

namespace foretrace {

std::uint16_t intern(Timeline& timeline, const SpanDetail& detail) {
  auto& all = timeline.details;
  const auto at = std::ranges::find(all, detail);
  if (at == all.end()) all.push_back(detail);
  return static_cast<std::uint16_t>(at - all.begin());
}

}  // namespace foretrace
