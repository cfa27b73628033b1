// The environment settings that change what NCCL chooses, read as NCCL reads them. What NCCL would
// refuse, or would take for something that its author did not mean, is an error: see
// scenarios/program/environment.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/nccl/rules/types.h"

namespace foretrace::nccl {

/// How NCCL_ALGO and NCCL_PROTO leave one candidate: Default means "where NCCL thinks it safe".
enum class Enable : std::uint8_t { No, Yes, Default };

enum class Number : std::uint8_t {
  MinCtas,
  MaxCtas,
  MinChannels,
  MaxChannels,
  Threads,
  Ll128Threads,
  LlBuffer,
  Ll128Buffer,
  Buffer,
  P2pDisable,
  NvlsEnable,
  NvlsCtas,
  NvlsChunk,
  PatEnable,
  Ll128OverC2c,
  NetOverhead,
  ChannelsPerNetPeer,
  P2pNetChunk,
  P2pPciChunk,
  P2pNvlChunk,
  P2pLlThreshold,
  MinP2pChannels,
  MaxP2pChannels,
  ChunkSize,
  GraphMixing,
  GraphRegister,
  LocalRegister,
  LegacyCudaRegister,
  CuMem,
  Count_
};
inline constexpr std::size_t kNumbers = static_cast<std::size_t>(Number::Count_);

class Settings {
 public:
  Settings();
  /// "NCCL_PROTO=LL"; the last one of a name counts. Settings that change no choice (NCCL_DEBUG)
  /// are passed over. Throws UsageError.
  explicit Settings(const std::vector<std::string>& environment);

  bool operator==(const Settings&) const = default;

  bool has(Number setting) const { return numbers_[index_of(setting)].has_value(); }
  std::int64_t get(Number setting, std::int64_t otherwise) const {
    return numbers_[index_of(setting)].value_or(otherwise);
  }
  Enable enabled(Function function, Algorithm algorithm) const {
    return algorithms_[index_of(function)][index_of(algorithm)];
  }
  Enable enabled(Function function, Protocol protocol) const {
    return protocols_[index_of(function)][index_of(protocol)];
  }
  /// The longest path that GPUs may talk over directly, by NCCL_P2P_DISABLE or NCCL_P2P_LEVEL.
  std::optional<Path> p2p_level() const;

 private:
  void set(std::string_view name, std::string_view value);

  std::array<std::optional<std::int64_t>, kNumbers> numbers_;
  std::array<std::array<Enable, kAlgorithms>, kFunctions> algorithms_;
  std::array<std::array<Enable, kProtocols>, kFunctions> protocols_;
  std::optional<Path> p2p_level_;
};

/// The names that Settings understands: the predicted choice follows them.
std::vector<std::string> setting_names();

}  // namespace foretrace::nccl
