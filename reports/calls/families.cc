#include "reports/calls/families.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "reports/calls/executions.h"
#include "reports/timeline/statistics.h"
#include "reports/uses/intervals.h"
#include "scenarios/captured/kernel_name.h"

namespace foretrace {
namespace {

struct Alone {
  std::map<std::string, std::size_t> first, second;
};

/// What a reader finds it by: a kernel's name without namespaces, arguments and hash.
std::string title_of_execution(const Timeline& timeline, const Span& span) {
  const OpRow& op = timeline.ops[span.op];
  const std::string& kernel = timeline.details[span.detail].kernel;
  std::string word = op.kind == "library_kernel" && !op.captured ? op.variant : op.label;
  if (op.captured && !kernel.empty()) word = captured::kernel_word(kernel);
  constexpr std::size_t kHash = 16;
  const auto point = word.rfind('.');
  if (point != std::string::npos && word.size() - point - 1 == kHash) word.resize(point);
  constexpr std::size_t kMost = 60;
  if (word.size() > kMost) word = word.substr(0, kMost - 3) + "...";
  return word.empty() ? op.kind : word;
}

std::vector<std::string> worded(const std::map<std::string, std::size_t>& alone) {
  std::vector<std::string> words;
  for (const auto& [name, times] : alone) {
    words.push_back(times == 1 ? name : fmt::format("{} ({})", name, times));
  }
  return words;
}

bool is_work(const Timeline& timeline, const Span& span) {
  const std::string& kind = timeline.ops[span.op].kind;
  return span.part != 0 && timeline.lanes[span.lane].kind == LaneKind::Stream &&
         kind != "event_record" && kind != "stream_wait_event";
}

}  // namespace

std::vector<FamilyRow> families_of(const Timeline& first, const Timeline& second) {
  std::map<std::string, FamilyRow> rows;
  std::map<std::string, Alone> alone;
  using WorkKey = std::tuple<std::uint32_t, std::uint64_t, std::uint32_t>;
  std::map<WorkKey, int> sides;  // 1: first, 2: second, 3: both
  for (const auto& [timeline, side] : {std::pair{&first, 1}, std::pair{&second, 2}}) {
    for (const Span& span : timeline->spans) {
      if (is_work(*timeline, span))
        sides[{span.op, span.instance, timeline->lanes[span.lane].process}] |= side;
    }
  }
  for (const auto& [timeline, side] : {std::pair{&first, 1}, std::pair{&second, 2}}) {
    for (const Span& span : timeline->spans) {
      if (!is_work(*timeline, span)) continue;
      const std::string family = operation_family(timeline->ops[span.op]);
      FamilyRow& row = rows[family];
      (side == 1 ? row.first_ns : row.second_ns) +=
          static_cast<double>(span.end_ns - span.begin_ns);
      if (span.part != 1) continue;
      const bool has_both =
          sides.at({span.op, span.instance, timeline->lanes[span.lane].process}) == 3;
      ++(side == 1 ? row.first : row.second);
      if (has_both && side == 1) ++row.joined;
      if (!has_both)
        ++(side == 1 ? alone[family].first
                     : alone[family].second)[title_of_execution(*timeline, span)];
    }
  }
  std::vector<FamilyRow> all;
  for (auto& [family, row] : rows) {
    row.family = family;
    if (row.first_ns > 0 && row.second_ns > 0)
      row.error = relative_difference(row.first_ns, row.second_ns);
    row.only_first = worded(alone[family].first);
    row.only_second = worded(alone[family].second);
    all.push_back(std::move(row));
  }
  std::ranges::stable_sort(all, std::ranges::greater{}, [](const FamilyRow& row) {
    return std::max(row.first_ns, row.second_ns);
  });
  return all;
}

double busy_ns(const Timeline& timeline) {
  std::map<std::uint32_t, explain::Times> times;
  for (const Span& span : timeline.spans) {
    if (is_work(timeline, span))
      times[timeline.lanes[span.lane].process].emplace_back(span.begin_ns, span.end_ns);
  }
  double all = 0;
  for (auto& [process, list] : times)
    all += static_cast<double>(explain::length(explain::joined(std::move(list))));
  return times.empty() ? 0 : all / static_cast<double>(times.size());
}

}  // namespace foretrace
