#include "reports/compare/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/calls/join_calls.h"
#include "reports/compare/rates.h"
#include "reports/table/text_table.h"
#include "reports/timeline/statistics.h"

namespace foretrace {
namespace {

/// Shorter copies are all latency.
constexpr double kShortCopyNs = 10'000;

bool waits(const OperationRow& row) {
  return row.kind.ends_with("_synchronize") || row.kind == "event_wait_for" ||
         row.kind == "host_wait" || row.kind == "host_barrier";
}

/// The unit once: "598.1 / 612.3 TFLOP/s".
std::string achieved(const std::optional<AmountOfWork>& work, const std::optional<double>& first_ns,
                     const std::optional<double>& second_ns) {
  if (!work) return "-";
  const std::string first = first_ns ? format_rate(*work, *first_ns) : "";
  const std::string second = second_ns ? format_rate(*work, *second_ns) : "";
  if (first.empty() || second.empty()) return first + second + (first == second ? "-" : "");
  return first.substr(0, first.find(' ')) + " / " + second;
}

}  // namespace

std::string title_words(const RegionRow& row) { return divided_name(row.title, row.per); }

std::string process_words(const RegionRow& row) {
  std::string words;
  for (auto at = row.processes.begin(); at != row.processes.end();) {
    auto last = at;
    while (last + 1 != row.processes.end() && (last + 1)->process == last->process + 1) ++last;
    words += fmt::format("{}{}", words.empty() ? "" : ", ", at->process);
    if (last != at) words += fmt::format("-{}", last->process);
    at = last + 1;
  }
  return words.empty() ? "-" : words;
}

std::string achieved_words(const OperationRow& row, const Comparison& comparison) {
  const OpRow& op = comparison.ops[row.op];
  if (row.part == 0 || op.kind == "region" || !op.sizes.empty()) return "-";
  return achieved(amount_of(op, 0), row.first_ns, row.second_ns);
}

std::string achieved_words(const RegionRow& row, const Comparison& comparison) {
  const auto median = [](const std::optional<RegionFigure>& figure) {
    return figure ? std::optional{figure->median_ns} : std::nullopt;
  };
  return achieved(amount_of(comparison.ops[row.op], row.instance), median(row.first),
                  median(row.second));
}

std::string band_words(const RegionRow& row) {
  if (!row.low_ns || !row.high_ns || *row.low_ns == *row.high_ns) return "-";
  return format_time(*row.low_ns) + " .. " + format_time(*row.high_ns);
}

std::string spread_words(const std::optional<RegionFigure>& figure) {
  if (!figure || figure->samples < 2) return "-";
  return format_time(figure->p5_ns) + " .. " + format_time(figure->p95_ns);
}

std::string median_words(const std::optional<RegionFigure>& figure) {
  return figure ? format_time(figure->median_ns) : "-";
}

std::string samples_words(const std::optional<RegionFigure>& figure) {
  return figure ? fmt::format("{} in {}", figure->samples, figure->starts) : "-";
}

std::string part_words(const OperationRow& row, const Comparison& comparison) {
  if (row.kind.starts_with("request_")) return "request";
  if (row.kind.ends_with("iteration")) return "engine";
  if (row.part == 0) return comparison.is_traced() ? "host call, traced" : "host call";
  return row.part == 1 ? "device" : fmt::format("device {}", row.part);
}

std::string note_words(const OperationRow& row, const Comparison& comparison) {
  std::string words = unmatched_words(row, comparison);
  const auto add = [&](const std::string& more) { words += (words.empty() ? "" : ", ") + more; };
  if (row.first_pieces != row.second_pieces && row.matched != 0) {
    add(fmt::format("{} and {} pieces", row.first_pieces, row.second_pieces));
  }
  // Tracing makes calls longer, and the waits behind them shorter by as much.
  const bool is_far = row.error && std::abs(*row.error) > 1 && !comparison.is_serving();
  if (row.part == 0 && is_far && comparison.is_traced()) {
    add(waits(row) ? "a wait: what the traced calls before it leave"
                   : "a call under tracing: regions judge host time");
  }
  if (row.part != 0 && is_far && row.kind.starts_with("memcpy") &&
      comparison.ops[row.op].variant.starts_with("p2p")) {
    add("staged through the host: the tracer shows one of its pieces");
  }
  if (row.part != 0 && is_far && comparison.ops[row.op].variant.ends_with("pageable")) {
    add("the host moves it in pieces: the tracer shows the copy engine's part");
  } else if (row.part != 0 && is_far && row.kind == "memcpy_async" &&
             *row.first_ns < kShortCopyNs) {
    add("short: the tracer counts its latency before it");
  }
  if (row.part != 0 && is_far && row.kind == "host_func") {
    add("it waits for a host thread, which tracing holds up");
  }
  return words;
}

std::string overlap_words(const OverlapRow& row, const Comparison& comparison) {
  const auto title = [&](std::uint32_t id) {
    const OpRow& op = comparison.ops[id];
    return op.label.empty() ? fmt::format("{} in line {}", op.kind, op.line) : op.label;
  };
  return row.a == row.b ? title(row.a) + " beside itself"
                        : fmt::format("{} beside {}", title(row.a), title(row.b));
}

std::string unmatched_words(const OperationRow& row, const Comparison& comparison) {
  std::string words;
  if (row.only_first != 0) {
    words = fmt::format("{} only {}", row.only_first, comparison.first_name);
  }
  if (row.only_second != 0) {
    words += fmt::format("{}{} only {}", words.empty() ? "" : ", ", row.only_second,
                         comparison.second_name);
  }
  return words;
}

std::string memory_words(const std::optional<std::int64_t>& bytes) {
  constexpr double kGigabyte = 1e9;
  return bytes ? fmt::format("{:.3f} GB", static_cast<double>(*bytes) / kGigabyte) : "-";
}

std::string begin_words(const OperationRow& row) {
  return format_or_dash(row.begin_offset_ns, [](double ns) {
    return fmt::format("{}{}", ns < 0 ? "" : "+", format_time(ns));
  });
}

std::string stand_in_words(const Comparison& comparison) {
  const auto count = std::ranges::count_if(
      comparison.regions, [&](const RegionRow& row) { return comparison.is_stand_in(row); });
  if (count == 0) return {};
  const auto captured = comparison.second_origin.versions.find(kStandInCaptured);
  if (captured != comparison.second_origin.versions.end()) {
    return fmt::format("{} region{} of standing stand-in: {}.", count, count == 1 ? "" : "s",
                       captured->second);
  }
  return fmt::format(
      "{} region{} of standing stand-in: library_kernel and framework_call are predicted as "
      "PyTorch's, and foretrace-hw ran kernels of its own for the one and nothing for the other. "
      "hw/pytorch/measure.py runs PyTorch's kernels.",
      count, count == 1 ? "" : "s");
}

std::string busy_words(const Comparison& c) {
  const std::string error =
      c.second_busy_ns > 0
          ? format_signed_percent(relative_difference(c.first_busy_ns, c.second_busy_ns))
          : "-";
  return fmt::format("a GPU is busy {} of the step {}, {} {} ({})", format_time(c.first_busy_ns),
                     c.first_name, format_time(c.second_busy_ns), c.second_name, error);
}

std::vector<std::string> doubts_of(const Comparison& c) {
  if (!c.second_origin.is_joined_by_calls) return {};
  const auto script_of = [](const Origin& origin) {
    const auto found = origin.versions.find(kScriptDigest);
    return found == origin.versions.end() ? std::string{} : found->second;
  };
  const std::string captured = script_of(c.first_origin), measured = script_of(c.second_origin);
  std::vector<std::string> doubts;
  if (!captured.empty() && !measured.empty() && captured != measured) {
    doubts.emplace_back(
        "the step was measured of another script, with other arguments or in another number of "
        "ranks than what was captured");
  }
  std::size_t all = 0, joined = 0;
  for (const FamilyRow& row : c.families) {
    all += std::max(row.first, row.second);
    joined += row.joined;
  }
  if (2 * joined < all) {
    doubts.push_back(
        fmt::format("{} of {} operations have a partner on the other side", joined, all));
  }
  return doubts;
}

std::vector<FamilyRow> shown_families(const Comparison& comparison, std::size_t most) {
  std::vector<FamilyRow> shown;
  FamilyRow rest, all;
  rest.family = "other operations";
  all.family = "all operations";
  const auto add = [](FamilyRow& sum, const FamilyRow& row) {
    sum.first += row.first;
    sum.second += row.second;
    sum.joined += row.joined;
    sum.first_ns += row.first_ns;
    sum.second_ns += row.second_ns;
    if (sum.second_ns > 0) sum.error = relative_difference(sum.first_ns, sum.second_ns);
  };
  for (const FamilyRow& row : comparison.families) {
    if (shown.size() < most) {
      shown.push_back(row);
    } else {
      add(rest, row);
    }
    add(all, row);
  }
  if (rest.first + rest.second > 0) shown.push_back(std::move(rest));
  shown.push_back(std::move(all));
  return shown;
}

std::vector<std::string> alone_words(const Comparison& comparison) {
  std::string first, second;
  for (const FamilyRow& row : comparison.families) {
    for (const auto& [side, names] :
         {std::pair{&first, &row.only_first}, {&second, &row.only_second}}) {
      for (const std::string& name : *names) {
        *side += fmt::format("{}{}: {}", side->empty() ? "" : "; ", row.family, name);
      }
    }
  }
  std::vector<std::string> lines;
  if (!first.empty()) lines.push_back(fmt::format("only {}: {}", comparison.first_name, first));
  if (!second.empty()) lines.push_back(fmt::format("only {}: {}", comparison.second_name, second));
  return lines;
}

std::string error_words(const Comparison& comparison) {
  return fmt::format("error = ({} - {}) / {}", comparison.first_name, comparison.second_name,
                     comparison.second_name);
}

}  // namespace foretrace
