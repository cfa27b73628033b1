#include "scenarios/program/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "scenarios/program/environment_rules.h"
#include "scenarios/base/text/diagnostic.h"
#include "scenarios/base/text/words.h"

namespace foretrace {
namespace {

using Words = std::vector<std::string>;

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
    case Kind::NoPlugin:
      if (value == "none") return {};
      return Wrong{"a plugin is a library of its own, and what it does is not known here",
                   "none; NCCL_ALGO and NCCL_PROTO say what a tuner would choose"};
    case Kind::Text:
      break;
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

EnvironmentProblem unknown_variable(const std::string& name) {
  const auto refused = std::ranges::find(kRefused, name, &RefusedVariable::name);
  if (refused != kRefused.end()) {
    return {name, fmt::format("'{}' {}", name, refused->why), refused->hint};
  }
  // Names in which more than a letter or two differ are other variables, not mistyped ones.
  constexpr std::size_t kTypo = 2;
  std::vector<std::string> near;
  for (const std::string& known : environment_names()) {
    if (edit_distance(name, known) <= kTypo) near.push_back(known);
  }
  std::string hint = suggest(name, near);
  if (hint.empty() && !name.starts_with("NCCL_") && !name.starts_with("CUDA_")) {
    hint = "those of CUDA and NCCL are";
  }
  return {name, fmt::format("'{}' is not among the variables a scenario may set", name), hint};
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

bool blocks_launches(const Environment& environment) {
  const auto blocking = environment.find("CUDA_LAUNCH_BLOCKING");
  return blocking != environment.end() && blocking->second == "1";
}

}  // namespace foretrace
