// The lane picture as SVG: time to the right, lanes downwards, predicted above measured in each.
// Static on its own; assets/report.js makes it zoom.
#pragma once

#include <span>
#include <string>

#include "reports/page/lanes_layout.h"

namespace foretrace {

enum class SvgUse {
  InReport,   ///< styled by the page's CSS
  Packed,     ///< the same without what report.js makes of it: places, labels, curves of arrows
  Standalone  ///< a file of its own with its style and a light background, e.g. for a README
};

struct LanesPicture {
  std::string svg;
  std::string note;  ///< what was merged or left out; empty when everything is drawn
};

/// `id` makes the names inside the SVG unique within a page.
LanesPicture draw_lanes(std::span<const Side> sides, const LayoutLimits& limits, SvgUse use,
                        const std::string& id, const std::string& title);

}  // namespace foretrace
