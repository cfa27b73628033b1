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

namespace foretrace {

/// How NCCL_ALGO and NCCL_PROTO leave one candidate: Default means "where NCCL thinks it safe".
enum class NcclEnable : std::uint8_t { No, Yes, Default };

enum class NcclNumber : std::uint8_t {
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
  Count_
};
inline constexpr std::size_t kNcclNumbers = static_cast<std::size_t>(NcclNumber::Count_);

class NcclSettings {
 public:
  NcclSettings();
  /// "NCCL_PROTO=LL"; the last one of a name counts. Settings that change no choice (NCCL_DEBUG)
  /// are passed over. Throws UsageError.
  explicit NcclSettings(const std::vector<std::string>& environment);

  bool has(NcclNumber setting) const { return numbers_[nccl_index(setting)].has_value(); }
  std::int64_t get(NcclNumber setting, std::int64_t otherwise) const {
    return numbers_[nccl_index(setting)].value_or(otherwise);
  }
  NcclEnable enabled(NcclFunction function, NcclAlgorithm algorithm) const {
    return algorithms_[nccl_index(function)][nccl_index(algorithm)];
  }
  NcclEnable enabled(NcclFunction function, NcclProtocol protocol) const {
    return protocols_[nccl_index(function)][nccl_index(protocol)];
  }
  /// The longest path that GPUs may talk over directly, by NCCL_P2P_DISABLE or NCCL_P2P_LEVEL.
  std::optional<NcclPath> p2p_level() const;

 private:
  void set(std::string_view name, std::string_view value);

  std::array<std::optional<std::int64_t>, kNcclNumbers> numbers_;
  std::array<std::array<NcclEnable, kNcclAlgorithms>, kNcclFunctions> algorithms_;
  std::array<std::array<NcclEnable, kNcclProtocols>, kNcclFunctions> protocols_;
  std::optional<NcclPath> p2p_level_;
};

/// The names that NcclSettings understands: the predicted choice follows them.
std::vector<std::string> nccl_setting_names();

}  // namespace foretrace
