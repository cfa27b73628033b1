#include "scenarios/captured/record_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

#include "scenarios/base/text/words.h"

namespace foretrace::captured {

bool is_region_name(std::string_view name) {
  constexpr std::string_view kOthers = "_-./ ";
  return std::ranges::all_of(name, [&](unsigned char c) {
    return std::isalnum(c) != 0 || kOthers.find(static_cast<char>(c)) != std::string_view::npos;
  });
}

bool is_script_digest(std::string_view text) {
  constexpr std::size_t kDigits = 16;
  return text.empty() || (text.size() == kDigits &&
                          text.find_first_not_of("0123456789abcdef") == std::string_view::npos);
}

std::string why_no_product(const Call& call) {
  constexpr std::int64_t kLargestSide = 0x7fffffff;  // as cuBLAS takes it
  constexpr double kMostWork = 0x1p62;               // operations, bytes
  constexpr double kWidest = 16;                     // bytes of an element
  if (std::min({call.m, call.n, call.k, call.batch}) < 1) return "a product's sizes are 1 or more";
  if (std::max({call.m, call.n, call.k, call.batch}) > kLargestSide) {
    return "a product's sizes are below 2^31";
  }
  const auto m = static_cast<double>(call.m), n = static_cast<double>(call.n),
             k = static_cast<double>(call.k), batch = static_cast<double>(call.batch);
  const double work = std::max(2 * batch * m * n * k, kWidest * batch * (m * k + k * n + m * n));
  return work > kMostWork ? "a product that no GPU ends" : "";
}

std::string why_no_collective(const Call& call, const Record& record) {
  static const std::set<std::string_view> kCalls{
      "all_reduce", "broadcast", "reduce",  "all_gather", "reduce_scatter",
      "all_to_all", "gather",    "scatter", "send",       "recv"};
  static const std::set<std::string_view> kReductions{"sum", "prod", "min",
                                                      "max", "avg",  "premulsum"};
  const auto comm = record.comms.find(call.comm);
  if (comm == record.comms.end()) return "no such communicator";
  if (!kCalls.contains(call.function)) {
    return fmt::format("a collective of an unknown kind '{}'", shortened(call.function));
  }
  if (!kReductions.contains(call.reduction)) {
    return fmt::format("a reduction of an unknown kind '{}'", shortened(call.reduction));
  }
  for (const auto& rank : {call.root, call.peer}) {
    if (rank && (*rank < 0 || *rank >= comm->second.size)) {
      return "no such rank in the communicator";
    }
  }
  return {};
}

std::string why_backwards(const Call& call, std::int64_t& latest) {
  if (call.at < 0 || call.in_graph) return {};
  const bool is_back = call.at < latest && call.kind != "begin";  // times are since the begin
  const std::string why =
      is_back ? fmt::format("times go backwards: {} ns behind {} ns", call.at, latest) : "";
  latest = call.at;
  return why;
}

}  // namespace foretrace::captured
