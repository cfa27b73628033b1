// NCCL's own words: versions, algorithms and protocols in its order, functions, GPU generations.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "scenarios/program/ops.h"

namespace foretrace::nccl {

/// In NCCL's order, which decides between equal prices.
enum class Algorithm : std::uint8_t {
  Tree,
  Ring,
  CollNetDirect,
  CollNetChain,
  Nvls,
  NvlsTree,
  Pat
};
enum class Protocol : std::uint8_t { LL, LL128, Simple };
constexpr bool is_nvls(Algorithm algorithm) {
  return algorithm == Algorithm::Nvls || algorithm == Algorithm::NvlsTree;
}
/// The functions NCCL prices; the others are made of sends and receives.
enum class Function : std::uint8_t { Broadcast, Reduce, AllGather, ReduceScatter, AllReduce };

inline constexpr std::uint32_t kMaxChannels = 64;  ///< src/include/device.h, MAXCHANNELS
inline constexpr std::uint64_t kBufferSteps = 8;   ///< src/include/device.h, NCCL_STEPS

constexpr std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

inline constexpr std::size_t kAlgorithms = 7;
inline constexpr std::size_t kProtocols = 3;
inline constexpr std::size_t kFunctions = 5;

template <class T>
using PerProtocol = std::array<T, kProtocols>;
template <class T>
using PerAlgorithm = std::array<PerProtocol<T>, kAlgorithms>;

template <class Enum>
constexpr std::size_t index_of(Enum value) {
  return static_cast<std::size_t>(value);
}

/// As NCCL_ALGO, NCCL_PROTO and NCCL's tables spell them.
std::string_view name_of(Algorithm algorithm);
std::string_view name_of(Protocol protocol);
std::string_view name_of(Function function);

/// The function NCCL prices for a collective that is not made of sends and receives.
Function function_of(CollectiveKind kind);
/// all_to_all, gather and scatter: one send and one receive per pair of ranks.
bool is_send_recv(CollectiveKind kind);

/// Rows of NCCL's tables.
enum class GpuGeneration : std::uint8_t { Volta, Ampere, Hopper, Blackwell };
inline constexpr std::size_t kGpuGenerations = 4;
std::string_view name_of(GpuGeneration generation);

/// Classes of paths, best first (nccl src/graph/topo.h).
enum class Path : std::uint8_t { Loc, Nvl, Nvb, C2c, Pix, Pxb, P2c, Pxn, Phb, Sys, Net, Dis };
inline constexpr std::size_t kPaths = 12;
std::string_view name_of(Path path);

struct Version {
  int major = 2;
  int minor = 28;
  int patch = 3;
  friend constexpr auto operator<=>(Version, Version) = default;
};

inline constexpr Version kOldest{2, 18, 3};  ///< whose rules are known

/// "2.28.3", or "2.28" for its first release that is known. Throws UsageError for text that is no
/// version and for versions whose rules are not known: known are 2.18.3 to 2.30.
Version parse_version(std::string_view text);
std::string text_of(Version version);

}  // namespace foretrace::nccl
