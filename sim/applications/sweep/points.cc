#include "sim/applications/sweep/points.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "scenarios/base/text/errors.h"
#include "scenarios/base/values/quantity.h"

namespace foretrace::sweep {
namespace {

const std::string kTooMany = fmt::format("more than {} values", kMostValues);

[[noreturn]] void refuse(const std::string& flag, const std::string& text,
                         const std::string& problem) {
  throw UsageError{fmt::format("{} {}: {}\n  hint: {} NAME=2,4,8 or NAME=8MiB..512MiB:x2", flag,
                               text, problem, flag)};
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts{""};
  for (const char c : text) {
    if (c == at) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

/// A range's end or step; none where the text is no quantity.
std::optional<Quantity> quantity(const std::string& text) {
  auto parsed = parse_constant(text);
  if (!parsed) return {};
  return *parsed;
}

/// In base units, exactly.
std::optional<std::string> value_text(const Rational& value, const Unit& unit) {
  const auto whole = [&](const Rational& of) -> std::optional<std::string> {
    if (!of.is_whole()) return {};
    return of.text();
  };
  if (unit == kNumber) return whole(value);
  if (unit == kSize) {
    const auto bytes = whole(value);
    return bytes ? std::optional{*bytes + "B"} : std::nullopt;
  }
  if (unit != kTime) return {};
  const auto picoseconds = whole(value);
  return picoseconds ? std::optional{*picoseconds + "ps"} : std::nullopt;
}

class Range {
 public:
  /// At most `room` values.
  Range(const std::string& flag, const std::string& axis, const std::string& text,
        std::int64_t room)
      : flag_{flag}, axis_{axis}, room_{room} {
    const auto dots = text.find("..");
    std::string rest = text.substr(dots + 2);
    std::string step;
    if (const auto colon = rest.find(':'); colon != std::string::npos) {
      step = rest.substr(colon + 1);
      rest.resize(colon);
    }
    const auto begin = quantity(text.substr(0, dots));
    const auto end = quantity(rest);
    if (!begin || !end) wrong(fmt::format("'{}' has no begin or no end", text));
    if (begin->unit != end->unit) wrong("begin and end have different units");
    unit_ = begin->unit;
    set_step(step);
    if (!multiplies_ && (end->constant - begin->constant) / step_ >= room_) too_many();
    for (Rational at = begin->constant; at <= end->constant; at = next(at)) add(at);
    if (values_.empty()) wrong(fmt::format("'{}' ends before it begins", text));
  }

  const std::vector<std::string>& values() const { return values_; }

 private:
  [[noreturn]] void wrong(const std::string& problem) const { refuse(flag_, axis_, problem); }

  [[noreturn]] void too_many() const { wrong(kTooMany); }

  void set_step(const std::string& text) {
    if (text.empty()) return;
    multiplies_ = text.front() == 'x' || text.front() == '*';
    const bool known = multiplies_ || text.front() == '+';
    const auto step = known ? quantity(text.substr(1)) : std::nullopt;
    if (!step) wrong(fmt::format("'{}' is no step: x2 or +1", text));
    if (multiplies_ ? step->unit != kNumber || step->constant <= 1
                    : step->unit != unit_ || step->constant <= 0) {
      wrong(fmt::format("the step '{}' does not lead on", text));
    }
    step_ = step->constant;
  }

  Rational next(const Rational& at) const {
    if (!multiplies_) return at + step_;
    if (at <= 0) wrong("a range by factors begins above 0");
    return at * step_;
  }

  void add(const Rational& value) {
    const auto text = value_text(value, unit_);
    if (!text) wrong("a range's values are whole bytes, picoseconds or numbers");
    if (std::ssize(values_) >= room_) too_many();
    values_.push_back(*text);
  }

  const std::string& flag_;
  const std::string& axis_;
  std::int64_t room_;
  Unit unit_{};
  bool multiplies_ = false;
  Rational step_ = 1;
  std::vector<std::string> values_;
};

}  // namespace

Axis parse_axis(Kind kind, const std::string& text, const std::string& flag) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0) refuse(flag, text, "it is NAME=VALUES");
  Axis axis{kind, text.substr(0, equals), {}};
  for (const std::string& part : split(text.substr(equals + 1), ',')) {
    if (part.empty()) refuse(flag, text, "a value is missing");
    if (kind == Kind::Set && part.find("..") != std::string::npos) {
      const Range range{flag, text, part, std::int64_t{kMostValues} - std::ssize(axis.values)};
      axis.values.insert(axis.values.end(), range.values().begin(), range.values().end());
    } else {
      axis.values.push_back(part);
    }
    if (axis.values.size() > kMostValues) refuse(flag, text, kTooMany);
  }
  return axis;
}

Axis machine_axis(const std::string& text) {
  Axis axis{Kind::Machine, "", split(text, ',')};
  if (std::ranges::count(axis.values, "") != 0) {
    throw UsageError{fmt::format("--machine {}: a name is missing", text)};
  }
  return axis;
}

std::string Point::machine(const std::vector<Axis>& axes) const {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].kind == Kind::Machine) return values[i];
  }
  FORETRACE_CHECK(false, "a sweep has a machine");
}

ParameterValues Point::parameters(const std::vector<Axis>& axes) const {
  ParameterValues parameters;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].kind == Kind::Set) parameters[axes[i].name] = values[i];
  }
  return parameters;
}

std::vector<std::string> Point::what_ifs(const std::vector<Axis>& axes) const {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].kind == Kind::With) all.push_back(axes[i].name + "=" + values[i]);
  }
  return all;
}

std::vector<Point> points_of(const std::vector<Axis>& axes) {
  std::set<std::pair<Kind, std::string>> seen;
  std::size_t count = 1;
  for (const Axis& axis : axes) {
    if (!seen.emplace(axis.kind, axis.name).second) {
      throw UsageError{fmt::format("{} varies twice", axis.name)};
    }
    count *= axis.values.size();
    if (count > kMostPoints) {
      throw UsageError{fmt::format("more than {} points", kMostPoints)};
    }
  }
  std::vector<Point> points(count);
  for (std::size_t number = 0; number < count; ++number) {
    Point& point = points[number];
    point.number = number;
    point.values.resize(axes.size());
    std::size_t rest = number;
    for (std::size_t i = axes.size(); i-- > 0; rest /= axes[i].values.size()) {
      point.values[i] = axes[i].values[rest % axes[i].values.size()];
    }
  }
  return points;
}

}  // namespace foretrace::sweep
