#include "hw/host/host_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace foretrace::hw {
namespace {

struct Scale {
  double least;
  const char* name;
};

std::string scaled(double value, std::initializer_list<Scale> scales) {
  for (const Scale& scale : scales) {
    if (value >= scale.least) return fmt::format("{:.4g} {}", value / scale.least, scale.name);
  }
  return fmt::format("{:.4g} {}", value / (scales.end() - 1)->least, (scales.end() - 1)->name);
}

std::string value_of(double value, MeasuredUnit unit) {
  switch (unit) {
    case MeasuredUnit::Time:
      return scaled(value, {{1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}});
    case MeasuredUnit::Rate:
      return scaled(value, {{1e9, "GB/s"}, {1e6, "MB/s"}});
    case MeasuredUnit::FlopRate:
      return scaled(value, {{1e9, "GFLOP/s"}, {1e6, "MFLOP/s"}});
    case MeasuredUnit::Clock:
      return scaled(value, {{1e9, "GHz"}, {1e6, "MHz"}});
    case MeasuredUnit::Size:
      return fmt::format("{:.0f}KiB", value / 1024);
    case MeasuredUnit::Ratio:
      break;
  }
  return fmt::format("{:.4g}", value);
}

/// As one YAML scalar, whatever the system says.
std::string quoted(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ') continue;
    safe += c;
  }
  return '"' + safe + '"';
}

std::string spread_text(double spread) { return fmt::format("{:.1f}%", spread * 100); }

std::string facts_text(const HostFile& file) {
  const HostSystem& system = file.system;
  std::string text = "facts:\n";
  const auto say = [&](const char* key, const std::string& value, const char* source) {
    text += fmt::format("  {}: {{value: {}, source: {}}}\n", key, value, source);
  };
  say("sockets", fmt::format("{}", system.sockets), "system");
  say("cores", fmt::format("{}", system.cores), "system");
  say("numa_nodes", fmt::format("{}", system.numa_nodes), "system");
  constexpr std::uint64_t kMebi = std::uint64_t{1} << 20;
  if (system.memory > kMebi) {
    say("memory", fmt::format("{}MiB", system.memory / kMebi), "system");
  }
  for (const Measured& one : file.measured) {
    if (one.value <= 0) continue;
    if (one.quantity.key == "host.memory_bandwidth") {
      say("memory_bandwidth", value_of(one.value, MeasuredUnit::Rate), "measured");
    }
    if (one.quantity.key == "clock of a core alone") {
      say("clock", value_of(one.value, MeasuredUnit::Clock), "measured");
    }
  }
  return text;
}

std::string parameters_text(const HostFile& file) {
  const HostSystem& system = file.system;
  constexpr std::uint64_t kKibi = 1024;
  std::string text =
      fmt::format("parameters:\n  host.cores: {{value: {}, source: system}}\n", system.cores);
  const auto cache = [&](const char* key, std::uint64_t bytes) {
    if (bytes >= kKibi) {
      text += fmt::format("  {}: {{value: {}KiB, source: system}}\n", key, bytes / kKibi);
    }
  };
  cache("node.core_cache", system.core_cache);
  cache("node.host_cache", system.last_cache);
  for (const Measured& one : file.measured) {
    if (!is_parameter(one.quantity) || one.value <= 0) continue;
    text += fmt::format("  {}: {{value: {}, source: measured, spread: {}}}\n", one.quantity.key,
                        value_of(one.value, one.quantity.unit), spread_text(one.spread));
  }
  return text;
}

std::string others_text(const HostFile& file) {
  std::string text = "measured:  # for people; no prediction reads it\n";
  for (const Measured& one : file.measured) {
    if (is_parameter(one.quantity) || one.value <= 0) continue;
    const std::string size =
        one.quantity.size.empty() ? "" : fmt::format("size: {}, ", one.quantity.size);
    text += fmt::format("  - {{what: {}, {}value: {}, spread: {}}}\n", quoted(one.quantity.key),
                        size, value_of(one.value, one.quantity.unit), spread_text(one.spread));
  }
  return text;
}

std::string sources_text(const HostFile& file) {
  const HostSystem& system = file.system;
  std::size_t samples = 0;
  for (const Measured& one : file.measured) samples = std::max(samples, one.samples);
  const std::string gpu =
      file.gpu.empty() ? "no GPU" : fmt::format("{}, driver {}", file.gpu, file.driver);
  const std::string pages = system.huge_pages.empty() ? "not known" : system.huge_pages;
  return fmt::format(
      "sources:\n"
      "  system: {{class: datasheet, text: {}}}\n"
      "  measured:\n"
      "    class: fit\n"
      "    text: {}\n"
      "    learned_from: [{{other: \"this host\"}}]\n"
      "    command: \"foretrace-hw host -o host.yaml\"\n",
      quoted(
          fmt::format("/proc and /sys of this host: {} NUMA nodes, {} threads a core, transparent "
                      "huge pages: {}",
                      system.numa_nodes, system.threads_per_core, pages)),
      quoted(fmt::format("{}: {} rounds, {}", file.date, samples, gpu)));
}

}  // namespace

bool is_parameter(const Quantity& quantity) {
  constexpr std::array<std::string_view, 3> kFamilies{"host.", "copy.", "node."};
  return std::ranges::any_of(kFamilies, [&](std::string_view family) {
    return std::string_view{quantity.key}.starts_with(family);
  });
}

std::string host_file_text(const HostFile& file) {
  const HostSystem& system = file.system;
  std::string text = "schema_version: 1\n";
  text += fmt::format("summary: {}\n",
                      quoted(fmt::format("{}, {} cores", system.cpu.empty() ? "a host" : system.cpu,
                                         system.cores)));
  if (!system.vendor.empty()) text += fmt::format("cpu: {}\n", system.vendor);
  return text + facts_text(file) + parameters_text(file) + others_text(file) + sources_text(file);
}

}  // namespace foretrace::hw
