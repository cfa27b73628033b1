// What the lane picture shows, before it has pixels: for every lane one row per timeline (predicted
// above measured), in each row the spans as boxes. A picture of very many spans merges the ones too
// narrow to see, and says how many.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reports/spans/span_class.h"
#include "reports/timeline/timeline.h"

namespace foretrace {

/// One timeline in the picture: "predicted", "measured".
struct Side {
  const Timeline* timeline{};
  std::string name;
};

struct Box {
  std::int64_t begin_ns{}, end_ns{};  ///< from the run's begin
  std::uint32_t span{};               ///< the first one's index
  std::uint32_t count = 1;            ///< more than 1: neighbours, merged
  std::int64_t busy_ns{};             ///< how much of a merged box its spans take
  SpanClass span_class{};
};

struct Row {
  std::size_t side{};  ///< index into the sides
  std::vector<Box> boxes;
};

struct LaneRows {
  Lane lane;
  std::vector<Row> rows;
};

/// From the begin of a call to the begin of its kernel, copy or collective.
struct LaunchArrow {
  std::size_t side{}, from_lane{}, to_lane{};  ///< indices into LanesLayout::lanes
  std::int64_t from_ns{}, to_ns{};
};

struct LayoutLimits {
  /// Above it narrow neighbours are merged, the more the more there are: no more boxes are drawn,
  /// where that can be. Arrows are left out then.
  std::size_t spans = 4'000;
  std::size_t lanes = 64;     ///< the first ones, in order; the rest is counted. Of requests some
                              ///< from all of them
  double narrow = 0.0005;     ///< of the picture's width, at least
  std::int64_t until_ns = 0;  ///< show this much from the run's begin; 0: all of it
};

struct LanesLayout {
  std::vector<LaneRows> lanes;
  std::vector<LaunchArrow> arrows;
  std::int64_t end_ns = 1;
  std::int64_t run_end_ns = 1;  ///< beyond end_ns when only a part is shown
  std::size_t spans{};          ///< on the lanes shown, in the time shown
  std::size_t merged_spans{};   ///< of them, those inside merged boxes
  std::size_t hidden_lanes{};
  std::size_t hidden_arrows{};
};

LanesLayout lay_out(std::span<const Side> sides, const LayoutLimits& limits);

}  // namespace foretrace
