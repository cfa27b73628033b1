#include "reports/page/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "reports/page/svg_text.h"

namespace foretrace {
namespace {

using Scale = ChartAxis::Scale;

// Pixels; the page scales the whole picture.
constexpr double kChartWidth = 520, kChartHeight = 300;
constexpr double kPlotLeft = 66, kPlotRight = kChartWidth - 16, kPlotTop = 48,
                 kPlotBottom = kChartHeight - 44;
constexpr int kMostTicks = 6;

/// Where a value stands on its axis: itself, or its logarithm.
double place_of(double value, Scale scale) {
  if (scale == Scale::Linear) return value;
  return scale == Scale::Log2 ? std::log2(value) : std::log10(value);
}

bool can_be_drawn(double value, Scale scale) {
  return std::isfinite(value) && (scale == Scale::Linear || value > 0);
}

struct Tick {
  double place{}, value{};
};

/// One axis of one chart: its ends (places, not values) and its ticks.
struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;

  bool is_empty() const { return low > high; }
  void include(double value, Scale scale) {
    if (!can_be_drawn(value, scale)) return;
    low = std::min(low, place_of(value, scale));
    high = std::max(high, place_of(value, scale));
  }
};

/// Whole powers, every one or every n-th.
std::vector<Tick> powers_in(const Range& range, double base) {
  const int every = std::max(1, static_cast<int>(std::ceil((range.high - range.low) / kMostTicks)));
  std::vector<Tick> ticks;
  for (int power = static_cast<int>(std::ceil(range.low - 1e-9)); power <= range.high + 1e-9;
       power += every) {
    ticks.push_back({static_cast<double>(power), std::pow(base, power)});
  }
  return ticks;
}

/// Short logarithmic axes: 1, 2 and 5 of every decade.
std::vector<Tick> one_two_five(const Range& range) {
  std::vector<Tick> ticks;
  for (int power = static_cast<int>(std::floor(range.low)); power <= range.high; ++power) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double value = factor * std::pow(10, power);
      const double place = std::log10(value);
      if (place >= range.low - 1e-9 && place <= range.high + 1e-9) ticks.push_back({place, value});
    }
  }
  return ticks;
}

std::vector<Tick> ticks_of(const Range& range, Scale scale) {
  if (scale == Scale::Log2) return powers_in(range, 2);
  if (scale == Scale::Log10) {
    return range.high - range.low > 2 ? powers_in(range, 10) : one_two_five(range);
  }
  std::vector<Tick> ticks;
  const double step = tick_step(range.high - range.low, kMostTicks);
  for (double at = std::ceil(range.low / step) * step; at <= range.high + step * 1e-9; at += step) {
    ticks.push_back({at, at});
  }
  return ticks;
}

/// The range that is drawn: linear axes begin at 0, none is a single point.
Range widened(Range range, Scale scale) {
  if (scale == Scale::Linear) {
    range.low = std::min(range.low, 0.0);
    range.high = std::max(range.high, 0.0);
    if (range.low == range.high) range.high = range.low + 1;
    const double step = tick_step(range.high - range.low, kMostTicks);
    range.high = std::ceil(range.high / step - 1e-9) * step;
  } else if (range.high - range.low < 0.05) {
    range.low -= 0.3;
    range.high += 0.3;
  }
  return range;
}

class ChartPicture : SvgWriter {
 public:
  explicit ChartPicture(const Chart& chart) : chart_{chart} {
    for (const Curve& curve : chart.curves) {
      for (const CurvePoint& point : curve.points) {
        if (!is_drawn(point)) continue;
        x_.include(point.x, chart.x.scale);
        y_.include(point.y, chart.y.scale);
        if (has_band(point)) {
          y_.include(*point.low, chart.y.scale);
          y_.include(*point.high, chart.y.scale);
        }
      }
    }
  }

  std::string draw(const std::string& id) {
    if (x_.is_empty()) return {};
    x_ = chart_.x.scale == Scale::Linear ? x_ : widened(x_, chart_.x.scale);
    if (x_.low == x_.high) x_.high = x_.low + 1;
    y_ = widened(y_, chart_.y.scale);
    put("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"curves\" id=\"{0}\" viewBox=\"0 0 {1} "
        "{2}\" role=\"img\" aria-labelledby=\"{0}-title\"><title id=\"{0}-title\">{3}</title>",
        id, kChartWidth, kChartHeight, xml_escaped(summary()));
    put("<text class=\"heading\" x=\"8\" y=\"16\">{}</text>", xml_escaped(chart_.title));
    draw_axes();
    for (const Curve& curve : chart_.curves) draw_band(curve);
    for (const Curve& curve : chart_.curves) draw_line(curve);
    draw_legend();
    put("</svg>\n");
    return std::move(out_);
  }

