#include "sim/applications/fit/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <optional>
#include <span>

#include "models/what_if/what_if.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/print.h"
#include "sim/engine/children.h"
#include "sim/record/region_reader.h"
#include "sim/simulate.h"

namespace foretrace {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::array kProtocols{"", "LL", "LL128", "Simple"};

std::span<const FitTarget> targets_of(const FitData& data, std::size_t run) {
  return std::span{data.targets}.subspan(data.runs[run].first_target, data.runs[run].targets);
}

/// The slowest process decides, as in the measurement's figures.
std::vector<double> times(std::span<const FitTarget> targets, const Timeline& predicted) {
  std::map<std::pair<std::uint32_t, std::uint64_t>, double> slowest;
  for (const RegionSamples& region : predicted.regions) {
    double& ns = slowest[{region.op, region.instance}];
    ns = std::max(ns,
                  static_cast<double>(region.samples_ns.front()) / static_cast<double>(region.per));
  }
  std::vector<double> result;
  for (const FitTarget& target : targets) {
    const auto found = slowest.find({target.op, target.instance});
    result.push_back(found == slowest.end() || found->second <= 0 ? kNone : found->second);
  }
  return result;
}

/// Empty where the machine cannot run the program.
std::optional<Timeline> try_simulate(const Program& program, const Machine& machine) {
  if (!check_fits(program, machine).empty()) return std::nullopt;
  try {
    return simulate(program, machine);
  } catch (const UsageError& error) {
    print_error("{}: {}\n", program.file, error.what());
    return std::nullopt;
  }
}

}  // namespace

std::vector<std::vector<double>> predict_runs(const FitData& data,
                                              const std::vector<PredictionJob>& jobs) {
  std::vector<Job> children;
  for (const PredictionJob& job : jobs) {
    children.emplace_back([&data, &job] {
      Machine machine = *job.machine;
      if (const double host = data.runs[job.run].host; host != 1) {
        apply_what_ifs(machine, {fmt::format("host={:.4f}x", host)});
      }
      const auto predicted = try_simulate(data.runs[job.run].program, machine);
      return predicted ? times(targets_of(data, job.run), *predicted) : std::vector<double>{};
    });
  }
  auto results = run_in_children(children);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    results[i].resize(data.runs[jobs[i].run].targets, kNone);
  }
  return results;
}

std::vector<TargetClass> classify(const FitData& data, const Machine& machine) {
  std::vector<Job> children;  // each gives the protocols of a run's targets, as numbers
  for (std::size_t run = 0; run < data.runs.size(); ++run) {
    children.emplace_back([&data, &machine, run] {
      const Program& program = data.runs[run].program;
      const RegionReader reader{program};
      std::vector<double> protocols;
      const auto predicted = try_simulate(program, machine);
      for (const FitTarget& target : targets_of(data, run)) {
        const RegionContent content = reader.content(target.op, target.instance);
        const std::string protocol =
            predicted && content.nccl
                ? reader.protocol(content, target.op, target.instance, *predicted)
                : "";
        const auto at = std::ranges::find(kProtocols, protocol);
        protocols.push_back(static_cast<double>(at - kProtocols.begin()));
      }
      return protocols;
    });
  }
  const auto protocols = run_in_children(children);
  std::vector<TargetClass> classes;
  for (std::size_t run = 0; run < data.runs.size(); ++run) {
    const Program& program = data.runs[run].program;
    const RegionReader reader{program};
    for (const FitTarget& target : targets_of(data, run)) {
      const RegionContent content = reader.content(target.op, target.instance);
      TargetClass result;
      result.nccl = content.nccl;
      result.graph = content.graph;
      result.one_thread = program.devices > 1;
      result.bytes = content.bytes;
      result.name = content.group;
      const auto number =
          static_cast<std::size_t>(protocols[run][classes.size() - data.runs[run].first_target]);
      if (content.nccl) {
        if (number > 0 && number < kProtocols.size()) {
          result.name += fmt::format(" {}", kProtocols[number]);
        }
        result.name += content.graph ? ", graph" : result.one_thread ? ", one thread" : ", host";
      }
      classes.push_back(std::move(result));
    }
  }
  return classes;
}

}  // namespace foretrace
