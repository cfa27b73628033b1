// Lines over an axis as inline SVG: time and bandwidth over size, a plan's figures over the number
// of GPUs. Styled by assets/curves.css, whose colours are those of assets/colours.css; every point
// says what it is in a tooltip of the browser's own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace foretrace {

struct ChartAxis {
  enum class Scale : std::uint8_t {
    Linear,  ///< from 0
    Log10,   ///< values above 0 only; the others are left out
    Log2     ///< the same, for sizes and numbers of GPUs
  };
  std::string title;  ///< with its unit: "bus bandwidth, GB/s"
  Scale scale = Scale::Linear;
  std::string (*label)(double value) = nullptr;  ///< of a tick or a point; null: "{:g}"
};

struct CurvePoint {
  double x{}, y{};
  /// The band at this point; drawn where both are there.
  std::optional<double> low = std::nullopt, high = std::nullopt;
};

struct Curve {
  /// The first is drawn dashed: what is predicted, beside what was measured.
  enum class Look : std::uint8_t { Predicted, Measured, Third, Fourth };
  std::string name;
  Look look = Look::Measured;
  std::vector<CurvePoint> points;  ///< in the order of x
};

struct Chart {
  std::string title;
  ChartAxis x, y;
  std::vector<Curve> curves;
};

/// Empty when no point can be drawn. `id` makes the names inside unique within a page.
std::string draw_curves(const Chart& chart, const std::string& id);

}  // namespace foretrace
