#include "tests/scenarios/reading.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sstream>

namespace foretrace::reading_test {

std::string scenario_with(std::string_view ops) {
  std::string text = R"(# What it shows.
schema_version: 1
name: test
parameters: {size: 1MiB, n: 512}
devices: 2
streams:
  s: {flags: non_blocking}
events:
  e: {}
  e2: {count: 2}
buffers:
  x: {memory: device, size: $size}
  y: {memory: device, size: $n * $n * 4B}
  host: {memory: pinned, size: $size}
  page: {memory: pageable, size: $size}
threads:
  main:
)";
  std::istringstream lines{std::string{ops}};
  for (std::string line; std::getline(lines, line);) text += "    - " + line + "\n";
  return text;
}

Program read(const std::string& text, const ParameterValues& parameters) {
  auto result = read_scenario(text, "test.yaml", parameters);
  if (!result) {
    ADD_FAILURE() << render(result.error(), text);
    return {};
  }
  return std::move(result->program);
}

std::string problems_of(const std::string& text, const ParameterValues& parameters) {
  const auto result = read_scenario(text, "test.yaml", parameters);
  std::string all;
  for (const Diagnostic& d : result ? result->warnings : result.error()) {
    if (d.severity == Severity::Note) continue;
    all += fmt::format("{}:{} {}: {}{}{}\n", d.at.line, d.at.column,
                       d.severity == Severity::Error ? "error" : "warning", d.message,
                       d.hint.empty() ? "" : " | ", d.hint);
  }
  return all;
}

}  // namespace foretrace::reading_test
