#include "reports/page/lanes_layout.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "reports/spans/launches.h"
#include "reports/spans/span_join.h"

namespace foretrace {
namespace {

/// Merged boxes grow to this many narrow widths.
constexpr std::int64_t kMergedWidth = 6;

/// Lanes of the two timelines are one when these agree; also their order from top to bottom. The
/// unsigned wrap puts lanes of no device before the devices.
auto lane_key(const Lane& lane) {
  return std::tuple{lane.process, lane.device + 1, lane.kind, lane.name};
}
using LaneKey = decltype(lane_key(Lane{}));

/// The picture's lanes in order, and where each lane of a side went.
struct LaneMap {
  std::map<LaneKey, std::size_t> index;
  std::size_t hidden = 0;  ///< of requests: left out between those that are there
  /// Behind all of them where it is left out.
  std::size_t of(const Lane& lane) const {
    const auto found = index.find(lane_key(lane));
    return found == index.end() ? index.size() : found->second;
  }
};

/// Of very many requests some say as much, from the first to the last.
void thin_out(std::map<LaneKey, std::size_t>& index, std::size_t most) {
  std::vector<LaneKey> requests;
  for (const auto& [key, place] : index) {
    if (std::get<LaneKind>(key) == LaneKind::Request) requests.push_back(key);
  }
  if (index.size() <= most || requests.empty()) return;
  const std::size_t others = index.size() - requests.size();
  const std::size_t kept = std::max<std::size_t>(1, most - std::min(most, others));
  const auto place = [&](std::size_t i) { return i * kept / requests.size(); };
  for (std::size_t i = 1; i < requests.size(); ++i) {
    if (place(i) == place(i - 1)) index.erase(requests[i]);
  }
}

/// Lanes that carry a span somewhere; unused streams (the default ones) would be noise.
LaneMap map_lanes(std::span<const Side> sides, std::size_t most) {
  LaneMap map;
  for (const Side& side : sides) {
    for (const Span& span : side.timeline->spans) {
      map.index.try_emplace(lane_key(side.timeline->lanes[span.lane]), 0);
    }
  }
  map.hidden = map.index.size();
  thin_out(map.index, most);
  map.hidden -= map.index.size();
  std::size_t next = 0;
  for (auto& [key, index] : map.index) index = next++;
  return map;
}

class Builder {
 public:
  Builder(std::span<const Side> sides, const LayoutLimits& limits)
      : sides_{sides}, limits_{limits}, map_{map_lanes(sides, limits.lanes)} {}

  LanesLayout build() && {
    const std::size_t shown = std::min(map_.index.size(), limits_.lanes);
    layout_.lanes.resize(shown);
    layout_.hidden_lanes = map_.index.size() - shown + map_.hidden;
    for (const Side& side : sides_) find_end(*side.timeline);
    layout_.end_ns =
        limits_.until_ns > 0 ? std::min(limits_.until_ns, layout_.run_end_ns) : layout_.run_end_ns;
    for (std::size_t s = 0; s < sides_.size(); ++s) add_boxes(s);
    const bool too_many = layout_.spans > limits_.spans;
    if (too_many) merge_narrow();
    for (std::size_t s = 0; s < sides_.size(); ++s) add_arrows(s, too_many);
    return std::move(layout_);
  }

 private:
  Row& row_of(std::size_t lane, std::size_t side) {
    auto& rows = layout_.lanes[lane].rows;
    const auto found = std::ranges::find(rows, side, &Row::side);
    if (found != rows.end()) return *found;
    return rows.emplace_back(Row{side, {}});
  }

  void find_end(const Timeline& timeline) {
    const std::int64_t zero_ns = first_begin_ns(timeline);
    for (const Span& span : timeline.spans) {
      layout_.run_end_ns = std::max(layout_.run_end_ns, span.end_ns - zero_ns);
    }
  }

