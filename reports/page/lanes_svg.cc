#include "reports/page/lanes_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <vector>

#include "reports/page/assets.h"
#include "reports/page/svg_text.h"
#include "reports/spans/span_join.h"
#include "reports/spans/span_text.h"
#include "reports/table/text_table.h"

namespace foretrace {
namespace {

// Pixels at zoom 1; the page scales the whole picture.
constexpr double kWidth = 1180, kLeft = 172, kRight = kWidth - 14;
constexpr double kRowHeight = 15, kRowGap = 2, kLaneGap = 11, kGroupHeight = 24, kAxisHeight = 26;
constexpr double kLegendHeight = 30, kTitleHeight = 30, kLetterWidth = 5.4;

/// All ticks of an axis in the unit that fits its step: "0", "200 us", "1200 us".
std::string tick_label(double ns, double step_ns) {
  if (ns == 0) return "0";
  if (step_ns < 1e3) return fmt::format("{:g} ns", ns);
  if (step_ns < 1e6) return fmt::format("{:g} us", ns / 1e3);
  if (step_ns < 1e9) return fmt::format("{:g} ms", ns / 1e6);
  return fmt::format("{:g} s", ns / 1e9);
}

class Picture : SvgWriter {
 public:
  Picture(std::span<const Side> sides, const LanesLayout& layout, SvgUse use, const std::string& id)
      : sides_{sides}, layout_{layout}, use_{use}, id_{id} {
    if (sides.size() == 2)
      partners_ = partners_of(*sides[0].timeline, *sides[1].timeline);
    else
      partners_.emplace_back(sides.empty() ? 0 : sides[0].timeline->spans.size(), kNoSpan);
  }

  std::string draw(const std::string& title) {
    top_ = use_ == SvgUse::Standalone && !title.empty() ? kTitleHeight : 0;
    place_rows();
    std::string body;
    std::swap(body, out_);
    open(title);
    draw_axis();
    draw_names();
    put("<g clip-path=\"url(#{}-clip)\"><g class=\"boxes\">", id_);
    for (std::size_t lane = 0; lane < layout_.lanes.size(); ++lane) draw_lane(lane);
    // Many arrows together stay as light as a few.
    const double opacity =
        std::clamp(18.0 / static_cast<double>(layout_.arrows.size() + 1), 0.1, 0.4);
    put("</g><g class=\"arrows\" stroke-opacity=\"{:.2f}\">", opacity);
    for (const LaunchArrow& arrow : layout_.arrows) draw_arrow(arrow);
    put("</g><g class=\"labels\">{}</g></g>", labels_);
    draw_legend();
    put("</svg>\n");
    return std::move(out_);
  }

 private:
  double x(std::int64_t ns) const {
    return kLeft + static_cast<double>(ns) / static_cast<double>(layout_.end_ns) * (kRight - kLeft);
  }

  static std::string group_of(const Lane& lane) {
    const std::string process = fmt::format("process {}", lane.process);
    return lane.device == kNoDevice ? process : process + fmt::format(" · device {}", lane.device);
  }

  /// Decides the y of every row and the picture's height.
  void place_rows() {
    double y = top_ + kAxisHeight;
    std::string group;
    for (const LaneRows& lane : layout_.lanes) {
      if (group_of(lane.lane) != group) {
        group = group_of(lane.lane);
        y += kGroupHeight - kLaneGap;
        groups_.push_back({y, group});
        y += kLaneGap;
      } else {
        y += kLaneGap;
      }
      lane_y_.push_back(y);
      const auto rows = static_cast<double>(sides_.size());
      y += rows * kRowHeight + (rows - 1) * kRowGap;
    }
    plot_bottom_ = y + kLaneGap / 2;
    height_ = plot_bottom_ + kLegendHeight;
  }

  double row_y(std::size_t lane, std::size_t side) const {
    return lane_y_[lane] + static_cast<double>(side) * (kRowHeight + kRowGap);
  }

