#include "reports/uses/intervals.h"

#include <algorithm>

namespace foretrace::explain {

Times joined(Times times) {
  std::ranges::sort(times);
  Times result;
  for (const auto& time : times) {
    if (time.second <= time.first) continue;
    if (result.empty() || time.first > result.back().second) {
      result.push_back(time);
    } else {
      result.back().second = std::max(result.back().second, time.second);
    }
  }
  return result;
}

Times without(const Times& times, const Times& taken) {
  Times rest;
  auto at = taken.begin();
  for (auto [begin, end] : times) {
    while (at != taken.end() && at->second <= begin) ++at;
    for (auto cut = at; cut != taken.end() && cut->first < end; ++cut) {
      if (cut->first > begin) rest.emplace_back(begin, cut->first);
      begin = std::max(begin, cut->second);
    }
    if (begin < end) rest.emplace_back(begin, end);
  }
  return rest;
}

std::int64_t length(const Times& times) {
  std::int64_t sum = 0;
  for (const auto& [begin, end] : times) sum += end - begin;
  return sum;
}

}  // namespace foretrace::explain