  void add_boxes(std::size_t side) {
    const Timeline& timeline = *sides_[side].timeline;
    const std::int64_t zero_ns = first_begin_ns(timeline);
    for (std::uint32_t i = 0; i < timeline.spans.size(); ++i) {
      const Span& span = timeline.spans[i];
      const Lane& lane = timeline.lanes[span.lane];
      const std::size_t at = map_.of(lane);
      if (at >= layout_.lanes.size() || span.begin_ns - zero_ns > layout_.end_ns) continue;
      layout_.lanes[at].lane = lane;
      row_of(at, side).boxes.push_back({.begin_ns = span.begin_ns - zero_ns,
                                        .end_ns = span.end_ns - zero_ns,
                                        .span = i,
                                        .count = 1,
                                        .busy_ns = span.end_ns - span.begin_ns,
                                        .span_class = class_of(timeline.ops[span.op], lane)});
      ++layout_.spans;
    }
    for (LaneRows& lane : layout_.lanes) {
      for (Row& row : lane.rows) {  // an outer call before the calls inside it
        std::ranges::stable_sort(row.boxes, {}, [](const Box& box) {
          return std::tuple{box.begin_ns, -box.end_ns};
        });
      }
    }
  }

  /// Narrow neighbours become one box, of the class that takes most of its time, up to a few
  /// narrow widths, so that how busy the lane is still shows; wide boxes stay as they are.
  void merge_narrow() {
    const std::vector<LaneRows> all = layout_.lanes;
    std::size_t boxes = 0;
    for (double narrow = limits_.narrow; narrow < 1; narrow *= 2) {
      const auto narrow_ns =
          static_cast<std::int64_t>(narrow * static_cast<double>(layout_.end_ns));
      boxes = 0;
      layout_.merged_spans = 0;
      for (std::size_t lane = 0; lane < all.size(); ++lane) {
        for (std::size_t row = 0; row < all[lane].rows.size(); ++row) {
          auto& into = layout_.lanes[lane].rows[row].boxes;
          into = merged(all[lane].rows[row].boxes, narrow_ns);
          boxes += into.size();
          for (const Box& box : into) {
            if (box.count > 1) layout_.merged_spans += box.count;
          }
        }
      }
      if (boxes <= limits_.spans) break;
    }
  }

  static std::vector<Box> merged(const std::vector<Box>& boxes, std::int64_t narrow_ns) {
    std::vector<Box> kept;
    std::array<std::int64_t, kSpanClasses> time_ns{};  // in the last kept box, by class
    bool growing = false;                              // the last kept box may take more
    for (const Box& box : boxes) {
      const bool is_narrow = box.end_ns - box.begin_ns < narrow_ns;
      if (growing && is_narrow && box.begin_ns - kept.back().end_ns < narrow_ns &&
          box.end_ns - kept.back().begin_ns < kMergedWidth * narrow_ns) {
        kept.back().end_ns = std::max(kept.back().end_ns, box.end_ns);
        kept.back().busy_ns += box.busy_ns;
        ++kept.back().count;
      } else {
        kept.push_back(box);
        growing = is_narrow;
        time_ns.fill(0);
      }
      time_ns[static_cast<std::size_t>(box.span_class)] += box.end_ns - box.begin_ns;
      const auto longest = std::ranges::max_element(time_ns) - time_ns.begin();
      if (kept.back().count > 1) kept.back().span_class = static_cast<SpanClass>(longest);
    }
    return kept;
  }

  void add_arrows(std::size_t side, bool hide) {
    const Timeline& timeline = *sides_[side].timeline;
    const std::int64_t zero_ns = first_begin_ns(timeline);
    for (const Flow& flow : launch_flows(timeline)) {
      const Span& from = timeline.spans[flow.from];
      const Span& to = timeline.spans[flow.to];
      const SpanClass work = class_of(timeline.ops[to.op], timeline.lanes[to.lane]);
      if (work == SpanClass::Order) continue;
      const std::size_t from_lane = map_.of(timeline.lanes[from.lane]);
      const std::size_t to_lane = map_.of(timeline.lanes[to.lane]);
      if (to.begin_ns - zero_ns > layout_.end_ns) continue;
      if (hide || std::max(from_lane, to_lane) >= layout_.lanes.size()) {
        ++layout_.hidden_arrows;
      } else {
        layout_.arrows.push_back(
            {side, from_lane, to_lane, from.begin_ns - zero_ns, to.begin_ns - zero_ns});
      }
    }
  }

  std::span<const Side> sides_;
  const LayoutLimits& limits_;
  LaneMap map_;
  LanesLayout layout_;
};

}  // namespace

LanesLayout lay_out(std::span<const Side> sides, const LayoutLimits& limits) {
  return Builder{sides, limits}.build();
}

}  // namespace foretrace
