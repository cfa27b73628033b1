#include <fmt/format.h>

#include <algorithm>

#include "sim/applications/serving/predict.h"

namespace foretrace::serving {
namespace {

const char* verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::Stable:
      return "stable";
    case Verdict::Backlogged:
      return "backlogged: one in ten waits far longer than is usual";
    case Verdict::Overloaded:
      return "overloaded: requests arrive faster than they are answered";
    case Verdict::ClosedLoop:
      return "a closed loop: as many requests as it says are there at any time";
  }
  return "";
}

struct Row {
  const char* key;
  const char* text;
  Times Summary::*times;
};
constexpr Row kRows[] = {{"ttft_ms", "TTFT, ms", &Summary::ttft},
                         {"tpot_ms", "TPOT, ms", &Summary::tpot},
                         {"itl_ms", "ITL, ms", &Summary::itl},
                         {"e2e_ms", "end to end, ms", &Summary::end_to_end}};

struct Value {
  double middle, low, high;
};
template <class Get>
Value value_of(const Predicted& p, const Get& get) {
  const double values[] = {get(p.middle), get(p.fast), get(p.slow)};
  return {values[0], *std::ranges::min_element(values), *std::ranges::max_element(values)};
}

bool has(const Predicted& p, const Row& row) {
  return p.middle.has_tpot || row.times == &Summary::ttft || row.times == &Summary::end_to_end;
}

}  // namespace

std::string text_of(const Serving& serving, const Predicted& p) {
  const Summary& s = p.middle;
  std::string text = fmt::format("{:<16}{:>10}", "", "mean");
  for (const int percent : kPercentiles) text += fmt::format("{:>10}", fmt::format("p{}", percent));
  text += fmt::format("   {}\n", "band of p50");
  for (const Row& row : kRows) {
    if (!has(p, row)) continue;
    const Times& times = s.*row.times;
    text += fmt::format("{:<16}{:>10.2f}", row.text, times.mean);
    for (const double one : times.percentiles) text += fmt::format("{:>10.2f}", one);
    const Value half =
        value_of(p, [&](const Summary& of) { return (of.*row.times).percentiles[0]; });
    text += fmt::format("   {:.2f} to {:.2f}\n", half.low, half.high);
  }
  const Value tokens = value_of(p, [](const Summary& of) { return of.output_tokens_per_s; });
  const auto gpus = serving.tensor * serving.replicas;
  text += fmt::format(
      "\n{:<16}{} requests in {:.2f} s: {:.2f} a second, {:.0f} output tokens a second ({:.0f} to "
      "{:.0f}), {:.0f} for each of {} GPU{}\n",
      "throughput", s.requests, s.seconds, s.requests_per_s, tokens.middle, tokens.low, tokens.high,
      tokens.middle / static_cast<double>(gpus), gpus, gpus == 1 ? "" : "s");
  text += fmt::format("{:<16}{} of {:.1f} requests in the mean, {:.0f} % of the time\n",
                      "iterations", s.iterations, s.mean_running, 100 * s.busy);
  text += fmt::format("{:<16}{} tokens{}, at most {:.0f} % in use, {} preemption{}\n", "cache",
                      p.cache_tokens, p.is_limited ? " as the file says" : "",
                      100 * s.most_of_cache, s.preemptions, s.preemptions == 1 ? "" : "s");
  text += fmt::format("{:<16}{}\n", "verdict", verdict_text(s.verdict));
  return text;
}

std::string csv_of(const Predicted& p) {
  std::string text = "value,predicted,low,high\n";
  const auto add = [&](const std::string& name, const auto& get) {
    const Value value = value_of(p, get);
    text += fmt::format("{},{},{},{}\n", name, value.middle, value.low, value.high);
  };
  for (const Row& row : kRows) {
    if (!has(p, row)) continue;
    add(fmt::format("{}_mean", row.key), [&](const Summary& s) { return (s.*row.times).mean; });
    for (std::size_t i = 0; i < std::size(kPercentiles); ++i) {
      add(fmt::format("{}_p{}", row.key, kPercentiles[i]),
          [&](const Summary& s) { return (s.*row.times).percentiles[i]; });
    }
  }
  add("seconds", [](const Summary& s) { return s.seconds; });
  add("requests_per_s", [](const Summary& s) { return s.requests_per_s; });
  add("output_tokens_per_s", [](const Summary& s) { return s.output_tokens_per_s; });
  add("preemptions", [](const Summary& s) { return static_cast<double>(s.preemptions); });
  return text;
}

}  // namespace foretrace::serving
