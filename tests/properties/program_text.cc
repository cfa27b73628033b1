#include "tests/properties/program_text.h"

#include <fmt/format.h>

namespace foretrace::test {
namespace {

std::string buffers(const ProgramParts& parts) {
  std::string text = "buffers:\n";
  const auto declare = [&](char name, std::uint32_t number, const char* memory,
                           std::optional<std::uint32_t> device) {
    text += fmt::format("  {}{}: {{memory: {}{}, size: 256KiB}}\n", name, number, memory,
                        device ? fmt::format(", device: {}", *device) : "");
  };
  std::vector<std::uint32_t> devices(parts.buffer_sets);
  for (const RandomStream& stream : parts.streams) devices[stream.number] = stream.device;
  for (std::size_t g = 0; g < parts.graph_devices.size(); ++g) {
    devices[parts.buffer_sets - parts.graph_devices.size() + g] = parts.graph_devices[g];
  }
  for (std::uint32_t n = 0; n < parts.buffer_sets; ++n) {
    for (const char name : {'x', 'y', 'w', 'v'}) declare(name, n, "device", devices[n]);
    declare('r', n, "device", parts.devices - 1 - devices[n]);
    for (const char name : {'p', 'q'}) declare(name, n, "pinned", {});
    for (const char name : {'h', 'k'}) declare(name, n, "pageable", {});
  }
  for (std::uint32_t t = 0; t < parts.threads.size(); ++t) {
    for (const char name : {'m', 'n'}) declare(name, t, "pageable", {});
  }
  return text;
}

std::string head(const ProgramParts& parts, const std::string& name) {
  std::string text = fmt::format(
      "# A random program: generated, to hold an order against its timelines.\n"
      "schema_version: 1\nname: {}\nprocesses: {}\ndevices: {}\n",
      name, parts.processes, parts.devices);
  text += "streams:\n";
  for (const RandomStream& stream : parts.streams) {
    if (!stream.declared.empty()) text += fmt::format("  {}\n", stream.declared);
  }
  if (text.ends_with("streams:\n")) text += "  unused: {}\n";
  text += "events:\n";
  for (std::uint32_t e = 0; e < parts.events; ++e) text += fmt::format("  e{}: {{}}\n", e);
  for (std::size_t g = 0; g < parts.graph_devices.size(); ++g) {
    text += fmt::format("  f{}: {{timing: false}}\n  j{}: {{timing: false}}\n", g, g);
  }
  if (parts.signals > 0) text += "signals:\n";
  for (std::uint32_t s = 0; s < parts.signals; ++s) text += fmt::format("  z{}: {{}}\n", s);
  if (!parts.graph_devices.empty()) text += "graphs:\n";
  for (std::size_t g = 0; g < parts.graph_devices.size(); ++g)
    text += fmt::format("  g{}: {{}}\n", g);
  if (parts.processes > 1) text += "communicators: {world: {members: all_devices}}\n";
  return text + buffers(parts);
}

std::string body(const ProgramParts& parts) {
  std::string text = "threads:\n";
  for (std::size_t t = 0; t < parts.threads.size(); ++t) {
    text += fmt::format("  t{}:\n", t);
    const bool is_main = t == 0;
    if (is_main) text += "    - region:\n        name: all\n        ops:\n";
    for (const std::string& op : parts.threads[t]) {
      text += fmt::format("{}- {}\n", is_main ? "          " : "    ", op);
    }
    if (parts.threads[t].empty()) text += "    - host_compute: {duration: 1us}\n";
  }
  return text;
}

}  // namespace

std::string scenario_text(const ProgramParts& parts, const std::string& name) {
  return head(parts, name) + body(parts);
}

std::string threads_text(const std::vector<std::vector<std::string>>& of_processes) {
  std::string text = "threads:\n";
  for (std::size_t p = 0; p < of_processes.size(); ++p) {
    text += fmt::format("  process_{}:\n    process: {}\n    ops:\n", p, p);
    for (const std::string& op : of_processes[p]) text += fmt::format("      - {}\n", op);
  }
  return text;
}

std::vector<std::string> joined_by_all(std::uint32_t devices, std::uint32_t stream,
                                       const std::vector<std::string>& ops) {
  std::vector<std::string> all{
      fmt::format("event_record: {{stream: s{}(0), event: e(0)}}", stream)};
  for (std::uint32_t d = 1; d < devices; ++d) {
    all.push_back(fmt::format("stream_wait_event: {{stream: s{}({}), event: e(0)}}", stream, d));
  }
  all.insert(all.end(), ops.begin(), ops.end());
  for (std::uint32_t d = 1; d < devices; ++d) {
    all.push_back(fmt::format("event_record: {{stream: s{0}({1}), event: e({1})}}", stream, d));
    all.push_back(fmt::format("stream_wait_event: {{stream: s{}(0), event: e({})}}", stream, d));
  }
  return all;
}

}  // namespace foretrace::test
