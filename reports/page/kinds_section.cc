#include "reports/page/kinds_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "reports/page/html_rows.h"
#include "reports/spans/span_class.h"
#include "reports/table/text_table.h"

namespace foretrace {
namespace {

constexpr std::size_t kMostKindSums = 24;
constexpr std::size_t kTimesFewer =
    2;  // than there are operations: else the table says nothing new

struct Sum {
  std::size_t count = 0;
  double ns = 0;  ///< over all devices
};

struct OpKindSum {
  std::string title;
  SpanClass of = SpanClass::Kernel;
  std::array<Sum, 2> sides;

  double weight() const { return std::max(sides[0].ns, sides[1].ns); }
};

struct KindSums {
  std::vector<OpKindSum> rows;
  std::array<std::size_t, 2> devices{};
  std::size_t operations = 0;
};

KindSums kinds_of(const ReportRun& run) {
  KindSums kinds;
  std::map<std::string, std::size_t> place;
  for (std::size_t side = 0; side < run.sides.size(); ++side) {
    const Timeline& timeline = *run.sides[side].timeline;
    constexpr std::size_t kNowhere = ~std::size_t{0};
    std::vector<std::size_t> of_op(timeline.ops.size(), kNowhere);
    std::set<std::pair<std::uint32_t, std::uint32_t>> devices;
    for (const Span& span : timeline.spans) {
      const Lane& lane = timeline.lanes[span.lane];
      if (lane.kind != LaneKind::Stream) continue;
      const OpRow& op = timeline.ops[span.op];
      if (of_op[span.op] == kNowhere) {
        const SpanClass what = class_of(op, lane);
        if (what != SpanClass::Kernel && what != SpanClass::Copy && what != SpanClass::Nccl)
          continue;
        const bool is_named = op.kind == "library_kernel" && !op.label.empty();
        const auto [found, is_new] =
            place.try_emplace(is_named ? op.label : title_of(op), kinds.rows.size());
        if (is_new) kinds.rows.push_back({.title = found->first, .of = what, .sides = {}});
        of_op[span.op] = found->second;
        ++kinds.operations;
      }
      devices.emplace(lane.process, lane.device);
      Sum& sum = kinds.rows[of_op[span.op]].sides[side];
      ++sum.count;
      sum.ns += static_cast<double>(span.end_ns - span.begin_ns);
    }
    kinds.devices[side] = std::max<std::size_t>(1, devices.size());
  }
  std::ranges::stable_sort(kinds.rows, std::ranges::greater{}, &OpKindSum::weight);
  return kinds;
}

MustacheData row_of(const OpKindSum& kind, const KindSums& kinds,
                    const std::array<double, 2>& whole) {
  const auto each = [&](std::size_t side) {
    return kind.sides[side].ns / static_cast<double>(kinds.devices[side]);
  };
  MustacheData row;
  row.set("class", std::string{name_of(kind.of)});
  row.set("title", kind.title);
  row.set("n", format_count(std::max(kind.sides[0].count, kind.sides[1].count)));
  row.set("first", format_time(each(0)));
  row.set("share", whole[0] > 0 ? format_percent(kind.sides[0].ns / whole[0]) : "-");
  row.set("second", format_time(each(1)));
  row.set("error", each(1) > 0 ? format_signed_percent(each(0) / each(1) - 1) : "-");
  return row;
}

}  // namespace

MustacheData kinds_section(const ReportRun& run) {
  KindSums kinds = kinds_of(run);
  MustacheData section;
  const bool has_kinds =
      kinds.operations >= kTimesFewer * kinds.rows.size() && kinds.rows.size() > 1;
  section.set("has_kinds", has_kinds);
  if (!has_kinds) return section;
  std::array<double, 2> whole{};
  for (const OpKindSum& kind : kinds.rows) {
    for (std::size_t side = 0; side < 2; ++side) whole[side] += kind.sides[side].ns;
  }
  std::string words = "Sums over the run, of a GPU on average. What runs at once counts twice.";
  if (kinds.rows.size() > kMostKindSums) {
    OpKindSum others{.title = fmt::format("{} others", kinds.rows.size() - kMostKindSums + 1),
                     .sides = {}};
    for (std::size_t i = kMostKindSums - 1; i < kinds.rows.size(); ++i) {
      for (std::size_t side = 0; side < 2; ++side) {
        others.sides[side].count += kinds.rows[i].sides[side].count;
        others.sides[side].ns += kinds.rows[i].sides[side].ns;
      }
    }
    kinds.rows.resize(kMostKindSums - 1);
    kinds.rows.push_back(std::move(others));
  }
  MustacheData rows{MustacheData::type::list};
  for (const OpKindSum& kind : kinds.rows) rows << row_of(kind, kinds, whole);
  section.set("kinds", rows);
  section.set("words", words);
  return section;
}

}  // namespace foretrace
