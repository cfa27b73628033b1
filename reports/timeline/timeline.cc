#include "reports/timeline/timeline.h"

#include <algorithm>

namespace foretrace {

std::uint32_t intern(Timeline& timeline, const SpanDetail& detail) {
  auto& all = timeline.details;
  const auto index = static_cast<std::size_t>(std::ranges::find(all, detail) - all.begin());
  if (index == all.size()) all.push_back(detail);
  return static_cast<std::uint32_t>(index);
}

}  // namespace foretrace