  void open(const std::string& title) {
    put("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"lanes{}\" id=\"{}\" viewBox=\"0 0 {} "
        "{}\" "
        "data-left=\"{}\" data-right=\"{}\" data-end=\"{}\" data-top=\"{}\" data-bottom=\"{}\" "
        "role=\"img\"",
        use_ == SvgUse::Packed ? " packed" : "", id_, kWidth, height_, kLeft, kRight,
        layout_.end_ns, top_ + kAxisHeight, plot_bottom_);
    if (use_ == SvgUse::Standalone) put(" width=\"{}\" height=\"{}\"", kWidth, height_);
    put("><title>{}</title>", xml_escaped(title));
    if (use_ == SvgUse::Standalone) {
      put("<style>{}{}</style>", assets::colours_css, assets::lanes_css);
      put("<rect width=\"{}\" height=\"{}\" style=\"fill:var(--ground)\"/>", kWidth, height_);
      if (top_ > 0) put("<text class=\"title\" x=\"16\" y=\"22\">{}</text>", xml_escaped(title));
    }
    put("<defs><clipPath id=\"{}-clip\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>"
        "</clipPath>",
        id_, kLeft, top_, kRight - kLeft, height_ - top_);
    pattern("copy", "M0 7 L7 0");
    pattern("nccl", "M1.5 0 V7 M5 0 V7");
    pattern("host-wait", "M0 1.5 H7 M0 5 H7");
    put("</defs>");
  }

  void pattern(const char* name, const char* path) {
    put("<pattern id=\"{}-{}\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\">"
        "<path class=\"hatch\" d=\"{}\"/></pattern>",
        id_, name, path);
  }

  void draw_axis() {
    const auto length = static_cast<double>(layout_.end_ns);
    const double step = tick_step(length, 10);
    put("<g class=\"axis\">");
    for (double at = 0; at <= length; at += step) {
      const double px = x(static_cast<std::int64_t>(at));
      put("<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/>"
          "<text class=\"tick\" x=\"{0:.1f}\" y=\"{3}\">{4}</text>",
          px, top_ + kAxisHeight - 6, plot_bottom_, top_ + kAxisHeight - 11, tick_label(at, step));
    }
    put("</g>");
  }

  void draw_names() {
    for (const auto& [y, name] : groups_) {
      put("<text class=\"group\" x=\"16\" y=\"{}\">{}</text>", y + 3, xml_escaped(name));
      put("<line class=\"rowline\" x1=\"16\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/>", kRight, y - 10,
          y - 10);
    }
    for (std::size_t lane = 0; lane < layout_.lanes.size(); ++lane) {
      const double rows = static_cast<double>(sides_.size()) * (kRowHeight + kRowGap) - kRowGap;
      put("<rect class=\"band\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>", kLeft,
          lane_y_[lane] - 1, kRight - kLeft, rows + 2);
      put("<text class=\"lane\" x=\"16\" y=\"{}\">{}</text>", lane_y_[lane] + rows / 2 + 4,
          xml_escaped(shortened(layout_.lanes[lane].lane.name, 15)));
      for (std::size_t side = 0; side < sides_.size(); ++side) {
        put("<text class=\"side\" x=\"{}\" y=\"{}\">{}</text>", kLeft - 6,
            row_y(lane, side) + kRowHeight - 4, xml_escaped(sides_[side].name));
      }
    }
  }

  void draw_lane(std::size_t lane) {
    for (const Row& row : layout_.lanes[lane].rows) {
      const double y = row_y(lane, row.side);
      for (const Box& box : row.boxes) draw_box(box, row.side, y);
    }
  }

