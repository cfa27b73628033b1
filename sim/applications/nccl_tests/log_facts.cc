#include "sim/applications/nccl_tests/log_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "models/nccl/rules/settings.h"
#include "models/nccl/rules/types.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/print.h"

namespace foretrace {
namespace {

bool is_of_name(char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

/// NAME and VALUE of "NCCL_ALGO=Tree" or "NCCL_ALGO set by environment to Tree"; empty without.
std::pair<std::string, std::string> setting_in(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && is_of_name(text[end])) ++end;
  std::string name{text.substr(0, end)};
  std::string_view rest = text.substr(end);
  constexpr std::string_view kSet = " set by environment to ";
  if (rest.starts_with('=')) {
    rest.remove_prefix(1);
  } else if (rest.starts_with(kSet)) {
    rest.remove_prefix(kSet.size());
  } else {
    return {};
  }
  if (rest.starts_with('"') || rest.starts_with('\'')) rest.remove_prefix(1);
  const std::size_t stop = rest.find_first_of(" \t\r\"'\\");
  std::string value{rest.substr(0, stop)};
  while (value.ends_with('.')) value.pop_back();
  return {std::move(name), std::move(value)};
}

}  // namespace

std::string release_of_code(std::uint32_t code) {
  constexpr std::uint32_t kTwoDigits = 10000;  // NCCL_VERSION, from 2.9 on
  const std::uint32_t major = code >= kTwoDigits ? code / kTwoDigits : code / 1000;
  const std::uint32_t rest = code >= kTwoDigits ? code % kTwoDigits : code % 1000;
  return fmt::format("{}.{}.{}", major, rest / 100, rest % 100);
}

std::string release_in(std::string_view line) {
  constexpr std::string_view kLibrary = "nccl-library=";
  if (const auto at = line.find(kLibrary); at != std::string_view::npos) {
    const char* const begin = line.data() + at + kLibrary.size();
    std::uint32_t code = 0;
    const auto [rest, error] = std::from_chars(begin, line.data() + line.size(), code);
    if (error == std::errc{} && code > 1000) return release_of_code(code);
  }
  constexpr std::string_view kVersion = "NCCL version ";
  const auto at = line.find(kVersion);
  if (at == std::string_view::npos || line.find("+hip") != std::string_view::npos) return {};
  if (at > 0 && line[at - 1] != ' ' && line[at - 1] != ':' && line[at - 1] != '\t') return {};
  const std::string_view rest = line.substr(at + kVersion.size());
  const std::string_view text = rest.substr(0, rest.find_first_not_of("0123456789."));
  return std::ranges::count(text, '.') == 2 && !text.ends_with('.') ? std::string{text} : "";
}

void LogFacts::note(const std::string& text) {
  if (said_.insert(text).second) print_error("note: {}", text);
}

void LogFacts::take_release(const std::string& release, int line) {
  if (release.empty()) return;
  try {
    release_ = nccl::text_of(nccl::parse_version(release));
  } catch (const UsageError&) {
    release_.clear();
    note(fmt::format("{}:{}: the rules of NCCL {} are not known; the machine's choose\n", file_,
                     line, release));
  }
}

void LogFacts::note_settings(std::string_view line, int number, const NcclTestsPlan& plan) {
  static const std::vector<std::string> kNames = nccl::setting_names();
  for (auto at = line.find("NCCL_"); at != std::string_view::npos;
       at = line.find("NCCL_", at + 1)) {
    if (at > 0 && is_of_name(line[at - 1])) continue;
    const auto [name, value] = setting_in(line.substr(at));
    if (value.empty() || std::ranges::find(kNames, name) == kNames.end()) continue;
    const auto given = plan.environment.find(name);
    if (given != plan.environment.end()) continue;
    if (!said_.insert(name).second) continue;
    print_error("note: {}:{}: it says {}={}, without which is predicted; --env {}={}\n", file_,
                number, name, value, name, value);
  }
}

void LogFacts::apply(NcclTestsPlan& plan) {
  if (release_.empty()) return;
  if (plan.nccl.empty()) {
    plan.nccl = release_;
  } else if (plan.nccl != release_) {
    note(fmt::format("{}: it says NCCL {}; {} chooses, as --nccl-version says\n", file_, release_,
                     plan.nccl));
  }
}

bool bandwidths_fit(const NcclTestsPlan& plan, double algorithm_gbps, double bus_gbps) {
  constexpr double kRounding = 0.016;  // GB/s: two digits are printed of both
  const auto is_bus = [&](double factor) {
    const double expected = algorithm_gbps * factor;
    return std::abs(bus_gbps - expected) <= kRounding + 1e-3 * expected;
  };
  const bool counted_apart =
      plan.op == NcclTestsOp::AllGather || plan.op == NcclTestsOp::ReduceScatter;
  return plan.ranks() < 2 || is_bus(bus_factor(plan.op, plan.ranks())) ||
         (counted_apart && is_bus(1));
}

}  // namespace foretrace
