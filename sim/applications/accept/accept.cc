#include "sim/applications/accept/accept.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "reports/compare/compare.h"
#include "reports/table/text_table.h"
#include "reports/timeline/statistics.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/print.h"
#include "sim/applications/nccl_tests/agreement.h"
#include "sim/applications/nccl_tests/compare.h"

namespace foretrace {

std::size_t AcceptPart::slow() const {
  return static_cast<std::size_t>(std::ranges::count_if(checks, &AcceptCheck::is_slow));
}

bool AcceptPart::is_too_fast() const {
  const auto fast = std::ranges::count_if(checks, &AcceptCheck::is_fast);
  return static_cast<std::size_t>(fast) * 2 > checks.size();
}

bool AcceptPart::is_accepted() const {
  return static_cast<double>(slow()) <= allowed * static_cast<double>(checks.size());
}

double AcceptPart::median_score() const {
  std::vector<double> scores;
  for (const AcceptCheck& check : checks) scores.push_back(check.score());
  return median(scores);
}

bool Acceptance::is_accepted() const {
  return std::ranges::all_of(parts, &AcceptPart::is_accepted);
}

std::vector<AcceptPlace> Acceptance::worst_places() const {
  std::map<std::string, AcceptPlace> places;
  const auto add = [&](const std::string& name, bool is_slow, double score) {
    AcceptPlace& place = places.try_emplace(name, AcceptPlace{name, 0, 0, score}).first->second;
    ++place.all;
    place.slow += is_slow ? 1 : 0;
    place.worst = std::min(place.worst, score);
  };
  for (const AcceptPart& part : parts) {
    for (const std::string& host : part.hosts) {
      add("host " + host, !part.is_accepted(), part.median_score());
    }
    for (const AcceptCheck& check : part.checks) {
      for (const std::string& link : check.links) add(link, check.is_slow(), check.score());
    }
  }
  std::vector<AcceptPlace> slow;
  for (const auto& [name, place] : places) {
    if (place.slow > 0) slow.push_back(place);
  }
  const auto share = [](const AcceptPlace& p) {
    return static_cast<double>(p.slow) / static_cast<double>(p.all);
  };
  std::ranges::stable_sort(slow, [&](const AcceptPlace& a, const AcceptPlace& b) {
    return share(a) != share(b) ? share(a) > share(b) : a.worst < b.worst;
  });
  return slow;
}

namespace {

/// Latency, and bandwidth: what breaks one leaves the other alone.
constexpr std::uint64_t kLarge = std::uint64_t{1} << 20;

AcceptCheck check_of(const NcclTestsComparedRow& row, const NcclTestsPlan& plan) {
  AcceptCheck check;
  const std::uint64_t bytes = row.predicted.size.bytes;
  check.name = format_size(bytes);
  check.unit = bytes < kLarge ? "us" : "GB/s";
  const auto figure = [&](double us) {
    return bytes < kLarge ? us : algorithm_gbps(bytes, us) * bus_factor(plan.op, plan.ranks());
  };
  check.measured = figure(row.median_us);
  check.expected = figure(row.predicted.time_us);
  check.floor = figure(row.predicted.high_us);
  check.best = figure(row.predicted.low_us);
  return check;
}

constexpr std::size_t kNcclTestsOps = static_cast<std::size_t>(NcclTestsOp::Scatter) + 1;

/// "all_reduce" of "all_reduce-node17", "allreduce": what stands first, underscores or none.
std::optional<NcclTestsOp> op_in(std::string name) {
  std::erase_if(name, [](char c) { return c == '_'; });
  std::optional<NcclTestsOp> found;
  std::size_t longest = 0;
  for (std::size_t i = 0; i < kNcclTestsOps; ++i) {
    std::string op{info(static_cast<NcclTestsOp>(i)).name};
    std::erase_if(op, [](char c) { return c == '_'; });
    if (name.find(op) == std::string::npos || op.size() <= longest) continue;  // reduce, all_reduce
    longest = op.size();
    found = static_cast<NcclTestsOp>(i);
  }
  return found;
}

std::string title(const NcclTestsPlan& plan, bool is_large) {
  return fmt::format("{}, {} ranks on {} node{}, {} 1 MiB", info(plan.op).name, plan.ranks(),
                     plan.nodes, plan.nodes == 1 ? "" : "s", is_large ? "from" : "below");
}

}  // namespace

void accept_nccl_tests(const std::filesystem::path& file, const Machine& machine,
                       const AcceptOptions& options, Acceptance& into) {
  NcclTestsAssumed assumed = options.assumed;
  if (!assumed.op) assumed.op = op_in(file.stem().string());
  std::vector<NcclTestsSample> samples = read_nccl_tests({file}, assumed);
  print_error("{}", contradictions(samples, machine));
  in_domains(samples, machine);
  const std::vector<std::string> hosts = samples.front().hosts;
  for (const NcclTestsComparison& comparison : compare_nccl_tests(samples, machine)) {
    for (const bool is_large : {false, true}) {
      AcceptPart part{file.string(), title(comparison.plan, is_large), hosts, options.allowed, {}};
      for (const NcclTestsComparedRow& row : comparison.rows) {
        if ((row.predicted.size.bytes >= kLarge) != is_large) continue;
        part.checks.push_back(check_of(row, comparison.plan));
      }
      if (!part.checks.empty()) into.parts.push_back(std::move(part));
    }
  }
}

void accept_run(const Timeline& predicted, const Timeline& measured, const std::string& file,
                const AcceptOptions& options, Acceptance& into) {
  const Comparison comparison = compare(predicted, measured, 0);
  AcceptPart part{file, "regions", {}, options.allowed, {}};
  for (const RegionRow& region : comparison.regions) {
    if (!region.first || !region.second || !region.high_ns || comparison.is_stand_in(region)) {
      into.notes.push_back(fmt::format("{}: region {} is not judged: {}", file, region.title,
                                       !region.second  ? "it was not measured"
                                       : !region.first ? "it was not predicted"
                                                       : "its time is the scenario's own"));
      continue;
    }
    AcceptCheck check{fmt::format("region {}, line {}", region.title, region.line),
                      "us",
                      region.second->median_ns * 1e-3,
                      region.first->median_ns * 1e-3,
                      // As compare does: what jitter makes of a region is no fault.
                      (*region.high_ns + kNoiseFloorNs) * 1e-3,
                      {}};
    const auto slowest = std::ranges::max_element(
        region.processes, {}, [](const ProcessFigure& p) { return p.second_ns.value_or(0); });
    if (region.processes.size() > 1 && slowest != region.processes.end()) {
      check.links.push_back(fmt::format("process {}", slowest->process));
    }
    part.checks.push_back(std::move(check));
  }
  if (!comparison.ended_alike()) {
    throw UsageError{
        fmt::format("{}: prediction and measurement did not end alike\n"
                    "  hint: foretrace compare says how",
                    file)};
  }
  if (!part.checks.empty()) into.parts.push_back(std::move(part));
}

}  // namespace foretrace
