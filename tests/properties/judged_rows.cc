#include "tests/properties/judged_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "reports/compare/order_check.h"
#include "reports/timeline/timeline_json.h"
#include "scenarios/read/scenario.h"

namespace foretrace::test {
namespace {

std::pair<double, double> digest_of(const Timeline& timeline) {
  std::ostringstream bytes;
  write_timeline(timeline, bytes);
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a
  for (const char c : bytes.str()) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return {static_cast<double>(hash >> 32), static_cast<double>(hash & 0xffffffff)};
}

Foretold foretold_of(const ReadProgram& read, const HappensBefore& order) {
  const bool hangs = std::ranges::any_of(read.warnings, [](const Diagnostic& warning) {
    return warning.severity == Severity::Hang;
  });
  if (hangs) return Foretold::Hangs;
  return order.is_finished ? Foretold::Ends : Foretold::MayHang;
}

JudgedRows judge(const std::string& text, const Machine& machine, Fidelity fidelity) {
  const auto read = read_scenario(text, "rows.yaml");
  if (!read) throw std::runtime_error{render(read.error(), text) + text};
  const HappensBefore order = happens_before(read->program, {.mode = OrderMode::Likely});
  JudgedRows result;
  result.foretold = foretold_of(*read, order);
  Timeline timeline;
  try {
    timeline = simulate(read->program, machine, fidelity);
  } catch (const UsageError&) {
    result.is_refused = true;
    return result;
  }
  result.outcome = timeline.outcome.kind;
  result.spans = timeline.spans.size();
  result.digest = digest_of(timeline);
  if (result.outcome == Outcome::Kind::Completed && order.is_finished) {
    const HappensBefore sure = happens_before(read->program);
    const OrderCheck check = check_order(read->program, sure, timeline);
    result.violations = check.violations.size();
    for (const OrderViolation& violation : check.violations) {
      fmt::print(stderr, "{}\n", describe(violation));
    }
  }
  if (!result.agrees()) {
    fmt::print(stderr, "{}", render(read->warnings, text));
    for (const std::string& line : timeline.outcome.explanation) fmt::print(stderr, "{}\n", line);
  }
  return result;
}

}  // namespace

Job job_of_rows(const std::string& text, const Machine& machine, Fidelity fidelity) {
  return [text, &machine, fidelity]() -> std::vector<double> {
    const JudgedRows result = judge(text, machine, fidelity);
    return {static_cast<double>(result.foretold),
            static_cast<double>(result.outcome),
            static_cast<double>(result.is_refused),
            static_cast<double>(result.spans),
            static_cast<double>(result.violations),
            result.digest.first,
            result.digest.second};
  };
}

JudgedRows judged(const std::vector<double>& of_child) {
  JudgedRows result;
  result.foretold = static_cast<Foretold>(of_child.at(0));
  result.outcome = static_cast<Outcome::Kind>(of_child.at(1));
  result.is_refused = of_child.at(2) != 0;
  result.spans = static_cast<std::size_t>(of_child.at(3));
  result.violations = static_cast<std::size_t>(of_child.at(4));
  result.digest = {of_child.at(5), of_child.at(6)};
  return result;
}

}  // namespace foretrace::test
