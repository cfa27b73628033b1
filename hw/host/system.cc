#include "hw/host/system.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>
#include <string_view>

#include "hw/execute/cpu_team.h"
#include "scenarios/base/text/text_file.h"

namespace foretrace::hw {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostOfProc = std::size_t{4} << 20;
constexpr std::size_t kMostOfSys = 4096;

std::string text_of(const fs::path& file, std::size_t most = kMostOfSys) {
  std::string text = read_plain_file(file, most).value_or("");
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) {
    text.pop_back();
  }
  return text;
}

std::uint64_t number_in(std::string_view text) {
  while (!text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) == 0) {
    text.remove_prefix(1);
  }
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// The values of the lines "key : value".
std::vector<std::string> values_of(std::string_view text, std::string_view key) {
  std::vector<std::string> values;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t colon = line.find(':');
    if (!line.starts_with(key) || colon == line.npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    values.emplace_back(begin == line.npos ? "" : line.substr(begin));
  }
  return values;
}

std::string vendor_of(const std::string& id, const std::string& text) {
  if (id == "GenuineIntel") return "intel";
  if (id == "AuthenticAMD") return "amd";
  return values_of(text, "CPU implementer").empty() ? "" : "arm";
}

/// "2048K" of a cache of this level; unified or of data.
std::uint64_t cache_of(const fs::path& cpu, std::uint64_t level) {
  for (int i = 0; i < 8; ++i) {
    const fs::path cache = cpu / "cache" / ("index" + std::to_string(i));
    if (number_in(text_of(cache / "level")) != level) continue;
    if (text_of(cache / "type") == "Instruction") continue;
    const std::string size = text_of(cache / "size");
    constexpr std::uint64_t kKibi = 1024;
    const std::uint64_t unit = size.ends_with('M') ? kKibi * kKibi : kKibi;
    return number_in(size) * unit;
  }
  return 0;
}

/// "always [madvise] never" -> "madvise"
std::string chosen(const std::string& text) {
  const std::size_t begin = text.find('[');
  const std::size_t end = text.find(']');
  if (begin == text.npos || end == text.npos || end < begin) return "";
  return text.substr(begin + 1, end - begin - 1);
}

}  // namespace

std::uint32_t count_of_list(const std::string& list) {
  std::uint32_t count = 0;
  std::string_view left = list;
  while (!left.empty()) {
    const std::size_t comma = std::min(left.find(','), left.size());
    const std::string_view part = left.substr(0, comma);
    left.remove_prefix(std::min(comma + 1, left.size()));
    const std::size_t dash = part.find('-');
    const std::uint64_t first = number_in(part);
    const std::uint64_t last = dash == part.npos ? first : number_in(part.substr(dash));
    if (part.empty() || std::isdigit(static_cast<unsigned char>(part.front())) == 0) return 0;
    if (last < first) return 0;
    count += static_cast<std::uint32_t>(last - first + 1);
  }
  return count;
}

HostSystem read_system(const fs::path& root) {
  HostSystem system;
  const std::string cpus = text_of(root / "proc/cpuinfo", kMostOfProc);
  const auto models = values_of(cpus, "model name");
  const auto ids = values_of(cpus, "vendor_id");
  if (!models.empty()) system.cpu = models.front();
  system.vendor = vendor_of(ids.empty() ? "" : ids.front(), cpus);
  const auto packages = values_of(cpus, "physical id");
  system.sockets = static_cast<std::uint32_t>(
      std::max<std::size_t>(1, std::set<std::string>{packages.begin(), packages.end()}.size()));
  system.cores = cores_of_this_process();
  const auto memory = values_of(text_of(root / "proc/meminfo", kMostOfProc), "MemTotal");
  constexpr std::uint64_t kKibi = 1024;
  if (!memory.empty()) system.memory = number_in(memory.front()) * kKibi;
  const fs::path cpu = root / "sys/devices/system/cpu/cpu0";
  system.numa_nodes = std::max(1U, count_of_list(text_of(root / "sys/devices/system/node/online")));
  system.threads_per_core =
      std::max(1U, count_of_list(text_of(cpu / "topology/thread_siblings_list")));
  system.core_cache = cache_of(cpu, 2);
  system.last_cache = cache_of(cpu, 3);
  system.huge_pages = chosen(text_of(root / "sys/kernel/mm/transparent_hugepage/enabled"));
  return system;
}

}  // namespace foretrace::hw