  void draw_box(const Box& box, std::size_t side, double y) {
    const Timeline& timeline = *sides_[side].timeline;
    const OpRow& op = timeline.ops[timeline.spans[box.span].op];
    const double left = x(box.begin_ns);
    double width = std::max(x(box.end_ns) - left, 0.8);
    if (width > 3) width -= 0.7;  // neighbours stay apart
    seen_[static_cast<std::size_t>(box.span_class)] = true;
    const auto name = name_of(box.span_class);
    const std::string label = box.count > 1      ? fmt::format("{} spans", box.count)
                              : op.label.empty() ? op.kind
                                                 : op.label;
    const std::string at = use_ == SvgUse::Packed
                               ? std::string{}
                               : fmt::format(" x=\"{:.2f}\" width=\"{:.2f}\"", left, width);
    put("<rect class=\"s c-{} {}\"{} y=\"{}\" height=\"{}\" data-b=\"{}\" data-e=\"{}\" "
        "data-l=\"{}\"{}><title>{}</title></rect>",
        name, side == 0 && sides_.size() == 2 ? "first" : "second", at, y, kRowHeight, box.begin_ns,
        box.end_ns, xml_escaped(label), opacity_of(box), xml_escaped(title(box, side)));
    if (is_textured(box.span_class) && width > 3 && box.count == 1) {
      put("<rect class=\"texture\"{} y=\"{}\" height=\"{}\" fill=\"url(#{}-{})\" data-b=\"{}\" "
          "data-e=\"{}\"/>",
          at, y, kRowHeight, id_, name, box.begin_ns, box.end_ns);
    }
    if (use_ != SvgUse::Packed && width > kLetterWidth * static_cast<double>(label.size()) + 6) {
      fmt::format_to(
          std::back_inserter(labels_), "<text class=\"label {}\" x=\"{:.2f}\" y=\"{}\">{}</text>",
          label_class(side, box.span_class), left + 4, y + kRowHeight - 4, xml_escaped(label));
    }
  }

  static bool is_textured(SpanClass c) {
    return c == SpanClass::Copy || c == SpanClass::Nccl || c == SpanClass::HostWait;
  }
  /// What colour reads on the box. report.js knows the same rule.
  const char* label_class(std::size_t side, SpanClass c) const {
    const bool is_pale =
        (side == 0 && sides_.size() == 2) || c == SpanClass::HostWait || c == SpanClass::Waiting;
    return is_pale ? "on-light" : c == SpanClass::Copy ? "on-copy" : "on-solid";
  }

  /// A merged box is as strong as it is busy.
  static std::string opacity_of(const Box& box) {
    if (box.count == 1) return {};
    return fmt::format(" opacity=\"{:.2f}\"", 0.2 + 0.8 * busy_share(box));
  }
  static double busy_share(const Box& box) {
    const auto length = static_cast<double>(std::max<std::int64_t>(box.end_ns - box.begin_ns, 1));
    return std::min(1.0, static_cast<double>(box.busy_ns) / length);
  }

  std::string title(const Box& box, std::size_t side) const {
    const Timeline& timeline = *sides_[side].timeline;
    if (box.count > 1) {
      return fmt::format("{} spans\n{}: too narrow to draw one by one, mostly {}, {} busy in {}",
                         format_count(box.count), sides_[side].name, name_of(box.span_class),
                         format_percent(busy_share(box)),
                         format_time(static_cast<double>(box.end_ns - box.begin_ns)));
    }
    const std::uint32_t partner = partners_[side][box.span];
    const bool has_partner = sides_.size() == 2 && partner != kNoSpan;
    return describe_span(timeline, box.span, box.begin_ns, sides_[side].name,
                         has_partner ? &sides_[1 - side].timeline->spans[partner] : nullptr,
                         has_partner ? sides_[1 - side].name : "", side == 0);
  }

  void draw_arrow(const LaunchArrow& arrow) {
    const double from_y = row_y(arrow.from_lane, arrow.side) + kRowHeight;
    const double to_y = row_y(arrow.to_lane, arrow.side);
    put("<path class=\"arrow\" data-a=\"{} {} {} {}\"", arrow.from_ns, from_y, arrow.to_ns, to_y);
    if (use_ != SvgUse::Packed) {
      put(" d=\"M{0:.1f} {1} C{0:.1f} {2} {3:.1f} {2} {3:.1f} {4}\"", x(arrow.from_ns), from_y,
          (from_y + to_y) / 2, x(arrow.to_ns), to_y);
    }
    put("/>");
  }

