#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/compare/accuracy.h"
#include "reports/compare/host_speed.h"
#include "reports/compare/output.h"
#include "reports/compare/words.h"
#include "reports/table/text_table.h"
#include "reports/timeline/statistics.h"

namespace foretrace {
namespace {

using enum TextTable::Align;

std::string side(const Origin& origin, const std::string& name) {
  return fmt::format("{} on {} ({})", name, origin.machine, origin.producer);
}

TextTable region_table(const std::string& first, const std::string& second, bool many) {
  TextTable table;
  if (many) table.column("scenario", Left);
  table.column("region", Left);
  table.column("line", Right);
  table.column("process", Right);
  table.column(first, Right);
  table.column("band", Right);
  table.column(second + " (median)", Right);
  table.column("p5 .. p95", Right);
  table.column("n in starts", Right);
  table.column("error", Right);
  table.column("traced", Right);
  table.column("standing", Left);
  table.column("verdict", Left);
  return table;
}

void add_regions(TextTable& table, const Comparison& comparison, bool many) {
  for (const RegionRow& row : comparison.regions) {
    std::vector<std::string> cells{title_words(row),
                                   fmt::format("{}", row.line),
                                   process_words(row),
                                   median_words(row.first),
                                   band_words(row),
                                   median_words(row.second),
                                   spread_words(row.second),
                                   samples_words(row.second),
                                   format_or_dash(row.error, format_signed_percent),
                                   format_or_dash(row.tracing_change, format_signed_percent),
                                   comparison.standing(row),
                                   to_string(row.judgement)};
    if (many) cells.insert(cells.begin(), comparison.first_origin.scenario);
    table.row(std::move(cells));
  }
}

std::string operations_text(const Comparison& comparison) {
  TextTable table;
  table.column("operation", Left);
  table.column("line", Right);
  table.column("part", Left);
  table.column("size", Right);
  table.column("n", Right);
  table.column(comparison.first_name, Right);
  table.column(comparison.second_name, Right);
  table.column("error", Right);
  table.column("begin", Right);
  table.column("achieved", Right);
  table.column("notes", Left);
  for (const OperationRow& row : comparison.operations) {
    if (comparison.is_captured() && row.matched == 0) continue;
    table.row({row.label.empty() ? row.kind : row.kind + " " + row.label,
               fmt::format("{}", row.line), part_words(row, comparison),
               row.size_bytes == 0 ? "-" : format_size(row.size_bytes), format_count(row.matched),
               format_or_dash(row.first_ns, format_time),
               format_or_dash(row.second_ns, format_time),
               format_or_dash(row.error, format_signed_percent), begin_words(row),
               achieved_words(row, comparison), note_words(row, comparison)});
  }
  return table.markdown();
}

/// Of a framework's own run few operations have a partner, or none.
std::string operations_section(const Comparison& c) {
  std::string text = fmt::format(
      "\nOperations: median durations in the traced repetition, which lengthens host calls;\nbegin "
      "= {} - {}, from the run's "
      "begin; achieved = by the device\n\n",
      c.first_name, c.second_name);
  if (c.is_serving()) {
    return "\nOperations: median durations; of requests each one's, of iterations those of like "
           "size,\nin their order\n\n" +
           operations_text(c);
  }
  if (!c.is_captured()) return text + operations_text(c);
  const auto has_partner = [](const OperationRow& row) { return row.matched != 0; };
  const auto joined = static_cast<std::size_t>(std::ranges::count_if(c.operations, has_partner));
  return fmt::format(
      "{}\n{} operations are on one side only: a framework ran the step by its own calls; 'report' "
      "draws both.\n",
      joined == 0 ? "" : text + operations_text(c), c.operations.size() - joined);
}

/// Of a measured step: what its operations took on the GPU, those that take most.
std::string families_section(const Comparison& c) {
  constexpr std::size_t kMost = 30;
  TextTable table;
  table.column("operation", Left);
  table.column("n " + c.first_name, Right);
  table.column("n " + c.second_name, Right);
  table.column("joined", Right);
  table.column(c.first_name, Right);
  table.column(c.second_name, Right);
  table.column("error", Right);
  for (const FamilyRow& row : shown_families(c, kMost)) {
    table.row({row.family, format_count(row.first), format_count(row.second),
               format_count(row.joined), format_time(row.first_ns), format_time(row.second_ns),
               format_or_dash(row.error, format_signed_percent)});
  }
  std::string text = fmt::format(
      "\nOperations of one step, joined call by call: times on the GPU, summed over it and over "
      "processes\n\n{}\n{}\n",
      table.markdown(), busy_words(c));
  for (const std::string& line : alone_words(c)) text += line + "\n";
  return text;
}

std::string memory_text(const Comparison& c) {
  if (c.memory.empty()) return {};
  TextTable table;
  table.column("process", Right);
  table.column("device", Right);
  table.column(c.first_name, Right);
  table.column(c.second_name, Right);
  table.column("error", Right);
  for (const MemoryRow& row : c.memory) {
    table.row({fmt::format("{}", row.process), fmt::format("{}", row.device),
               memory_words(row.first), memory_words(row.second),
               format_or_dash(row.error, format_signed_percent)});
  }
  return fmt::format(
      "\n{}\n\n{}",
      c.is_serving() ? "The most of the KV cache in use, of each of an engine's GPUs"
                     : "Peak memory of the framework's allocator, without what it keeps for later",
      table.markdown());
}

/// Those that differ, and as many more as make a first look.
std::string overlaps_text(const Comparison& comparison) {
  constexpr std::size_t kMore = 8;
  TextTable table;
  table.column("at once", Left);
  table.column(comparison.first_name, Right);
  table.column(comparison.second_name, Right);
  table.column("share " + comparison.first_name, Right);
  table.column("share " + comparison.second_name, Right);
  table.column("verdict", Left);
  std::size_t shown = 0;
  for (const OverlapRow& row : comparison.overlaps) {
    if (!row.differs && shown >= kMore) continue;
    ++shown;
    table.row({overlap_words(row, comparison), format_time(row.first_ns),
               format_time(row.second_ns), format_percent(row.first_share),
               format_percent(row.second_share), row.differs ? "DIFFERS" : "ok"});
  }
  if (shown == 0) return {};
  return fmt::format(
      "\nWhat runs at once, as a share of the shorter one's device time; {} of {} pairs\n\n{}",
      shown, comparison.overlaps.size(), table.markdown());
}

std::string outcome_text(const Outcome& outcome, const std::string& name) {
  if (outcome.kind == Outcome::Kind::Completed) return {};
  std::string text = fmt::format("The {} run did not complete:\n", name);
  for (const std::string& line : outcome.explanation) text += "  " + line + "\n";
  return text;
}

std::string verdict(const Comparison& comparison) {
  std::size_t outside = 0;
  std::size_t missing = 0;
  for (const RegionRow& row : comparison.regions) {
    if (row.judgement == Judgement::Outside) ++outside;
    if (row.judgement == Judgement::Missing) ++missing;
  }
  std::string text = fmt::format("{} of {} regions outside {}", outside, comparison.regions.size(),
                                 format_percent(comparison.tolerance));
  if (missing != 0) text += fmt::format("; {} on one side only", missing);
  if (const auto count = comparison.unmatched_device_spans();
      count != 0 && !comparison.is_captured()) {
    text += fmt::format("; {} device spans without a partner", format_count(count));
  }
  if (const auto count = comparison.overlaps_that_differ(); count != 0) {
    text += fmt::format("; {} pair{} of operations overlap{} otherwise", count,
                        count == 1 ? "" : "s", count == 1 ? "s" : "");
  }
  if (!comparison.ended_alike()) {
    text += "; the two runs ended differently";
  } else if (comparison.first_outcome.kind != Outcome::Kind::Completed) {
    text += comparison.first_outcome.kind == Outcome::Kind::Failed ? "; both runs failed"
            : comparison.first_outcome.kind == Outcome::Kind::WrongData
                ? "; both runs had wrong data"
                : "; both runs hang";
  }
  return text + ".\n";
}

std::string accuracy_line(const char* title, const Accuracy& accuracy) {
  if (accuracy.regions == 0 && accuracy.missing == 0) return {};
  std::string text = fmt::format(
      "{}: {} regions, |error| median {}, p95 {}, worst {}; {} within max(15 %, 1.5 us, half the "
      "spread)",
      title, accuracy.regions, format_percent(accuracy.median_abs_error),
      format_percent(accuracy.p95_abs_error), format_percent(accuracy.worst_abs_error),
      format_percent(accuracy.share_within));
  if (accuracy.missing != 0) text += fmt::format("; {} on one side only", accuracy.missing);
  return text + "\n";
}

/// Of the runs that say it.
std::string host_speeds_words(std::span<const Comparison> comparisons) {
  std::vector<double> factors;
  for (const Comparison& c : comparisons) {
    if (const auto speed = host_speed(c.first_origin, c.second_origin)) {
      factors.push_back(speed->factor());
    }
  }
  if (factors.empty()) return {};
  const auto [least, most] = std::ranges::minmax(factors);
  return fmt::format(
      "host: {:.2f} times as fast as predicted ({:.2f} .. {:.2f} in {} run{}), by the calls of a "
      "kernel's launch",
      median(factors), least, most, factors.size(), factors.size() == 1 ? "" : "s");
}

}  // namespace

std::string compare_text(const Comparison& c) {
  std::string text =
      fmt::format("{} ({})\n  {}\n  {}\n", c.first_origin.scenario, c.first_origin.file,
                  side(c.first_origin, c.first_name), side(c.second_origin, c.second_name));
  text += outcome_text(c.first_outcome, c.first_name);
  text += outcome_text(c.second_outcome, c.second_name);
  TextTable regions = region_table(c.first_name, c.second_name, false);
  add_regions(regions, c, false);
  text += fmt::format(
      "\nRegions: {}; traced = what tracing changed;\nband = how far the parameters' uncertainty "
      "moves the prediction;\nwithin noise = by less than 1.5 us, or than "
      "half the spread\n\n{}",
      error_words(c), regions.markdown());
  for (const std::string& words :
       {stand_in_words(c), host_speed_words(c.first_origin, c.second_origin)}) {
    if (!words.empty()) text += "\n" + words + "\n";
  }
  text += memory_text(c);
  text += c.families.empty() ? operations_section(c) : families_section(c);
  return text + overlaps_text(c) + "\n" + verdict(c);
}

std::string batch_text(std::span<const Comparison> comparisons,
                       const std::vector<std::string>& alone) {
  TextTable table = region_table("predicted", "measured", true);
  for (const Comparison& comparison : comparisons) add_regions(table, comparison, true);
  std::string text = fmt::format(
      "error = (predicted - measured) / measured; traced = what tracing changed\n\n{}\n",
      table.markdown());
  text += accuracy_line("predictions", accuracy_of(comparisons, Regions::Prediction));
  text +=
      accuracy_line("fit (regions the model learned from)", accuracy_of(comparisons, Regions::Fit));
  for (const Comparison& comparison : comparisons) {
    const std::string words = stand_in_words(comparison);
    if (!words.empty()) text += fmt::format("{}: {}\n", comparison.first_origin.scenario, words);
  }
  if (const std::string words = host_speeds_words(comparisons); !words.empty())
    text += words + "\n";
  for (const std::string& file : alone) text += fmt::format("without a partner: {}\n", file);
  return text;
}

}  // namespace foretrace
