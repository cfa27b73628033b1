#include "reports/capture/trace_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <functional>

namespace foretrace::capture {
namespace {

constexpr std::int64_t kLatestUs = std::int64_t{1} << 52;  // of any clock, 142 years

struct CategoryKind {
  std::string_view category;  ///< in lower case
  EventKind kind;
};

constexpr std::array<CategoryKind, 13> kKinds{{{"kernel", EventKind::Kernel},
                                               {"gpu_memcpy", EventKind::Copy},
                                               {"memcpy", EventKind::Copy},
                                               {"gpu_memset", EventKind::Fill},
                                               {"memset", EventKind::Fill},
                                               {"cuda_runtime", EventKind::Call},
                                               {"cuda_driver", EventKind::Call},
                                               {"runtime", EventKind::Call},
                                               {"xpu_runtime", EventKind::Call},
                                               {"xpu_driver", EventKind::Call},
                                               {"mtia_runtime", EventKind::Call},
                                               {"mtia_ccp_events", EventKind::Kernel},
                                               {"privateuse1_runtime", EventKind::Call}}};

std::string lower(std::string_view text) {
  std::string word{text};
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
  return word;
}

bool has_digit(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

bool to_ns(std::string_view text, std::int64_t& ns) {
  std::int64_t us = 0;
  const char* const end = text.data() + text.size();
  const auto [point, error] = std::from_chars(text.data(), end, us);
  if (error != std::errc{} || us > kLatestUs || us < -kLatestUs) return false;
  std::int64_t fraction = 0;
  constexpr int kDigits = 3;
  const char* at = point;
  if (at != end && *at != '.') return false;  // exponents are no times
  if (at != end) ++at;
  for (int digit = 0; digit < kDigits; ++digit) {
    const bool has = at != end && *at >= '0' && *at <= '9';
    fraction = 10 * fraction + (has ? *at++ - '0' : 0);
  }
  if (std::any_of(at, end, [](char c) { return c < '0' || c > '9'; })) return false;
  ns = us * 1000 + (text.starts_with('-') ? -fraction : fraction);
  return true;
}

std::optional<EventKind> kind_of_event(std::string_view category, std::string_view name) {
  const std::string word = lower(category);
  if (name.starts_with("ProfilerStep") && (word == "user_annotation" || word == "operator")) {
    return EventKind::Iteration;
  }
  const auto* const found = std::ranges::find(kKinds, word, &CategoryKind::category);
  if (found == kKinds.end()) return std::nullopt;
  return found->kind;
}

bool is_sync_detail(std::string_view category) { return category == "cuda_sync"; }

bool is_of_host(std::string_view category) {
  constexpr std::array<std::string_view, 4> kHosts{"cpu_op", "operator", "user_annotation",
                                                   "python_function"};
  return std::ranges::find(kHosts, lower(category)) != kHosts.end();
}

std::int64_t lane_number(std::string_view text) {
  const std::size_t digits = std::min(text.size(), text.find_first_of("0123456789"));
  std::int64_t number = 0;
  const auto [rest, error] =
      std::from_chars(text.data() + digits, text.data() + text.size(), number);
  if (error == std::errc{} && has_digit(text)) return number;
  constexpr std::size_t kOthers = 1'000'000'000;
  return -1 - static_cast<std::int64_t>(std::hash<std::string_view>{}(text) % kOthers);
}

std::string shortened(std::string_view text) {
  constexpr std::size_t kMost = 60;
  if (text.size() <= kMost) return std::string{text};
  return fmt::format("{}... ({} characters)", text.substr(0, kMost), text.size());
}

}  // namespace foretrace::capture
