// How a run ended, and where.
#include <fmt/format.h>

#include <algorithm>

#include "reports/judge/judges.h"
#include "reports/timeline/timeline_keys.h"

namespace foretrace {
namespace {

/// An explanation names the line as executors write it: "FILE:14: nccl_recv ...".
bool names_line(const Outcome& outcome, int line) {
  const std::string place = fmt::format(":{}:", line);
  return std::ranges::any_of(outcome.explanation, [&](const std::string& text) {
    return text.find(place) != std::string::npos;
  });
}

Verdict judge_outcome(const Expectation& expectation, const Timeline& timeline,
                      std::initializer_list<Outcome::Kind> wanted) {
  const Outcome& outcome = timeline.outcome;
  const auto kind = std::string{keys::kOutcomes[static_cast<std::size_t>(outcome.kind)]};
  if (std::ranges::find(wanted, outcome.kind) == wanted.end()) return broken(kind);
  const std::string& label = expectation.spans.at(0);
  for (const OpRow& op : timeline.ops) {
    if (op.label != label || !names_line(outcome, op.line)) continue;
    return {Held::Yes, fmt::format("{} at line {}", kind, op.line)};
  }
  return broken(
      fmt::format("{}, not at '{}': {}", kind, label,
                  outcome.explanation.empty() ? "no explanation" : outcome.explanation.front()));
}

}  // namespace

Verdict judge_fails(const Expectation& expectation, const Timeline& timeline) {
  return judge_outcome(expectation, timeline, {Outcome::Kind::Failed});
}

Verdict judge_hangs(const Expectation& expectation, const Timeline& timeline) {
  return judge_outcome(expectation, timeline, {Outcome::Kind::Deadlock, Outcome::Kind::Timeout});
}

}  // namespace foretrace
