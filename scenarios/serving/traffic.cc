#include "scenarios/serving/traffic.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/base/text/made_from.h"
#include "scenarios/serving/random_numbers.h"

namespace foretrace::serving {
namespace {

__extension__ using Wide = __int128;

constexpr std::uint64_t kGaps = 0, kPrompts = 1, kOutputs = 2;  // streams

/// Rounds down, as all of these do, below 0 too.
std::int64_t floor_div(Wide a, Wide b) {
  return static_cast<std::int64_t>(a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0));
}

std::int64_t length(RandomNumbers& numbers, const Law& law) {
  if (law.spread_ppm == 0) return law.mean;
  const Wide deviation = Wide{law.mean} * law.spread_ppm * numbers.normal();
  return std::max<std::int64_t>(1, law.mean + floor_div(deviation, Wide{1'000'000} * kOne));
}

/// Of a gamma law with mean 1 and shape halves / 2, with 32 binary places: exponentials, and for a
/// half a squared normal.
std::int64_t gap(RandomNumbers& numbers, std::int64_t halves) {
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < halves / 2; ++i) total += numbers.exponential();
  if (halves % 2 == 1) {
    const Wide normal = numbers.normal();
    total += static_cast<std::int64_t>((normal * normal) >> 32) / 2;
  }
  return static_cast<std::int64_t>(Wide{total} * 2 / halves);
}

}  // namespace

std::vector<Arrival> arrivals_of(const Traffic& traffic) {
  if (traffic.arrivals == Arrivals::Trace) return traffic.trace;
  RandomNumbers gaps{traffic.seed, kGaps}, prompts{traffic.seed, kPrompts},
      outputs{traffic.seed, kOutputs};
  const std::int64_t halves = traffic.arrivals == Arrivals::Poisson ? 2 : traffic.shape_halves;
  std::vector<Arrival> found;
  std::int64_t at_ns = 0;
  for (std::int64_t i = 0; i < traffic.requests; ++i) {
    Arrival one;
    if (traffic.arrivals != Arrivals::Closed) {
      at_ns += scaled(gap(gaps, halves), traffic.mean_gap_ns);
      one.at_ns = at_ns;
    } else if (i < traffic.concurrency) {
      one.at_ns = 0;
    }
    one.prompt = length(prompts, traffic.prompt);
    one.output = length(outputs, traffic.output);
    found.push_back(one);
  }
  return found;
}

std::int64_t longest(const std::vector<Arrival>& arrivals) {
  std::int64_t most = 1;
  for (const Arrival& one : arrivals) most = std::max(most, one.prompt + one.output);
  return most;
}

std::string requests_words(const std::vector<Arrival>& arrivals) {
  const auto range = [&arrivals](std::int64_t Arrival::*member) {
    const auto [least, most] = std::ranges::minmax_element(arrivals, {}, member);
    return (*least).*member == (*most).*member
               ? fmt::format("{}", (*least).*member)
               : fmt::format("{} to {}", (*least).*member, (*most).*member);
  };
  std::int64_t last_ns = 0, known = 0;
  for (const Arrival& one : arrivals) {
    last_ns = std::max(last_ns, one.at_ns.value_or(0));
    known += one.at_ns ? 1 : 0;
  }
  const auto all = static_cast<std::int64_t>(arrivals.size());
  constexpr double kSecond = 1e9;
  const std::string when = known < all
                               ? fmt::format("{} at a time", known)
                               : fmt::format("in {:.3g} s", static_cast<double>(last_ns) / kSecond);
  return fmt::format("{} request{} {}, prompts of {} tokens, outputs of {}", all,
                     all == 1 ? "" : "s", when, range(&Arrival::prompt), range(&Arrival::output));
}

std::string requests_hash(const Serving& serving) {
  const Engine& engine = serving.engine;
  std::string text = fmt::format(
      "{} {} {} {} {} {} {} {} {} {} {} {} {}", engine_name(engine.kind), engine.release,
      engine.max_batched_tokens, engine.max_requests, engine.chunked_prefill, engine.block,
      engine.cuda_graphs, engine.memory_ppm, engine.cache_tokens.value_or(-1), serving.replicas,
      serving.router == Router::RoundRobin, serving.prefix_ppm, serving.gpus());
  if (engine.speculative) {
    text += fmt::format(" {} {} {}", engine.speculative->tokens, engine.speculative->acceptance_ppm,
                        engine.speculative->by_layer);
  }
  if (serving.apart) {
    const Layout& prefill = serving.apart->prefill;
    text += fmt::format(" {} {} {} {}", serving.apart->prefill_engines, prefill.tensor,
                        prefill.data, prefill.expert);
  }
  for (const Arrival& one : arrivals_of(serving.traffic)) {
    text += fmt::format("\n{},{},{}", one.at_ns.value_or(-1), one.prompt, one.output);
  }
  return digest_of(text);
}

}  // namespace foretrace::serving
