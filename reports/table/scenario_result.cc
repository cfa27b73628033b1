#include "reports/table/scenario_result.h"

#include <algorithm>

namespace foretrace {

bool JudgedSide::broken() const {
  return state == State::Judged && std::ranges::find(held, Held::No) != held.end();
}

std::string JudgedSide::word() const {
  if (state == State::Missing) return "-";
  if (state == State::Stale) return "stale";
  if (broken()) return "BROKEN";
  if (held.empty()) return "states nothing";
  if (std::ranges::count(held, Held::Elsewhere) == std::ssize(held)) return "-";
  return std::ranges::find(held, Held::Yes) != held.end() ? "holds" : "undecided";
}

}  // namespace foretrace