  void draw_legend() {
    constexpr std::pair<SpanClass, const char*> kEntries[] = {
        {SpanClass::HostCall, "host call"}, {SpanClass::HostWait, "host waits"},
        {SpanClass::HostWork, "host work"}, {SpanClass::Kernel, "kernel"},
        {SpanClass::Copy, "copy"},          {SpanClass::Nccl, "NCCL"},
        {SpanClass::Order, "event"},        {SpanClass::Waiting, "waits"},
        {SpanClass::Prefill, "prefill"},    {SpanClass::Decode, "decode"},
        {SpanClass::Preempted, "preempted"}};
    double px = kLeft;
    for (const auto& [span_class, words] : kEntries) {
      if (!seen_[static_cast<std::size_t>(span_class)]) continue;
      draw_key(px, fmt::format("c-{} second", name_of(span_class)), words,
               is_textured(span_class) ? name_of(span_class) : "");
    }
    if (sides_.size() == 2) draw_key(px, "c-kernel first", "pale: " + sides_[0].name, "");
  }

  /// One entry of the legend at `px`, which moves on; report.js wraps them on narrow screens.
  void draw_key(double& px, const std::string& classes, const std::string& words,
                std::string_view texture) {
    const double width = 50 + kLetterWidth * static_cast<double>(words.size());
    put("<g class=\"key\" data-w=\"{:.0f}\" transform=\"translate({:.1f} {})\">"
        "<rect class=\"s {}\" width=\"16\" height=\"10\"/>",
        width, px, plot_bottom_ + 10, classes);
    if (!texture.empty()) {
      put("<rect class=\"texture\" width=\"16\" height=\"10\" fill=\"url(#{}-{})\"/>", id_,
          texture);
    }
    put("<text class=\"legend\" x=\"21\" y=\"9\">{}</text></g>", xml_escaped(words));
    px += width;
  }

  std::span<const Side> sides_;
  const LanesLayout& layout_;
  SvgUse use_;
  const std::string& id_;
  std::vector<std::vector<std::uint32_t>> partners_;
  double top_ = 0, plot_bottom_ = 0, height_ = 0;
  std::vector<double> lane_y_;
  std::vector<std::pair<double, std::string>> groups_;
  std::array<bool, kSpanClasses> seen_{};
  std::string labels_;
};

std::string note_of(const LanesLayout& layout) {
  std::string note;
  if (layout.end_ns < layout.run_end_ns) {
    note += fmt::format("The first {} of {}. ", format_time(static_cast<double>(layout.end_ns)),
                        format_time(static_cast<double>(layout.run_end_ns)));
  }
  if (layout.merged_spans != 0) {
    note += fmt::format("{} of {} spans are too narrow to draw one by one and are shown merged. ",
                        format_count(layout.merged_spans), format_count(layout.spans));
  }
  if (layout.hidden_arrows != 0) {
    note += fmt::format("{} launch arrows are not drawn. ", format_count(layout.hidden_arrows));
  }
  if (layout.hidden_lanes != 0) {
    note += fmt::format("{} further lanes are not drawn. ", format_count(layout.hidden_lanes));
  }
  const bool thinned = layout.merged_spans + layout.hidden_arrows + layout.hidden_lanes != 0;
  if (thinned) note += "The Perfetto trace holds everything.";
  return note;
}

}  // namespace

LanesPicture draw_lanes(std::span<const Side> sides, const LayoutLimits& limits, SvgUse use,
                        const std::string& id, const std::string& title) {
  const LanesLayout layout = lay_out(sides, limits);
  return {Picture{sides, layout, use, id}.draw(title), note_of(layout)};
}

}  // namespace foretrace
