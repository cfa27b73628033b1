#include "scenarios/program/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "scenarios/text/diagnostic.h"
#include "scenarios/text/words.h"

namespace foretrace {
namespace {

using Words = std::vector<std::string>;

enum class Kind : std::uint8_t { Number, Algorithms, Protocols, Path, Loading, Queues, Launch };

struct Rule {
  const char* name;
  Kind kind = Kind::Number;
  std::int64_t least = 0;
  std::int64_t most = 1;
  std::int64_t multiple = 1;
};

constexpr std::int64_t kMaxChannels = 64;  // nccl src/include/device.h, MAXCHANNELS
constexpr std::int64_t kMaxInt = std::numeric_limits<std::int32_t>::max();

// CUDA: C++ Programming Guide, CUDA Environment Variables. NCCL 2.28: src/init.cc,
// src/graph/tuning.cc, connect.cc and paths.cc, src/transport/nvls.cc; a least of a buffer or
// chunk is what NCCL can still work with.
constexpr std::array kRules{
    Rule{"CUDA_DEVICE_MAX_CONNECTIONS", Kind::Number, 1, 32},
    Rule{"CUDA_DEVICE_MAX_COPY_CONNECTIONS", Kind::Number, 1, 32},
    Rule{"CUDA_LAUNCH_BLOCKING"},
    Rule{"CUDA_MODULE_LOADING", Kind::Loading},
    Rule{"CUDA_SCALE_LAUNCH_QUEUES", Kind::Queues},
    Rule{"NCCL_ALGO", Kind::Algorithms},
    Rule{"NCCL_PROTO", Kind::Protocols},
    Rule{"NCCL_MIN_CTAS", Kind::Number, 1, kMaxChannels},
    Rule{"NCCL_MAX_CTAS", Kind::Number, 1, kMaxChannels},
    Rule{"NCCL_MIN_NCHANNELS", Kind::Number, 0, kMaxChannels},
    Rule{"NCCL_MAX_NCHANNELS", Kind::Number, 1, kMaxChannels},
    Rule{"NCCL_NTHREADS", Kind::Number, 64, 512, 32},
    Rule{"NCCL_LL128_NTHREADS", Kind::Number, 160, 640, 32},
    Rule{"NCCL_LL_BUFFSIZE", Kind::Number, 1024, kMaxInt},
    Rule{"NCCL_LL128_BUFFSIZE", Kind::Number, 16384, kMaxInt},
    Rule{"NCCL_BUFFSIZE", Kind::Number, 4096, kMaxInt},
    Rule{"NCCL_P2P_DISABLE"},
    Rule{"NCCL_P2P_LEVEL", Kind::Path},
    Rule{"NCCL_P2P_NET_CHUNKSIZE", Kind::Number, 1024, kMaxInt},
    Rule{"NCCL_P2P_PCI_CHUNKSIZE", Kind::Number, 1024, kMaxInt},
    Rule{"NCCL_P2P_NVL_CHUNKSIZE", Kind::Number, 1024, kMaxInt},
    Rule{"NCCL_P2P_LL_THRESHOLD", Kind::Number, 0, kMaxInt},
    Rule{"NCCL_P2P_DIRECT_DISABLE"},
    Rule{"NCCL_P2P_USE_CUDA_MEMCPY"},
    Rule{"NCCL_P2P_PXN_LEVEL", Kind::Number, 0, 2},
    Rule{"NCCL_MIN_P2P_NCHANNELS", Kind::Number, 1, kMaxChannels},
    Rule{"NCCL_MAX_P2P_NCHANNELS", Kind::Number, 1, kMaxChannels},
    Rule{"NCCL_NCHANNELS_PER_NET_PEER", Kind::Number, 1, kMaxChannels},
    Rule{"NCCL_CHUNK_SIZE", Kind::Number, 0, kMaxInt},
    Rule{"NCCL_NVLS_ENABLE", Kind::Number, 0, 2},
    Rule{"NCCL_NVLS_NCHANNELS", Kind::Number, 1, kMaxChannels},
    Rule{"NCCL_NVLS_CHUNKSIZE", Kind::Number, 512, kMaxInt},
    Rule{"NCCL_NVLSTREE_MAX_CHUNKSIZE", Kind::Number, 512, kMaxInt},
    Rule{"NCCL_PAT_ENABLE", Kind::Number, 0, 2},
    Rule{"NCCL_LL128_C2C"},
    Rule{"NCCL_COLLNET_ENABLE"},
    Rule{"NCCL_NET_OVERHEAD", Kind::Number, 0, kMaxInt},
    Rule{"NCCL_NET_GDR_LEVEL", Kind::Path},
    Rule{"NCCL_CROSS_NIC", Kind::Number, 0, 2},
    Rule{"NCCL_PXN_DISABLE"},
    Rule{"NCCL_NVB_DISABLE"},
    Rule{"NCCL_SHM_DISABLE"},
    Rule{"NCCL_CUMEM_ENABLE"},
    Rule{"NCCL_CGA_CLUSTER_SIZE", Kind::Number, 0, 8},
    Rule{"NCCL_GRAPH_MIXING_SUPPORT"},
    Rule{"NCCL_GRAPH_REGISTER"},
    Rule{"NCCL_LOCAL_REGISTER"},
    Rule{"NCCL_LEGACY_CUDA_REGISTER"},
    Rule{"NCCL_LAUNCH_MODE", Kind::Launch},
    Rule{"NCCL_LAUNCH_ORDER_IMPLICIT"},
    Rule{"NCCL_RUNTIME_CONNECT"},
};

// A name of the first cannot be more than that of the second.
constexpr std::array<std::pair<const char*, const char*>, 3> kOrdered{
    {{"NCCL_MIN_CTAS", "NCCL_MAX_CTAS"},
     {"NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS"},
     {"NCCL_MIN_P2P_NCHANNELS", "NCCL_MAX_P2P_NCHANNELS"}}};

struct Wrong {
  std::string what, hint;
};

bool is_known(std::string_view word, const Words& known) {
  return std::ranges::any_of(known,
                             [&](const std::string& name) { return lower(word) == lower(name); });
}

std::optional<Wrong> unknown(std::string_view what, std::string_view word, const Words& known) {
  Words in_lower_case;
  for (const std::string& name : known) in_lower_case.push_back(lower(name));
  std::string hint = suggest(lower(word), in_lower_case);
  if (!hint.starts_with("did you mean")) hint = suggest("", known);
  for (const std::string& name : known) {
    if (hint == fmt::format("did you mean '{}'?", lower(name))) {
      hint = fmt::format("did you mean '{}'?", name);
    }
  }
  return Wrong{fmt::format("NCCL knows no {} '{}'", what, word), hint};
}

std::optional<Wrong> check_number(const Rule& rule, std::string_view value) {
  const std::optional<std::int64_t> number = environment_number(value);
  const bool is_switch = rule.least == 0 && rule.most == 1;
  if (!number) {
    return Wrong{"not a whole number", is_switch              ? "0 or 1"
                                       : rule.most == kMaxInt ? "no units here: 4 MiB is 4194304"
                                                              : ""};
  }
  const bool fits = *number >= rule.least && *number <= rule.most && *number % rule.multiple == 0;
  if (fits) return {};
  const std::string_view who = std::string_view{rule.name}.substr(0, 4);
  if (is_switch) return Wrong{fmt::format("{} takes 0 or 1", who), ""};
  if (rule.most == kMaxInt) {
    return Wrong{fmt::format("the {} that {} takes is {}", *number < rule.least ? "least" : "most",
                             who, *number < rule.least ? rule.least : rule.most),
                 ""};
  }
  return Wrong{
      fmt::format("{} takes {}{} to {}", who,
                  rule.multiple > 1 ? fmt::format("multiples of {} from ", rule.multiple) : "",
                  rule.least, rule.most),
      ""};
}

/// nccl src/graph/tuning.cc, parseList: "ring,tree", "^LL128", "LL;allreduce:^LL;broadcast:LL128".
std::optional<Wrong> check_lists(std::string_view value, std::string_view what,
                                 const Words& known) {
  static const Words kFunctions{"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"};
  bool first = true;
  for (const std::string_view entry : split(value, ';')) {
    const std::vector<std::string_view> halves = split(entry, ':');
    if (halves.empty() || (halves.size() == 1 && !first)) {
      return Wrong{"every entry but the first must name its function",
                   "for example allreduce:ring;broadcast:ring"};
    }
    if (halves.size() > 2) {
      return Wrong{fmt::format("'{}' has more than one ':', and NCCL reads one", entry),
                   "for example allreduce:ring,tree;broadcast:ring"};
    }
    if (halves.size() == 2 && !is_known(halves[0], kFunctions)) {
      return unknown("function", halves[0], kFunctions);
    }
    std::string_view list = halves.back();
    if (list.starts_with('^')) list.remove_prefix(1);
    const std::vector<std::string_view> names = split(list, ',');
    if (names.empty()) return Wrong{fmt::format("'{}' names no {}", entry, what), ""};
    for (const std::string_view name : names) {
      if (!is_known(name, known)) return unknown(what, name, known);
    }
    first = false;
  }
  if (first) return Wrong{fmt::format("names no {}", what), ""};
  return {};
}

/// nccl src/graph/paths.cc, ncclGetLevel: a name, or a digit in the older spelling.
std::optional<Wrong> check_path(std::string_view value) {
  static const Words kPaths{"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS"};
  if (std::ranges::count(kPaths, value) != 0) return {};
  if (value.size() == 1 && value[0] >= '0' && value[0] <= '5') return {};
  return Wrong{"not a kind of path", suggest(value, kPaths)};
}

std::optional<Wrong> check_word(std::string_view value, const Words& known) {
  if (std::ranges::count(known, value) != 0) return {};
  return Wrong{"there is no such choice", suggest(value, known)};
}

std::optional<Wrong> check_value(const Rule& rule, std::string_view value) {
  static const Words kAlgorithms{"Tree",     "Ring", "CollNetDirect", "CollNetChain", "NVLS",
                                 "NVLSTree", "PAT"};
  static const Words kProtocols{"LL", "LL128", "Simple"};
  switch (rule.kind) {
    case Kind::Number:
      return check_number(rule, value);
    case Kind::Algorithms:
      return check_lists(value, "algorithm", kAlgorithms);
    case Kind::Protocols:
      return check_lists(value, "protocol", kProtocols);
    case Kind::Path:
      return check_path(value);
    case Kind::Loading:
      return check_word(value, {"DEFAULT", "LAZY", "EAGER"});
    case Kind::Queues:
      return check_word(value, {"0.25x", "0.5x", "2x", "4x"});
    case Kind::Launch:
      return check_word(value, {"PARALLEL", "GROUP"});
  }
  return {};
}

}  // namespace

const std::vector<std::string>& environment_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const Rule& rule : kRules) names.emplace_back(rule.name);
    return names;
  }();
  return kNames;
}

std::vector<EnvironmentProblem> check_environment(const Environment& environment) {
  std::vector<EnvironmentProblem> problems;
  for (const auto& [name, value] : environment) {
    const auto rule = std::ranges::find(kRules, name, &Rule::name);
    if (rule == kRules.end()) continue;
    if (const auto wrong = check_value(*rule, value)) {
      problems.push_back({name, fmt::format("{}={}: {}", name, value, wrong->what), wrong->hint});
    }
  }
  if (!problems.empty()) return problems;
  for (const auto& [smaller, larger] : kOrdered) {
    const auto least = environment.find(smaller);
    const auto most = environment.find(larger);
    if (least == environment.end() || most == environment.end()) continue;
    if (*environment_number(least->second) <= *environment_number(most->second)) continue;
    problems.push_back(
        {smaller,
         fmt::format("{}={} is more than {}={}", smaller, least->second, larger, most->second),
         ""});
  }
  return problems;
}

std::optional<std::int64_t> environment_number(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  } else if (text.size() > 1 && text.starts_with('0')) {
    base = 8;
  }
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc{} || rest != end || text.starts_with('-')) return std::nullopt;
  return negative ? -value : value;
}

}  // namespace foretrace
