#include "sim/applications/nccl_tests/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "reports/timeline/statistics.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/print.h"

namespace foretrace {
namespace {

/// Equal for runs that are predicted alike.
std::string key_of(const NcclTestsPlan& plan) {
  NcclTestsPlan same = plan;
  const NcclTestsOpInfo& op = info(plan.op);
  if (!op.reduces) same.redop = "sum";
  if (!op.has_root) same.root = 0;
  same.warmup = 1;
  same.sizes = {{16, 16}};
  return same.nccl + "\n" + nccl_tests_scenario(same, {{same.iterations, same.graph_launches}});
}

struct Group {
  NcclTestsComparison comparison;
  std::map<std::uint64_t, std::vector<double>> samples;  // by size
};

/// In the order in which their first samples come.
std::vector<Group> groups_of(const std::vector<NcclTestsSample>& samples) {
  std::vector<Group> groups;
  std::map<std::string, std::size_t> known;
  for (const NcclTestsSample& sample : samples) {
    const auto [at, is_new] = known.try_emplace(key_of(sample.plan), groups.size());
    if (is_new) groups.push_back({{sample.plan, {}, {}}, {}});
    Group& group = groups[at->second];
    group.samples[sample.bytes].push_back(sample.time_us);
    auto& files = group.comparison.files;
    if (std::ranges::find(files, sample.file) == files.end()) files.push_back(sample.file);
  }
  return groups;
}

/// The sizes of `group` that can be predicted go into its plan and its rows.
void choose_sizes(Group& group) {
  NcclTestsPlan& plan = group.comparison.plan;
  const NcclTestsType& type = parse_nccl_tests_type(plan.type);
  for (const auto& [bytes, times] : group.samples) {
    // As measured: old versions of nccl-tests do not round to 16 bytes.
    const std::uint64_t parts = info(plan.op).is_total ? plan.ranks() : 1;
    const std::uint64_t count = bytes / type.element.count / parts;
    if (count == 0) {
      print_error("note: {}: {} B is left out: less than an element of {} for each of {}\n",
                  group.comparison.files.front(), bytes, type.name, parts);
      continue;
    }
    if (bytes % (type.element.count * parts) != 0) {
      throw UsageError{
          fmt::format("{}: {} B are no whole elements of {} in {} part(s)\n  hint: -d "
                      "gives the type to files that do not tell",
                      group.comparison.files.front(), bytes, type.name, parts)};
    }
    plan.sizes.push_back({bytes, count});
    NcclTestsComparedRow row;
    row.measured_us = times;
    row.median_us = median(times);
    group.comparison.rows.push_back(std::move(row));
  }
}

void judge(NcclTestsComparedRow& row, const NcclTestsRow& predicted) {
  row.predicted = predicted;
  row.error = relative_difference(predicted.time_us, row.median_us);
  row.in_band = static_cast<std::size_t>(std::ranges::count_if(row.measured_us, [&](double us) {
    return us >= predicted.low_us && us <= predicted.high_us;
  }));
}

}  // namespace

std::vector<NcclTestsComparison> compare_nccl_tests(const std::vector<NcclTestsSample>& samples,
                                                    const Machine& machine) {
  std::vector<NcclTestsComparison> comparisons;
  std::vector<NcclTestsPlan> plans;
  for (Group& group : groups_of(samples)) {
    try {
      check_plan(group.comparison.plan, machine);
    } catch (const UsageError& refused) {
      const std::string& file = group.comparison.files.front();
      throw UsageError{fmt::format(
          "{}: {}{}", file, refused.what(),
          file.ends_with(".csv") ? "\n  hint: --where COLUMN=TEXT takes rows of it" : "")};
    }
    choose_sizes(group);
    if (group.comparison.rows.empty()) continue;
    plans.push_back(group.comparison.plan);
    comparisons.push_back(std::move(group.comparison));
  }
  if (comparisons.empty())
    throw UsageError{"every measured size is 0, or less than an element for each rank"};
  const auto predicted = predict_nccl_tests(plans, machine);
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    for (std::size_t k = 0; k < comparisons[i].rows.size(); ++k) {
      judge(comparisons[i].rows[k], predicted[i][k]);
    }
  }
  return comparisons;
}

double worst_error(const std::vector<NcclTestsComparison>& comparisons) {
  double worst = 0;
  for (const NcclTestsComparison& comparison : comparisons) {
    for (const NcclTestsComparedRow& row : comparison.rows) {
      worst = std::max(worst, std::abs(row.error));
    }
  }
  return worst;
}

}  // namespace foretrace
