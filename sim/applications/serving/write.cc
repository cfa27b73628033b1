#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

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
      return "a closed loop: a client's next request comes when its last one is answered";
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

std::string engine_note(const Serving& serving) {
  const bool is_ours = serving.engine.kind == EngineKind::Foretrace;
  std::string text = fmt::format(
      "{}: note: the host's work of {} is {}", serving.file, engine_name(serving.engine.kind),
      is_ours ? serving.host ? "by the loops of the host that is named"
                             : "as hosts of an H100 and an H200 were measured"
              : "set by hand on public times per token; its release and its kernels are not told "
                "apart; times to the first token are half as sure as those per token");
  const bool has_experts = serving.model.experts > 0;
  if (has_experts) {
    text += fmt::format("; experts' bands are as wide as {} were wrong",
                        is_ours ? "own files on an H200" : "public ones");
  }
  if (serving.host && !is_ours) text += "; no measurement has judged its work on a known host";
  if (serving.engine.speculative) {
    text += "; what guessing tokens takes was not judged by any measurement";
  }
  if (serving.layout.pipeline > 1) text += "; no measurement has judged a pipeline";
  if (serving.precision == Precision::Int4) {
    text += has_experts ? "; experts with weights of 4 bits took several times as long in public"
                        : "; weights of 4 bits were judged by few public times";
  }
  return text + "\n";
}

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
  const auto gpus = serving.gpus();
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

namespace {

/// Each value's name, and how it is got from a summary.
template <class Take>
void for_each_value(const Predicted& p, const Take& take) {
  for (const Row& row : kRows) {
    if (!has(p, row)) continue;
    take(fmt::format("{}_mean", row.key),
         value_of(p, [&](const Summary& s) { return (s.*row.times).mean; }));
    for (std::size_t i = 0; i < std::size(kPercentiles); ++i) {
      take(fmt::format("{}_p{}", row.key, kPercentiles[i]),
           value_of(p, [&](const Summary& s) { return (s.*row.times).percentiles[i]; }));
    }
  }
  const auto add = [&](const char* name, const auto& get) { take(name, value_of(p, get)); };
  add("seconds", [](const Summary& s) { return s.seconds; });
  add("requests_per_s", [](const Summary& s) { return s.requests_per_s; });
  add("output_tokens_per_s", [](const Summary& s) { return s.output_tokens_per_s; });
  add("preemptions", [](const Summary& s) { return static_cast<double>(s.preemptions); });
}

const char* verdict_word(Verdict verdict) {
  switch (verdict) {
    case Verdict::Stable:
      return "stable";
    case Verdict::Backlogged:
      return "backlogged";
    case Verdict::Overloaded:
      return "overloaded";
    case Verdict::ClosedLoop:
      return "closed_loop";
  }
  return "";
}

}  // namespace

std::string csv_of(const Predicted& p) {
  std::string text = "value,predicted,low,high\n";
  for_each_value(p, [&](const std::string& name, const Value& value) {
    text += fmt::format("{},{},{},{}\n", name, value.middle, value.low, value.high);
  });
  return text;
}

std::string json_of(const Serving& serving, const Predicted& p, const Machine& machine) {
  nlohmann::ordered_json json{{"schema_version", 1},
                              {"kind", "serving"},
                              {"scenario", serving.name},
                              {"file", serving.file},
                              {"machine", machine.name},
                              {"engine", engine_name(serving.engine.kind)},
                              {"gpus", serving.gpus()},
                              {"requests", p.middle.requests},
                              {"iterations", p.middle.iterations},
                              {"verdict", verdict_word(p.middle.verdict)},
                              {"falls_behind", p.middle.falls_behind},
                              {"cache_tokens", p.cache_tokens},
                              {"most_of_cache", p.middle.most_of_cache},
                              {"mean_running", p.middle.mean_running},
                              {"busy", p.middle.busy}};
  for_each_value(p, [&](const std::string& name, const Value& value) {
    json["values"][name] = {{"predicted", value.middle}, {"low", value.low}, {"high", value.high}};
  });
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace foretrace::serving
