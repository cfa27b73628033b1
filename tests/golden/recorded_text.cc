// Writes the text of a golden file; its form is told in README.md here.
#include <fmt/format.h>

#include <string_view>

#include "tests/golden/recorded.h"
#include "tests/golden/repeats.h"

namespace foretrace::test {
namespace {

/// Picoseconds as nanoseconds: "7899", "7899.125".
std::string ns_text(std::int64_t ps) {
  std::string text = fmt::format("{}.{:03}", ps / 1000, ps % 1000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

/// "5", "1..31" from the first to the last of a repeat.
std::string range_text(std::uint64_t first, std::uint64_t stride, std::uint64_t times) {
  if (stride == 0) return fmt::format("{}", first);
  return fmt::format("{}..{}", first, first + (times - 1) * stride);
}

/// "015 gemm[1..31]", "065 graph_launch[1] part 2..20"; instance 0 and part 1 are not said.
std::string name_text(const Repeat::Line& line, std::uint64_t times) {
  std::string text = line.op;
  const std::string instances = range_text(line.instance, line.instance_stride, times);
  const std::string parts = range_text(line.part, line.part_stride, times);
  if (instances != "0") text += fmt::format("[{}]", instances);
  if (parts != "1") text += fmt::format(" part {}", parts);
  return text;
}

std::string lines_of(const Recorded::Spans& spans) {
  std::string text;
  for (const Repeat& repeat : find_repeats(spans)) {
    std::string_view indent = "  ";
    std::string times;
    if (repeat.times > 1) times = fmt::format(" x{} +{}", repeat.times, ns_text(repeat.period_ps));
    if (repeat.body.size() > 1) {
      text += fmt::format(" {}\n", times);
      times.clear();
      indent = "    ";
    }
    for (const Repeat::Line& line : repeat.body) {
      text += fmt::format("{}{}: {} {}{}\n", indent, name_text(line, repeat.times),
                          ns_text(line.begin_ps), ns_text(line.end_ps), times);
    }
  }
  return text;
}

/// Lines "KEY 0,1,2: VALUE" of entries "KEY 0": VALUE; keys that end in no number stay as they are.
std::string processes_joined(const std::map<std::string, std::string>& entries) {
  std::map<std::pair<std::string, std::string>, std::string> joined;  // (key, value): numbers
  for (const auto& [key, value] : entries) {
    const auto space = key.rfind(' ');
    std::string& numbers = joined[{key.substr(0, space), value}];
    numbers += (numbers.empty() ? "" : ",") + key.substr(space + 1);
  }
  std::string text;
  for (const auto& [key, numbers] : joined) {
    text += fmt::format("{} {}: {}\n", key.first, numbers, key.second);
  }
  return text;
}

std::string bands_text(const std::vector<Recorded::Band>& bands) {
  std::string text;
  for (const auto& [low, high] : bands) {
    text += fmt::format("{}{:.5g} to {:.5g}", text.empty() ? "" : ", ", low, high);
  }
  return text;
}

}  // namespace

std::string to_text(const Recorded& recorded) {
  std::map<std::string, std::string> regions;
  for (const auto& [name, ns] : recorded.region_ns) regions[name] = fmt::format("{}", ns);
  std::map<std::string, std::string> region_bands;
  std::string op_bands;
  for (const auto& [key, bands] : recorded.bands) {
    if (key.starts_with("op ")) {
      op_bands += fmt::format("band {}: {}\n", key, bands_text(bands));
    } else {
      region_bands["band " + key] = bands_text(bands);
    }
  }
  std::map<std::string, std::string> alike;  // lines: the lanes' names
  std::vector<const std::string*> order;
  for (const auto& [name, spans] : recorded.lanes) {
    const auto [place, is_new] = alike.emplace(lines_of(spans), "");
    place->second += fmt::format("lane {}\n", name);
    if (is_new) order.push_back(&place->first);
  }
  std::string text = fmt::format("outcome {}\n", recorded.outcome) + processes_joined(regions) +
                     processes_joined(region_bands) + op_bands;
  for (const std::string* lines : order) text += alike.at(*lines) + *lines;
  return text;
}

}  // namespace foretrace::test
