#include "sim/cli/judge/predict_all.h"

#include <fmt/format.h>

#include <cstdio>

#include "reports/timeline/origin.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/print.h"
#include "sim/engine/children.h"
#include "sim/simulate.h"

namespace foretrace {
namespace {

// A child sends numbers only: nothing at all when the machine cannot run the program; else the
// verdicts, then these for each region.
constexpr std::size_t kNumbersPerRegion = 6;

std::vector<double> predict(const Program& program, const Machine& machine, Fidelity fidelity) {
  if (const Diagnostics problems = check_fits(program, machine); !problems.empty()) {
    print_error("{}", render(problems, ""));
    return {};
  }
  Timeline timeline;
  try {
    timeline = simulate(program, machine, fidelity);
  } catch (const UsageError& error) {
    print_error("{}: {}\n", program.file, error.what());
    return {};
  }
  std::vector<double> numbers{1};
  for (const Expectation& expectation : program.expectations) {
    numbers.push_back(static_cast<double>(judge(expectation, timeline).held));
  }
  for (const RegionSamples& region : timeline.regions) {
    numbers.insert(
        numbers.end(),
        {static_cast<double>(region.op), static_cast<double>(region.instance),
         static_cast<double>(region.process), static_cast<double>(region.per),
         static_cast<double>(region.samples_ns.front()), region.learned_by.empty() ? 0.0 : 1.0});
  }
  return numbers;
}

std::optional<Prediction> decode(const Program& program, const std::vector<double>& numbers) {
  if (numbers.empty()) return std::nullopt;
  Prediction prediction;
  prediction.regions.origin = origin_of(program);
  prediction.regions.ops = op_rows(program);
  auto at = numbers.begin() + 1;
  for (std::size_t i = 0; i < program.expectations.size(); ++i) {
    prediction.held.push_back(static_cast<Held>(static_cast<int>(*at++)));
  }
  for (; numbers.end() - at >= static_cast<std::ptrdiff_t>(kNumbersPerRegion);
       at += kNumbersPerRegion) {
    RegionSamples region;
    region.op = static_cast<std::uint32_t>(at[0]);
    region.instance = static_cast<std::uint64_t>(at[1]);
    region.process = static_cast<std::uint32_t>(at[2]);
    region.per = static_cast<std::uint64_t>(at[3]);
    region.samples_ns = {static_cast<std::int64_t>(at[4])};
    if (at[5] != 0) region.learned_by = {"a parameter of the machine"};
    region.name = prediction.regions.ops[region.op].label;
    prediction.regions.regions.push_back(std::move(region));
  }
  return prediction;
}

}  // namespace

std::vector<std::optional<Prediction>> predict_all(std::span<const Program> programs,
                                                   const Machine& machine, Fidelity fidelity) {
  std::vector<Job> jobs;
  for (const Program& program : programs) {
    jobs.emplace_back(
        [&program, &machine, fidelity] { return predict(program, machine, fidelity); });
  }
  std::vector<std::optional<Prediction>> predictions;
  const auto results = run_in_children(jobs);
  for (std::size_t i = 0; i < programs.size(); ++i) {
    predictions.push_back(decode(programs[i], results[i]));
  }
  return predictions;
}

}  // namespace foretrace
