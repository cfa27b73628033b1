#include "models/nccl_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>

#include "scenarios/diagnostic.h"
#include "scenarios/errors.h"

namespace foretrace {
namespace {

struct NumberName {
  std::string_view name;
  NcclNumber setting;
  std::int64_t least;
};

using enum NcclNumber;
constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::min();

// `least`: NCCL does not take a smaller value (src/init.cc, src/graph/connect.cc), or cannot work
// with it.
constexpr std::array<NumberName, kNcclNumbers> kNumbers{{
    {"NCCL_MIN_CTAS", MinCtas, 1},
    {"NCCL_MAX_CTAS", MaxCtas, 1},
    {"NCCL_MIN_NCHANNELS", MinChannels, 0},
    {"NCCL_MAX_NCHANNELS", MaxChannels, 1},
    {"NCCL_NTHREADS", Threads, kAny},
    {"NCCL_LL128_NTHREADS", Ll128Threads, kAny},
    {"NCCL_LL_BUFFSIZE", LlBuffer, 1024},
    {"NCCL_LL128_BUFFSIZE", Ll128Buffer, 16384},
    {"NCCL_BUFFSIZE", Buffer, 4096},
    {"NCCL_P2P_DISABLE", P2pDisable, 0},
    {"NCCL_NVLS_ENABLE", NvlsEnable, 0},
    {"NCCL_NVLS_NCHANNELS", NvlsCtas, 1},
    {"NCCL_NVLS_CHUNKSIZE", NvlsChunk, 512},
    {"NCCL_PAT_ENABLE", PatEnable, 0},
    {"NCCL_LL128_C2C", Ll128OverC2c, 0},
    {"NCCL_NET_OVERHEAD", NetOverhead, 0},
    {"NCCL_NCHANNELS_PER_NET_PEER", ChannelsPerNetPeer, 1},
    {"NCCL_P2P_NET_CHUNKSIZE", P2pNetChunk, 1024},
    {"NCCL_P2P_PCI_CHUNKSIZE", P2pPciChunk, 1024},
    {"NCCL_P2P_NVL_CHUNKSIZE", P2pNvlChunk, 1024},
    {"NCCL_P2P_LL_THRESHOLD", P2pLlThreshold, 0},
    {"NCCL_MIN_P2P_NCHANNELS", MinP2pChannels, 1},
    {"NCCL_MAX_P2P_NCHANNELS", MaxP2pChannels, 1},
    {"NCCL_CHUNK_SIZE", ChunkSize, 0},
    {"NCCL_COLLNET_ENABLE", CollNetEnable, 0},
}};

[[noreturn]] void refuse(std::string_view name, std::string_view value, const std::string& why,
                         const std::string& hint = {}) {
  throw UsageError{fmt::format("{}={}: {}{}", name, value, why,
                               hint.empty() ? "" : fmt::format("\n  hint: {}", hint))};
}

std::int64_t parse_number(const NumberName& number, std::string_view value) {
  std::int64_t parsed = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
  if (error != std::errc{} || end != value.data() + value.size()) {
    refuse(number.name, value, "not a whole number", "NCCL knows no units here: 4 MiB is 4194304");
  }
  if (parsed < number.least) {
    refuse(number.name, value, fmt::format("the least that NCCL takes is {}", number.least));
  }
  return parsed;
}

std::string lower(std::string_view text) {
  std::string result{text};
  std::ranges::transform(result, result.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  return result;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    if (!text.substr(0, at).empty()) parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

/// The index of `word` among the names of `Enum`'s `count` values, in any case.
template <class Enum>
std::size_t find_name(std::string_view variable, std::string_view value, std::string_view word,
                      std::size_t count, std::string_view what) {
  std::vector<std::string> known;
  for (std::size_t i = 0; i < count; ++i) {
    known.emplace_back(name_of(static_cast<Enum>(i)));
    if (lower(word) == lower(known.back())) return i;
  }
  refuse(variable, value, fmt::format("NCCL knows no {} '{}'", what, word), suggest(word, known));
}

/// nccl src/graph/tuning.cc, parseList: "ring,tree", "^LL128", "LL;allreduce:^LL;broadcast:LL128".
template <class Enum, std::size_t N>
void parse_lists(std::string_view variable, std::string_view value, std::string_view what,
                 std::array<std::array<NcclEnable, N>, kNcclFunctions>& lists) {
  bool first = true;
  for (const std::string_view entry : split(value, ';')) {
    const std::vector<std::string_view> halves = split(entry, ':');
    if (halves.empty() || (halves.size() == 1 && !first)) {
      refuse(variable, value, "every entry but the first must name its function",
             "for example allreduce:ring;broadcast:ring");
    }
    std::string_view names = halves.back();
    if (halves.size() > 1) names = halves[1];
    const bool excludes = names.starts_with('^');
    if (excludes) names.remove_prefix(1);
    std::array<NcclEnable, N> list;
    list.fill(excludes ? NcclEnable::Yes : NcclEnable::No);
    for (const std::string_view name : split(names, ',')) {
      list[find_name<Enum>(variable, value, name, N, what)] =
          excludes ? NcclEnable::No : NcclEnable::Yes;
    }
    if (halves.size() == 1) {
      lists.fill(list);
    } else {
      lists[find_name<NcclFunction>(variable, value, halves[0], kNcclFunctions, "function")] = list;
    }
    first = false;
  }
}

/// nccl src/graph/paths.cc, ncclGetLevel.
NcclPath parse_level(std::string_view value) {
  std::vector<std::string> known;
  for (std::size_t i = 0; i <= nccl_index(NcclPath::Sys); ++i) {
    known.emplace_back(name_of(static_cast<NcclPath>(i)));
    if (value == known.back()) return static_cast<NcclPath>(i);
  }
  // The older spelling is a digit.
  using enum NcclPath;
  static constexpr std::array kOld{Loc, Pix, Pxb, Phb, Phb, Sys};
  if (value.size() == 1 && value[0] >= '0' && value[0] <= '9') {
    return kOld[std::min<std::size_t>(static_cast<std::size_t>(value[0] - '0'), kOld.size() - 1)];
  }
  refuse("NCCL_P2P_LEVEL", value, "not a kind of path", suggest(value, known));
}

}  // namespace

NcclSettings::NcclSettings() {
  for (auto& list : algorithms_) list.fill(NcclEnable::Yes);
  // src/graph/tuning.cc: of the protocols only LL128 is not always safe.
  for (auto& list : protocols_) list = {NcclEnable::Yes, NcclEnable::Default, NcclEnable::Yes};
}

NcclSettings::NcclSettings(const std::vector<std::string>& environment) : NcclSettings{} {
  for (const std::string& entry : environment) set(entry);
}

std::optional<NcclPath> NcclSettings::p2p_level() const {
  if (get(P2pDisable, 0) == 1) return NcclPath::Loc;
  return p2p_level_;
}

void NcclSettings::set(const std::string& entry) {
  const std::size_t equals = entry.find('=');
  if (equals == std::string::npos) {
    throw UsageError{fmt::format("'{}' is not a setting\n  hint: write NAME=VALUE", entry)};
  }
  const std::string_view name = std::string_view{entry}.substr(0, equals);
  const std::string_view value = std::string_view{entry}.substr(equals + 1);
  if (value.empty()) return;  // as if it were not set
  if (name == "NCCL_ALGO") parse_lists<NcclAlgorithm>(name, value, "algorithm", algorithms_);
  if (name == "NCCL_PROTO") parse_lists<NcclProtocol>(name, value, "protocol", protocols_);
  if (name == "NCCL_P2P_LEVEL") p2p_level_ = parse_level(value);
  const auto number = std::ranges::find(kNumbers, name, &NumberName::name);
  if (number != kNumbers.end())
    numbers_[nccl_index(number->setting)] = parse_number(*number, value);
}

std::vector<std::string> nccl_setting_names() {
  std::vector<std::string> names{"NCCL_ALGO", "NCCL_PROTO", "NCCL_P2P_LEVEL"};
  for (const NumberName& number : kNumbers) names.emplace_back(number.name);
  return names;
}

}  // namespace foretrace
