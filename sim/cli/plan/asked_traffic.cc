#include "sim/cli/plan/asked_traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "scenarios/base/text/errors.h"
#include "sim/cli/plan/asked_model.h"

namespace foretrace {

namespace {

/// A number with its unit, and nothing that a file would read as more.
void check_rate(const std::string& rate) {
  const bool is_plain = std::ranges::all_of(rate, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '/' || c == ' ';
  });
  if (is_plain) return;
  throw UsageError{fmt::format("--rate {}: requests, as 20/s or 30/min", rate)};
}

/// Requests a second; 0 of what is no rate, which the reader refuses with its place.
double rate_of(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return 0;
  const std::string unit{end, text.data() + text.size()};
  return unit == "/min" ? number / 60 : unit == "/h" ? number / 3600 : number;
}

}  // namespace

std::string scenario_of(const std::string& model, const AskedTraffic& asked, std::int64_t tensor,
                        std::int64_t replicas) {
  if (asked.rate.empty() || !asked.prompt || !asked.output) {
    throw UsageError{
        fmt::format("{}: a model needs its requests: --rate 20/s --prompt 2000 --output 300\n"
                    "  hint: or give a file with 'serving': hw/serving/chat_70b.yaml is one",
                    model)};
  }
  check_rate(asked.rate);
  // Several times as long as an answer takes: engines are full by then.
  constexpr double kSeconds = 120, kFewest = 200, kMost = 3000;
  const double requests = std::clamp(kSeconds * rate_of(asked.rate), kFewest, kMost);
  const std::filesystem::path path = model;
  const std::string shown =
      model.ends_with(".json") ? path_in_yaml(absolute(path).string()) : model;
  std::string name = model.ends_with(".json") ? path.stem().string() : model;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '.') c = '_';
  }
  return fmt::format(
      "# {} requests, prompts of {} tokens, answers of {}. Lengths vary by 30 %.\n"
      "schema_version: 1\n"
      "name: {}\n"
      "serving:\n"
      "  model: {}\n"
      "{}"
      "  parallel: {{tensor: {}}}\n"
      "  replicas: {}\n"
      "  engine: {{kind: {}}}\n"
      "  traffic: {{arrivals: poisson, rate: {}, prompt: {{mean: {}, spread: 30%}}, output: "
      "{{mean: {}, spread: 30%}}, requests: {:.0f}}}\n",
      asked.rate, *asked.prompt, *asked.output, name, shown,
      asked.precision.empty() ? "" : fmt::format("  precision: {}\n", asked.precision), tensor,
      replicas, asked.engine, asked.rate, *asked.prompt, *asked.output, requests);
}

}  // namespace foretrace