 private:
  bool is_drawn(const CurvePoint& point) const {
    return can_be_drawn(point.x, chart_.x.scale) && can_be_drawn(point.y, chart_.y.scale);
  }
  bool has_band(const CurvePoint& point) const {
    return point.low && point.high && can_be_drawn(*point.low, chart_.y.scale) &&
           can_be_drawn(*point.high, chart_.y.scale);
  }
  static std::string label_of(const ChartAxis& axis, double value) {
    return axis.label == nullptr ? fmt::format("{:g}", value) : axis.label(value);
  }
  double x(double value) const { return x_at(place_of(value, chart_.x.scale)); }
  double y(double value) const { return y_at(place_of(value, chart_.y.scale)); }
  double x_at(double place) const {
    return kPlotLeft + (place - x_.low) / (x_.high - x_.low) * (kPlotRight - kPlotLeft);
  }
  double y_at(double place) const {
    return kPlotBottom - (place - y_.low) / (y_.high - y_.low) * (kPlotBottom - kPlotTop);
  }
  static const char* name_of(Curve::Look look) {
    constexpr const char* kNames[] = {"predicted", "measured", "third", "fourth"};
    return kNames[static_cast<std::size_t>(look)];
  }

  /// What the picture says, for those who do not see it.
  std::string summary() const {
    std::string text = fmt::format("{}: {} over {}", chart_.title, chart_.y.title, chart_.x.title);
    for (const Curve& curve : chart_.curves) {
      const auto last = std::find_if(curve.points.rbegin(), curve.points.rend(),
                                     [&](const CurvePoint& point) { return is_drawn(point); });
      if (last == curve.points.rend()) continue;
      text += fmt::format("; {}: {} at {}", curve.name, label_of(chart_.y, last->y),
                          label_of(chart_.x, last->x));
    }
    return text;
  }

  void draw_axes() {
    put("<g class=\"axis\">");
    for (const Tick& tick : ticks_of(y_, chart_.y.scale)) {
      put("<path class=\"grid\" d=\"M{} {:.1f}H{}\"/><text class=\"y\" x=\"{}\" "
          "y=\"{:.1f}\">{}</text>",
          kPlotLeft, y_at(tick.place), kPlotRight, kPlotLeft - 7, y_at(tick.place) + 4,
          xml_escaped(label_of(chart_.y, tick.value)));
    }
    for (const Tick& tick : ticks_of(x_, chart_.x.scale)) {
      put("<path class=\"grid\" d=\"M{0:.1f} {1}v4\"/><text class=\"x\" x=\"{0:.1f}\" "
          "y=\"{2}\">{3}</text>",
          x_at(tick.place), kPlotBottom, kPlotBottom + 17,
          xml_escaped(label_of(chart_.x, tick.value)));
    }
    put("<text class=\"name\" x=\"8\" y=\"{}\">{}</text><text class=\"name end\" x=\"{}\" "
        "y=\"{}\">{}</text></g>",
        kPlotTop - 14, xml_escaped(chart_.y.title), kPlotRight, kChartHeight - 8,
        xml_escaped(chart_.x.title));
  }

  void draw_band(const Curve& curve) {
    std::string upper, lower;
    for (const CurvePoint& point : curve.points) {
      if (!is_drawn(point) || !has_band(point)) continue;
      upper +=
          fmt::format("{}{:.1f} {:.1f}", upper.empty() ? "M" : "L", x(point.x), y(*point.high));
      lower = fmt::format("L{:.1f} {:.1f}", x(point.x), y(*point.low)) + lower;
    }
    if (!upper.empty()) {
      put("<path class=\"band look-{}\" d=\"{}{}Z\"/>", name_of(curve.look), upper, lower);
    }
  }

  void draw_line(const Curve& curve) {
    std::string line, dots;
    for (const CurvePoint& point : curve.points) {
      if (!is_drawn(point)) continue;
      line += fmt::format("{}{:.1f} {:.1f}", line.empty() ? "M" : "L", x(point.x), y(point.y));
      dots += fmt::format(
          "<circle class=\"dot look-{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.2\">"
          "<title>{}</title></circle>",
          name_of(curve.look), x(point.x), y(point.y), xml_escaped(point_words(curve, point)));
    }
    if (!line.empty()) {
      put("<path class=\"line look-{}\" d=\"{}\"/>{}", name_of(curve.look), line, dots);
    }
  }

  std::string point_words(const Curve& curve, const CurvePoint& point) const {
    std::string words = fmt::format("{}: {} at {}", curve.name, label_of(chart_.y, point.y),
                                    label_of(chart_.x, point.x));
    if (has_band(point) && *point.low != *point.high) {
      words += fmt::format("\n{} .. {}", label_of(chart_.y, *point.low),
                           label_of(chart_.y, *point.high));
    }
    return words;
  }

  /// Right-aligned in the line of the y axis's name.
  void draw_legend() {
    constexpr double kLetter = 6.2;
    double at = kPlotRight;
    for (auto curve = chart_.curves.rbegin(); curve != chart_.curves.rend(); ++curve) {
      at -= kLetter * static_cast<double>(curve->name.size());
      put("<text class=\"key\" x=\"{:.1f}\" y=\"{}\">{}</text>", at, kPlotTop - 14,
          xml_escaped(curve->name));
      put("<path class=\"line look-{}\" d=\"M{:.1f} {}h20\"/>", name_of(curve->look), at - 26,
          kPlotTop - 18);
      at -= 40;
    }
  }

  const Chart& chart_;
  Range x_, y_;
};

}  // namespace

std::string draw_curves(const Chart& chart, const std::string& id) {
  return ChartPicture{chart}.draw(id);
}

}  // namespace foretrace
