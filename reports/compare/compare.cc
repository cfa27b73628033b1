#include "reports/compare/compare.h"

#include <fmt/format.h>

#include <algorithm>

#include "reports/calls/join_calls.h"
#include "reports/timeline/origin.h"
#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

/// What the harness's results begin their producer with; hw/pytorch's have another.
constexpr std::string_view kHarnessProducer = "foretrace-hw ";

const char* origin_word(const Origin& origin) { return origin.measured ? "measured" : "predicted"; }

void refuse_different_programs(const Origin& a, const Origin& b) {
  if (a.program_hash == b.program_hash) return;
  const bool is_captured = a.program_hash == kCapturedHash || b.program_hash == kCapturedHash;
  const std::string hint =
      is_captured ? fmt::format(
                        "\n  hint: foretrace import {} -o RUN/ --scenario step.yaml, then "
                        "simulate that",
                        a.program_hash == kCapturedHash ? a.file : b.file)
                  : std::string{};
  throw UsageError{fmt::format(
      "these are two different programs and cannot be compared:\n"
      "  {} scenario '{}' ({}), program hash {}\n"
      "  {} scenario '{}' ({}), program hash {}\n"
      "The hash covers the expanded program and its parameters: run both with the same file and "
      "the same --set.{}",
      origin_word(a), a.scenario, a.file, a.program_hash, origin_word(b), b.scenario, b.file,
      b.program_hash, hint)};
}

/// Sizes, shapes and ranks are in newer timelines only: either side may lack them.
std::vector<OpRow> known_ops(const Timeline& first, const Timeline& second) {
  std::vector<OpRow> ops = first.ops;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const OpRow& other = second.ops[i];
    const bool says_nothing =
        ops[i].sizes.empty() && ops[i].shape.empty() && ops[i].ranks == 0 && ops[i].work.empty();
    if (says_nothing && other.loops == ops[i].loops) ops[i] = other;
  }
  return ops;
}

Comparison compare_alike(const Timeline& first, const Timeline& second, double tolerance) {
  const bool alike = first.origin.measured == second.origin.measured;
  Comparison result;
  result.first_origin = first.origin;
  result.second_origin = second.origin;
  result.first_outcome = first.outcome;
  result.second_outcome = second.outcome;
  result.first_name = fmt::format("{}{}", alike ? "A " : "", origin_word(first.origin));
  result.second_name = fmt::format("{}{}", alike ? "B " : "", origin_word(second.origin));
  result.tolerance = tolerance;
  result.regions = compare_regions(first, second, tolerance);
  result.operations = compare_operations(first, second);
  result.overlaps = compare_overlaps(first, second);
  result.memory = compare_memory(first, second);
  if (second.origin.is_joined_by_calls) {
    result.families = families_of(first, second);
    result.first_busy_ns = busy_ns(first);
    result.second_busy_ns = busy_ns(second);
  }
  result.ops = known_ops(first, second);
  set_titles(result.regions, result.ops);
  return result;
}

}  // namespace

std::string to_string(Judgement judgement) {
  switch (judgement) {
    case Judgement::WithinTolerance:
      return "ok";
    case Judgement::InsideSpread:
      return "inside spread";
    case Judgement::WithinNoise:
      return "within noise";
    case Judgement::Outside:
      return "OUTSIDE";
    case Judgement::Missing:
      return "MISSING";
  }
  FORETRACE_CHECK(false, "a judgement has a name");
  return {};
}

bool Comparison::is_stand_in(const RegionRow& row) const {
  const bool is_harness = second_origin.producer.starts_with(kHarnessProducer);
  const bool stood_in = is_harness || second_origin.versions.contains(kStandInCaptured);
  if (!judges_a_model() || !stood_in) return false;
  const std::size_t end = std::min(ops.size(), std::size_t{row.op} + 1 + ops.at(row.op).inside);
  for (std::size_t op = std::size_t{row.op} + 1; op < end; ++op) {
    if (ops[op].kind == "library_kernel" || (is_harness && ops[op].kind == "framework_call"))
      return true;
  }
  return false;
}

std::string Comparison::standing(const RegionRow& row) const {
  if (!judges_a_model()) return "-";
  if (is_stand_in(row)) return "stand-in";
  return row.is_fit() ? "fit" : "prediction";
}

std::string Comparison::standing() const {
  if (!judges_a_model() || regions.empty()) return "-";
  const auto is_one = [this](const RegionRow& row) { return is_stand_in(row); };
  if (std::ranges::all_of(regions, is_one)) return "stand-in";
  const auto fits = std::ranges::count_if(regions, &RegionRow::is_fit);
  if (fits == 0) return "prediction";
  return fits == std::ssize(regions) ? "fit" : "fit and prediction";
}

std::size_t Comparison::unmatched_device_spans() const {
  std::size_t count = 0;
  for (const OperationRow& row : operations) {
    if (row.part != 0) count += row.only_first + row.only_second;
  }
  return count;
}

bool Comparison::ended_alike() const {
  const auto never_ended = [](const Outcome& outcome) {
    return outcome.kind == Outcome::Kind::Deadlock || outcome.kind == Outcome::Kind::Timeout;
  };
  return first_outcome.kind == second_outcome.kind ||
         (never_ended(first_outcome) && never_ended(second_outcome));
}

std::size_t Comparison::overlaps_that_differ() const {
  return static_cast<std::size_t>(std::ranges::count_if(overlaps, &OverlapRow::differs));
}

bool Comparison::within() const {
  const bool completed = first_outcome.kind == Outcome::Kind::Completed;
  return ended_alike() && overlaps_that_differ() == 0 &&
         std::ranges::none_of(regions, [&](const RegionRow& row) {
           return row.judgement == Judgement::Outside ||
                  (completed && row.judgement == Judgement::Missing);
         });
}

bool Comparison::is_captured() const { return std::ranges::any_of(ops, &OpRow::captured); }

bool Comparison::is_serving() const {
  return std::ranges::any_of(ops, [](const OpRow& op) { return op.kind == "request_waits"; });
}

Comparison compare(const Timeline& first, const Timeline& second, double tolerance) {
  if (is_measured_step(second) && !is_measured_step(first)) {
    const JoinedStep joined = join_calls(first, second);
    return compare_alike(joined.predicted, joined.measured, tolerance);
  }
  refuse_different_programs(first.origin, second.origin);
  if (program_ops(first) != program_ops(second)) {
    throw UsageError{fmt::format("{}: two timelines of one program hash list {} and {} operations",
                                 first.origin.scenario, program_ops(first), program_ops(second))};
  }
  if (program_ops(first) == first.ops.size() && program_ops(second) == second.ops.size()) {
    return compare_alike(first, second, tolerance);
  }
  if (second.origin.is_joined_by_calls) return compare_alike(first, second, tolerance);
  Timeline a = first, b = second;
  join_captured(a, b);
  return compare_alike(a, b, tolerance);
}

}  // namespace foretrace
