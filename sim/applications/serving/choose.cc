#include "sim/applications/serving/choose.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "scenarios/base/text/errors.h"
#include "scenarios/program/program.h"
#include "scenarios/serving/grid.h"
#include "scenarios/serving/traffic.h"
#include "sim/applications/serving/predict.h"
#include "sim/engine/children.h"
#include "sim/simulate.h"

namespace foretrace::serving {
namespace {

constexpr std::int64_t kMostReplicas = 512;

constexpr double Load::*kLoadValues[] = {&Load::requests, &Load::ttft_ms,
                                         &Load::tpot_ms,  &Load::output_tokens_per_s,
                                         &Load::low,      &Load::high};

double tenth(const Times& times) { return times.percentiles[1]; }

bool holds(const Summary& summary, const Limits& limits) {
  if (summary.verdict == Verdict::Overloaded) return false;
  if (limits.ttft_ms && tenth(summary.ttft) > *limits.ttft_ms) return false;
  return !limits.tpot_ms || tenth(summary.tpot) <= *limits.tpot_ms;
}

/// What a child sends.
std::vector<double> numbers_of(const Choice& c) {
  std::vector<double> numbers{static_cast<double>(c.replicas),
                              c.ttft_ms,
                              c.tpot_ms,
                              c.output_tokens_per_s,
                              c.cache,
                              c.holds_slow ? 1.0 : 0.0,
                              c.fits ? 1.0 : 0.0,
                              static_cast<double>(c.loads.size())};
  for (const Load& load : c.loads) {
    for (const auto value : kLoadValues) numbers.push_back(load.*value);
  }
  const std::vector<double> rests = foretrace::numbers_of(c.rests);
  numbers.insert(numbers.end(), rests.begin(), rests.end());
  return numbers;
}

Choice from(const std::vector<double>& numbers, const Machine& machine, std::int64_t tensor) {
  Choice choice{.machine = machine.name, .tensor = tensor};
  if (numbers.empty()) return choice;
  choice.replicas = static_cast<std::int64_t>(numbers[0]);
  choice.ttft_ms = numbers[1];
  choice.tpot_ms = numbers[2];
  choice.output_tokens_per_s = numbers[3];
  choice.cache = numbers[4];
  choice.holds_slow = numbers[5] > 0;
  choice.fits = numbers[6] > 0;
  choice.loads.resize(static_cast<std::size_t>(numbers[7]));
  std::size_t at = 8;
  for (Load& load : choice.loads) {
    for (const auto value : kLoadValues) load.*value = numbers[at++];
  }
  choice.rests = rests_from(std::span{numbers}.subspan(at));
  choice.rests_note = rests_text(choice.rests, machine);
  return choice;
}

/// The traffic's lengths, so many requests at a time, twice as many in all.
std::vector<Arrival> loaded(const std::vector<Arrival>& lengths, std::int64_t requests) {
  constexpr std::int64_t kFewest = 8;
  std::vector<Arrival> arrivals;
  for (std::int64_t i = 0; i < std::max(2 * requests, kFewest); ++i) {
    Arrival one = lengths[static_cast<std::size_t>(i) % lengths.size()];
    one.at_ns = i < requests ? std::optional<std::int64_t>{0} : std::nullopt;
    arrivals.push_back(one);
  }
  return arrivals;
}

/// As few replicas as hold the limits: twice as many until they do, then between.
std::vector<double> fewest(const Serving& serving, const Limits& limits, const Machine& machine,
                           bool with_loads) {
  Choice choice{.tensor = serving.layout.tensor};
  std::vector<Serving> kinds = kinds_of(serving, machine);
  Program head;
  head.name = serving.name;
  const Timeline timeline =
      simulate(iterations(kinds.front(), batches_of(grid_of(serving)), head, {serving.file, 1, 1}),
               machine, Fidelity::Flow, Simulated::OneOfEach);
  const std::vector<std::vector<RegionTime>> times{region_times(timeline)};
  choice.rests = rests_of(timeline, machine);
  const auto with = [&](std::int64_t replicas) {
    kinds.front().replicas = replicas;
    return predict(kinds, machine, times);
  };
  const std::int64_t most = std::min(kMostReplicas, serving.traffic.requests);
  std::int64_t enough = 1;
  Predicted found;
  try {
    found = with(enough);
    while (!holds(found.middle, limits) && enough < most) {
      enough = std::min(2 * enough, most);
      found = with(enough);
    }
  } catch (const UsageError&) {
    choice.fits = false;
    return numbers_of(choice);
  }
  std::int64_t few = enough / 2;  // too few
  while (holds(found.middle, limits) && enough - few > 1) {
    const std::int64_t middle = (few + enough) / 2;
    Predicted other = with(middle);
    if (holds(other.middle, limits)) {
      enough = middle;
      found = std::move(other);
    } else {
      few = middle;
    }
  }
  choice.replicas = holds(found.middle, limits) ? enough : 0;
  choice.holds_slow = holds(found.slow, limits);
  choice.ttft_ms = tenth(found.middle.ttft);
  choice.tpot_ms = tenth(found.middle.tpot);
  choice.output_tokens_per_s = found.middle.output_tokens_per_s;
  choice.cache = found.middle.most_of_cache;
  const std::int64_t at_once = std::min(serving.engine.max_requests, serving.traffic.requests);
  const std::vector<Arrival> lengths = arrivals_of(serving.traffic);
  kinds.front().replicas = 1;
  for (std::int64_t requests = 1; with_loads && requests <= at_once; requests *= 2) {
    const Predicted p = predict(kinds, machine, times, loaded(lengths, requests));
    choice.loads.push_back({.requests = static_cast<double>(requests),
                            .ttft_ms = p.middle.ttft.percentiles[0],
                            .tpot_ms = p.middle.tpot.percentiles[0],
                            .output_tokens_per_s = p.middle.output_tokens_per_s,
                            .low = p.slow.output_tokens_per_s,
                            .high = p.fast.output_tokens_per_s});
  }
  return numbers_of(choice);
}

}  // namespace

std::vector<Choice> choices(const Serving& serving, const Limits& limits,
                            const std::vector<Machine>& machines, bool with_loads) {
  std::vector<Job> jobs;
  std::vector<std::pair<const Machine*, std::int64_t>> asked;
  for (const Machine& machine : machines) {
    for (std::int64_t tensor = 1; tensor <= machine.gpus_per_node && tensor <= 8; tensor *= 2) {
      Serving one = serving;
      one.layout = {.tensor = tensor};
      if (!why_not_split(serving.model, one.layout).empty()) continue;
      asked.emplace_back(&machine, tensor);
      jobs.push_back(
          [one, limits, &machine, with_loads] { return fewest(one, limits, machine, with_loads); });
    }
  }
  const auto numbers = run_in_children(jobs);
  std::vector<Choice> found;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    found.push_back(from(numbers[i], *asked[i].first, asked[i].second));
  }
  std::ranges::stable_sort(found, {}, [](const Choice& c) {
    return std::pair{c.replicas == 0, c.gpus()};
  });
  return found;
}

std::string vllm_command(const Serving& serving, const Choice& choice) {
  const Engine& engine = serving.engine;
  std::string text = fmt::format(
      "vllm serve MODEL --tensor-parallel-size {} --max-num-batched-tokens {} --max-num-seqs {} "
      "--gpu-memory-utilization {}",
      choice.tensor, engine.max_batched_tokens, engine.max_requests,
      static_cast<double>(engine.memory_ppm) / 1e6);
  if (serving.precision == Precision::Float8) text += " --quantization fp8";
  if (serving.float8_cache) text += " --kv-cache-dtype fp8";
  return text;
}

}  // namespace foretrace::serving
