#include "reports/page/sweeps.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "reports/compare/rates.h"
#include "reports/table/text_table.h"

namespace foretrace {
namespace {

constexpr std::size_t kLeastSizes = 3;

std::string size_label(double bytes) { return format_size(static_cast<std::uint64_t>(bytes)); }
std::string gbps_label(double gbps) { return fmt::format("{:.4g} GB/s", gbps); }

/// "10 us", not "10.00 us": ticks are round.
std::string time_label(double ns) {
  if (ns < 1e3) return fmt::format("{:g} ns", ns);
  if (ns < 1e6) return fmt::format("{:.4g} us", ns / 1e3);
  if (ns < 1e9) return fmt::format("{:.4g} ms", ns / 1e6);
  return fmt::format("{:.4g} s", ns / 1e9);
}

using Rows = std::vector<const RegionRow*>;

/// Rows of one operation in a loop belong together; so do regions of one kind of operation that
/// have a size each.
std::map<std::string, Rows> grouped(const Comparison& c) {
  std::map<std::string, Rows> groups;
  for (const RegionRow& row : c.regions) {
    const OpRow& op = c.ops[row.op];
    if (row.size_bytes == 0 || op.work.empty()) continue;
    const std::string key = !op.sizes.empty()
                                ? fmt::format("{:08} {}", row.op, op.label)
                                : fmt::format("{:08} {}{}{}", c.ops.size(), op.work,
                                              op.variant.empty() ? "" : " ", op.variant);
    groups[key].push_back(&row);
  }
  return groups;
}

bool are_of_different_sizes(const Rows& rows) {
  std::set<std::uint64_t> sizes;
  for (const RegionRow* row : rows) sizes.insert(row->size_bytes);
  return sizes.size() == rows.size() && sizes.size() >= kLeastSizes;
}

/// One row's figure on one side, with what limits it.
struct Figure {
  double ns{};
  std::optional<double> low_ns, high_ns;
};

std::optional<Figure> figure_of(const RegionRow& row, bool first, bool first_is_measured) {
  const auto& side = first ? row.first : row.second;
  if (!side || side->median_ns <= 0) return std::nullopt;
  if (first && !first_is_measured) return Figure{side->median_ns, row.low_ns, row.high_ns};
  return Figure{side->median_ns, side->p5_ns, side->p95_ns};
}

void add_side(Sweep& sweep, const Comparison& c, const Rows& rows, bool first) {
  const bool measured = (first ? c.first_origin : c.second_origin).measured;
  const auto look = first ? Curve::Look::Predicted : Curve::Look::Measured;
  Curve time{first ? c.first_name : c.second_name, look, {}};
  Curve rate = time;
  for (const RegionRow* row : rows) {
    const auto figure = figure_of(*row, first, measured);
    if (!figure) continue;
    const auto size = static_cast<double>(row->size_bytes);
    time.points.push_back({size, figure->ns, figure->low_ns, figure->high_ns});
    const auto work = amount_of(c.ops[row->op], row->instance);
    if (!work) continue;
    const auto per = [&](const std::optional<double>& ns) {
      return ns && *ns > 0 ? std::optional{work->amount / *ns} : std::nullopt;
    };
    rate.points.push_back(
        {size, work->amount / figure->ns, per(figure->high_ns), per(figure->low_ns)});
  }
  if (!time.points.empty()) sweep.time.curves.push_back(std::move(time));
  if (!rate.points.empty()) sweep.rate.curves.push_back(std::move(rate));
}

std::string words_of(const OpRow& op) {
  std::string words = op.work;
  if (!op.variant.empty()) words += ", " + op.variant;
  if (op.ranks != 0) words += fmt::format(", {} ranks", op.ranks);
  return words;
}

}  // namespace

std::vector<Sweep> sweeps_of(const Comparison& c, bool both) {
  std::vector<Sweep> sweeps;
  for (auto& [key, rows] : grouped(c)) {
    if (!are_of_different_sizes(rows)) continue;
    std::ranges::sort(rows, {}, &RegionRow::size_bytes);
    const OpRow& op = c.ops[rows.front()->op];
    const auto work = amount_of(op, rows.front()->instance);
    const bool is_bus = work && work->unit == AmountOfWork::Unit::BusBytes;
    Sweep sweep;
    sweep.name = op.sizes.empty() ? words_of(op) : op.label + ": " + words_of(op);
    const ChartAxis size{"size", ChartAxis::Scale::Log2, size_label};
    sweep.time = {"Time", size, {"time", ChartAxis::Scale::Log10, time_label}, {}};
    sweep.rate = {is_bus ? "Bus bandwidth" : "Bandwidth",
                  size,
                  {is_bus ? "busbw" : "bandwidth", ChartAxis::Scale::Linear, gbps_label},
                  {}};
    add_side(sweep, c, rows, true);
    if (both) add_side(sweep, c, rows, false);
    sweeps.push_back(std::move(sweep));
  }
  return sweeps;
}

}  // namespace foretrace
