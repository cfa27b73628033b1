#include "sim/applications/fit/verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "reports/table/text_table.h"
#include "reports/timeline/statistics.h"

namespace foretrace {
namespace {

constexpr std::size_t kMostAdvised = 3;

/// Of a group of regions.
struct Judged {
  std::vector<double> errors;  ///< |predicted / measured - 1|
  double worst = -1;
  std::string worst_region;

  void add(double error, const std::string& region) {
    errors.push_back(error);
    if (error > worst) {
      worst = error;
      worst_region = region;
    }
  }
  std::string text() const {
    return fmt::format("{} regions, median {}, 90th percentile {}", format_count(errors.size()),
                       format_percent(quantile(errors, 0.5)),
                       format_percent(quantile(errors, 0.9)));
  }
};

/// "host 30 of 42, gpu 8 of 9", in the catalogue's order.
std::string learned_by_class(const FitResult& result) {
  std::vector<std::string> order;
  std::map<std::string, std::pair<std::size_t, std::size_t>, std::less<>> counts;
  const auto add = [&](Param param, bool fitted) {
    const std::string name{class_of(param)};
    if (!counts.contains(name)) order.push_back(name);
    auto& [learned, all] = counts[name];
    learned += fitted ? 1 : 0;
    ++all;
  };
  for (const Param param : result.fitted) add(param, true);
  for (const Refused& refused : result.refused) add(refused.param, false);
  std::vector<std::string> parts;
  for (const std::string& name : order) {
    parts.push_back(fmt::format("{} {} of {}", name, counts[name].first, counts[name].second));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// The parameters that were found least exactly.
std::string least_sure(const FitResult& result) {
  std::vector<Param> params = result.fitted;
  const auto spread = [&](Param param) { return result.machine.get(param).spread; };
  std::ranges::stable_sort(params, [&](Param a, Param b) { return spread(a) > spread(b); });
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(kMostAdvised, params.size()); ++i) {
    parts.push_back(
        fmt::format("{} (spread {})", info(params[i]).key, format_percent(spread(params[i]))));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// "scenarios/calibration/memory.yaml (14 parameters)", those first that determine most.
std::string next_to_measure(const FitResult& result, const DeterminedBy& determined) {
  std::map<std::string, std::size_t> by_file;
  for (const Refused& refused : result.refused) {
    const auto found = determined.find(refused.param);
    if (found == determined.end()) continue;
    for (const std::string& file : found->second) ++by_file[file];
  }
  std::vector<std::pair<std::string, std::size_t>> files{by_file.begin(), by_file.end()};
  std::ranges::stable_sort(files, [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(kMostAdvised, files.size()); ++i) {
    parts.push_back(fmt::format("{} ({} parameters)", files[i].first, files[i].second));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::string verdict(const FitData& data, const std::vector<TargetClass>& classes,
                    const FitResult& result, const DeterminedBy& determined) {
  Judged learned, judging;
  std::map<std::string, Judged> by_class;  // of those that judge
  std::vector<double> spreads;
  std::set<std::size_t> runs;
  for (std::size_t i = 0; i < data.targets.size(); ++i) {
    const FitTarget& target = data.targets[i];
    if (std::isnan(result.predicted_ns[i])) continue;
    const FitRun& run = data.runs[target.run];
    const double error = std::abs(result.predicted_ns[i] / target.measured_ns - 1);
    const std::string region = fmt::format("{} {}, {} GPU{}", run.program.name, target.region,
                                           run.gpus, run.gpus == 1 ? "" : "s");
    runs.insert(target.run);
    spreads.push_back(target.spread);
    (target.standing == Standing::Fit ? learned : judging).add(error, region);
    if (target.standing != Standing::Fit) by_class[classes[i].name].add(error, region);
  }
  std::string text =
      fmt::format("{}: {} parameters learned of {} ({}), from {} programs\n", result.machine.name,
                  result.fitted.size(), result.fitted.size() + result.refused.size(),
                  learned_by_class(result), runs.size());
  if (!learned.errors.empty()) text += fmt::format("learned from: {}\n", learned.text());
  if (judging.errors.empty()) {
    text += "held out: nothing, so nobody knows how well it predicts\n";
  } else {
    text += fmt::format("held out: {}; worst {}: {}\n", judging.text(),
                        format_percent(judging.worst), judging.worst_region);
    const auto worse = [](const auto& a, const auto& b) {
      return quantile(a.second.errors, 0.5) < quantile(b.second.errors, 0.5);
    };
    const auto& [name, worst] = *std::max_element(by_class.begin(), by_class.end(), worse);
    text += fmt::format("held out, worst class: {}: {}\n", name, worst.text());
  }
  if (!spreads.empty()) {
    text +=
        fmt::format("repeats of a region differ by {} (median), {} (90th percentile)\n",
                    format_percent(quantile(spreads, 0.5)), format_percent(quantile(spreads, 0.9)));
  }
  if (!data.launches_ns.empty()) {
    text += fmt::format(
        "host: a launch took {} in the median, {} .. {} (10th to 90th percentile); "
        "other hosts of its kind differ by half\n",
        format_time(quantile(data.launches_ns, 0.5)), format_time(quantile(data.launches_ns, 0.1)),
        format_time(quantile(data.launches_ns, 0.9)));
  }
  if (!result.fitted.empty()) text += fmt::format("least sure: {}\n", least_sure(result));
  const std::string next = next_to_measure(result, determined);
  if (!next.empty()) text += fmt::format("measure next: {}\n", next);
  text += judging.errors.empty()
              ? "then any program of your own, into the same directory: it only judges\n"
              : "a program of your own, measured into the same directory, judges as well\n";
  return text + "all tables: --all\n";
}

}  // namespace foretrace
