#include "tests/golden/summary.h"

#include <fmt/format.h>

#include <sstream>
#include <stdexcept>

namespace foretrace::test {

Summary summarise(const Timeline& timeline) {
  Summary summary;
  for (const RegionSamples& region : timeline.regions) {
    Sum& sum = summary[fmt::format("region {} process {}", region.name, region.process)];
    sum.count += 1;
    for (const std::int64_t sample : region.samples_ns) sum.total_ns += sample;
  }
  for (const Span& span : timeline.spans) {
    const OpRow& op = timeline.ops.at(span.op);
    const std::string label = op.label.empty() ? "" : " " + op.label;
    Sum& sum = summary[fmt::format("op {:03} {}{} process {} {}", span.op, op.kind, label,
                                   timeline.lanes.at(span.lane).process,
                                   span.part == 0 ? "host" : "device")];
    sum.count += 1;
    sum.total_ns += span.end_ns - span.begin_ns;
  }
  return summary;
}

std::string to_text(const Summary& summary) {
  std::string text;
  for (const auto& [key, sum] : summary) {
    text += fmt::format("{}: {} x, {} ns\n", key, sum.count, sum.total_ns);
  }
  return text;
}

Summary from_text(const std::string& text) {
  Summary summary;
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    const auto colon = line.rfind(": ");
    if (colon == std::string::npos) throw std::runtime_error{"not a golden's line: " + line};
    std::istringstream numbers{line.substr(colon + 2)};
    Sum sum;
    std::string x;
    numbers >> sum.count >> x >> sum.total_ns;
    if (!numbers) throw std::runtime_error{"not a golden's line: " + line};
    summary[line.substr(0, colon)] = sum;
  }
  return summary;
}

}  // namespace foretrace::test
