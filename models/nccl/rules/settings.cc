#include "models/nccl/rules/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "scenarios/program/environment.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/words.h"

namespace foretrace::nccl {
namespace {

using enum Number;

constexpr std::array<std::pair<std::string_view, Number>, kNumbers> kNumberNames{{
    {"NCCL_MIN_CTAS", MinCtas},
    {"NCCL_MAX_CTAS", MaxCtas},
    {"NCCL_MIN_NCHANNELS", MinChannels},
    {"NCCL_MAX_NCHANNELS", MaxChannels},
    {"NCCL_NTHREADS", Threads},
    {"NCCL_LL128_NTHREADS", Ll128Threads},
    {"NCCL_LL_BUFFSIZE", LlBuffer},
    {"NCCL_LL128_BUFFSIZE", Ll128Buffer},
    {"NCCL_BUFFSIZE", Buffer},
    {"NCCL_P2P_DISABLE", P2pDisable},
    {"NCCL_NVLS_ENABLE", NvlsEnable},
    {"NCCL_NVLS_NCHANNELS", NvlsCtas},
    {"NCCL_NVLS_CHUNKSIZE", NvlsChunk},
    {"NCCL_PAT_ENABLE", PatEnable},
    {"NCCL_LL128_C2C", Ll128OverC2c},
    {"NCCL_NET_OVERHEAD", NetOverhead},
    {"NCCL_NCHANNELS_PER_NET_PEER", ChannelsPerNetPeer},
    {"NCCL_P2P_NET_CHUNKSIZE", P2pNetChunk},
    {"NCCL_P2P_PCI_CHUNKSIZE", P2pPciChunk},
    {"NCCL_P2P_NVL_CHUNKSIZE", P2pNvlChunk},
    {"NCCL_P2P_LL_THRESHOLD", P2pLlThreshold},
    {"NCCL_MIN_P2P_NCHANNELS", MinP2pChannels},
    {"NCCL_MAX_P2P_NCHANNELS", MaxP2pChannels},
    {"NCCL_CHUNK_SIZE", ChunkSize},
    {"NCCL_GRAPH_MIXING_SUPPORT", GraphMixing},
    {"NCCL_GRAPH_REGISTER", GraphRegister},
    {"NCCL_LOCAL_REGISTER", LocalRegister},
    {"NCCL_LEGACY_CUDA_REGISTER", LegacyCudaRegister},
    {"NCCL_CUMEM_ENABLE", CuMem},
}};

/// The index of `word`, which was checked, among the names of `Enum`'s `count` values.
template <class Enum>
std::size_t find_name(std::string_view word, std::size_t count) {
  std::size_t i = 0;
  while (i < count && lower(word) != lower(name_of(static_cast<Enum>(i)))) ++i;
  FORETRACE_CHECK(i < count, "a name that check_environment knows");
  return i;
}

/// nccl src/graph/tuning.cc, parseList: "ring,tree", "^LL128", "LL;allreduce:^LL;broadcast:LL128".
template <class Enum, std::size_t N>
void parse_lists(std::string_view value, std::array<std::array<Enable, N>, kFunctions>& lists) {
  for (const std::string_view entry : split(value, ';')) {
    const std::vector<std::string_view> halves = split(entry, ':');
    std::string_view names = halves.back();
    const bool excludes = names.starts_with('^');
    if (excludes) names.remove_prefix(1);
    std::array<Enable, N> list;
    list.fill(excludes ? Enable::Yes : Enable::No);
    for (const std::string_view name : split(names, ',')) {
      list[find_name<Enum>(name, N)] = excludes ? Enable::No : Enable::Yes;
    }
    if (halves.size() == 1) {
      lists.fill(list);
    } else {
      lists[find_name<Function>(halves[0], kFunctions)] = list;
    }
  }
}

/// nccl src/graph/paths.cc, ncclGetLevel: a name, or a digit in the older spelling.
Path parse_level(std::string_view value) {
  using enum Path;
  static constexpr std::array kOld{Loc, Pix, Pxb, Phb, Phb, Sys};
  if (value[0] >= '0' && value[0] <= '9') return kOld.at(static_cast<std::size_t>(value[0] - '0'));
  return static_cast<Path>(find_name<Path>(value, index_of(Sys) + 1));
}

}  // namespace

Settings::Settings() {
  for (auto& list : algorithms_) list.fill(Enable::Yes);
  // src/graph/tuning.cc: of the protocols only LL128 is not always safe.
  for (auto& list : protocols_) list = {Enable::Yes, Enable::Default, Enable::Yes};
}

Settings::Settings(const std::vector<std::string>& environment) : Settings{} {
  Environment all;
  for (const std::string& entry : environment) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UsageError{fmt::format("'{}' is not a setting\n  hint: write NAME=VALUE", entry)};
    }
    all[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  std::erase_if(all, [](const auto& one) { return one.second.empty(); });  // as if it were not set
  for (const EnvironmentProblem& wrong : check_environment(all)) {
    throw UsageError{wrong.message + (wrong.hint.empty() ? "" : "\n  hint: " + wrong.hint)};
  }
  for (const auto& [name, value] : all) set(name, value);
}

std::optional<Path> Settings::p2p_level() const {
  if (get(P2pDisable, 0) == 1) return Path::Loc;
  return p2p_level_;
}

void Settings::set(std::string_view name, std::string_view value) {
  if (name == "NCCL_ALGO") parse_lists<Algorithm>(value, algorithms_);
  if (name == "NCCL_PROTO") parse_lists<Protocol>(value, protocols_);
  if (name == "NCCL_P2P_LEVEL") p2p_level_ = parse_level(value);
  for (const auto& [number, setting] : kNumberNames) {
    if (name == number) numbers_[index_of(setting)] = environment_number(value);
  }
}

std::vector<std::string> setting_names() {
  std::vector<std::string> names{"NCCL_ALGO", "NCCL_PROTO", "NCCL_P2P_LEVEL"};
  for (const auto& [name, setting] : kNumberNames) names.emplace_back(name);
  return names;
}

}  // namespace foretrace::nccl
