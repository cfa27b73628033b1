#include "reports/judge/expectations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "reports/judge/judges.h"
#include "reports/table/text_table.h"
#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

std::string name(const Expectation& e, std::size_t i) {
  return i < e.spans.size() ? e.spans[i] : "?";
}

std::string bounds(const Expectation& e) {
  const auto ns = [](Duration d) { return format_time(static_cast<double>(d.count()) / 1e3); };
  std::string text;
  if (e.at_least) text += " at least " + ns(*e.at_least);
  if (e.at_most) text += (e.at_least ? std::string{" and at most "} : " at most ") + ns(*e.at_most);
  return text;
}

std::string describe_overlap(const Expectation& e) {
  return fmt::format("{} overlaps {} at least {}", name(e, 0), name(e, 1),
                     format_percent(e.fraction.value_or(0)));
}
std::string describe_order(const Expectation& e) {
  return fmt::format("{} before {}", name(e, 0), name(e, 1));
}
std::string describe_returns_before(const Expectation& e) {
  return fmt::format("{} returns before {} ends", name(e, 0), name(e, 1));
}
std::string describe_returns_after(const Expectation& e) {
  return fmt::format("{} returns after {} ended", name(e, 0), name(e, 1));
}
std::string describe_begins_within(const Expectation& e) {
  return fmt::format("{} begins{} after {} ended", name(e, 1), bounds(e), name(e, 0));
}
std::string describe_host_free(const Expectation& e) {
  return fmt::format("host free after {}{}", name(e, 0), bounds(e));
}
std::string describe_host_blocked(const Expectation& e) {
  return fmt::format("host blocked in {}{}", name(e, 0), bounds(e));
}
std::string describe_lasts(const Expectation& e) {
  return fmt::format("{} lasts{}", name(e, 0), bounds(e));
}
std::string describe_total(const Expectation& e) { return name(e, 0) + bounds(e); }
std::string describe_ratio(const Expectation& e) {
  std::string text = fmt::format("{} / {}", name(e, 0), name(e, 1));
  if (e.fraction) text += fmt::format(" at least {:g}", *e.fraction);
  if (e.fraction_at_most) {
    text += fmt::format("{} at most {:g}", e.fraction ? " and" : "", *e.fraction_at_most);
  }
  return text;
}
std::string describe_channels(const Expectation& e) {
  std::string text = fmt::format("NCCL runs {} on", name(e, 0));
  if (e.fraction) text += fmt::format(" at least {:g}", *e.fraction);
  if (e.fraction_at_most) {
    text += fmt::format("{} at most {:g}", e.fraction ? " and" : "", *e.fraction_at_most);
  }
  return text + " channels";
}
std::string describe_fails(const Expectation& e) { return "fails at " + name(e, 0); }
std::string describe_hangs(const Expectation& e) { return "hangs at " + name(e, 0); }

struct Kind {
  std::string_view name;
  Verdict (*judge)(const Expectation&, const Timeline&);
  std::string (*describe)(const Expectation&);
};

constexpr std::array kKinds{
    Kind{"overlap", judge_overlap, describe_overlap},
    Kind{"order", judge_order, describe_order},
    Kind{"returns_before", judge_returns_before, describe_returns_before},
    Kind{"returns_after", judge_returns_after, describe_returns_after},
    Kind{"begins_within", judge_begins_within, describe_begins_within},
    Kind{"host_free", judge_host_call, describe_host_free},
    Kind{"host_blocked", judge_host_call, describe_host_blocked},
    Kind{"lasts", judge_lasts, describe_lasts},
    Kind{"total", judge_total, describe_total},
    Kind{"ratio", judge_ratio, describe_ratio},
    Kind{"channels", judge_channels, describe_channels},
    Kind{"fails", judge_fails, describe_fails},
    Kind{"hangs", judge_hangs, describe_hangs},
};

const Kind& kind_of(const Expectation& expectation) {
  const auto found = std::ranges::find(kKinds, expectation.kind, &Kind::name);
  if (found != kKinds.end()) return *found;
  throw UsageError{fmt::format("expectations of kind '{}' cannot be judged", expectation.kind)};
}

}  // namespace

Verdict judge(const Expectation& expectation, const Timeline& timeline) {
  const auto names = [&](const std::vector<std::string>& machines) {
    return std::ranges::find(machines, timeline.origin.machine) != machines.end();
  };
  if ((!expectation.on.empty() && !names(expectation.on)) || names(expectation.not_on)) {
    return {Held::Elsewhere, "said of other machines"};
  }
  return kind_of(expectation).judge(expectation, timeline);
}

std::string describe(const Expectation& expectation) {
  std::string text = kind_of(expectation).describe(expectation);
  if (!expectation.on.empty()) text += fmt::format(", on {}", fmt::join(expectation.on, ", "));
  if (!expectation.not_on.empty()) {
    text += fmt::format(", not on {}", fmt::join(expectation.not_on, ", "));
  }
  return text;
}

}  // namespace foretrace
