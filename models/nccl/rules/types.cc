#include "models/nccl/rules/types.h"

#include <fmt/format.h>

#include <charconv>

#include "scenarios/base/text/errors.h"

namespace foretrace::nccl {

std::string_view name_of(Algorithm algorithm) {
  static constexpr std::array<std::string_view, kAlgorithms> kNames{
      "Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"};
  return kNames[index_of(algorithm)];
}

std::string_view name_of(Protocol protocol) {
  static constexpr PerProtocol<std::string_view> kNames{"LL", "LL128", "Simple"};
  return kNames[index_of(protocol)];
}

std::string_view name_of(Function function) {
  static constexpr std::array<std::string_view, kFunctions> kNames{
      "Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"};
  return kNames[index_of(function)];
}

std::string_view name_of(GpuGeneration generation) {
  static constexpr std::array<std::string_view, kGpuGenerations> kNames{"Volta", "Ampere", "Hopper",
                                                                        "Blackwell"};
  return kNames[index_of(generation)];
}

std::string_view name_of(Path path) {
  static constexpr std::array<std::string_view, kPaths> kNames{
      "LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};
  return kNames[index_of(path)];
}

Function function_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::AllReduce:
      return Function::AllReduce;
    case CollectiveKind::Broadcast:
      return Function::Broadcast;
    case CollectiveKind::Reduce:
      return Function::Reduce;
    case CollectiveKind::AllGather:
      return Function::AllGather;
    case CollectiveKind::ReduceScatter:
      return Function::ReduceScatter;
    case CollectiveKind::AllToAll:
    case CollectiveKind::Gather:
    case CollectiveKind::Scatter:
      break;
  }
  FORETRACE_CHECK(false, "a collective that NCCL prices");
}

bool is_send_recv(CollectiveKind kind) {
  return kind == CollectiveKind::AllToAll || kind == CollectiveKind::Gather ||
         kind == CollectiveKind::Scatter;
}

Version parse_version(std::string_view text) {
  std::array<int, 3> parts{0, 0, 0};
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  std::size_t count = 0;
  for (bool more = !text.empty(); more && count < parts.size(); ++count) {
    const auto [next, error] = std::from_chars(at, end, parts[count]);
    if (error != std::errc{}) break;
    more = next != end && *next == '.';
    at = more ? next + 1 : next;
  }
  if (at != end || count < 2) {
    throw UsageError{fmt::format("'{}' is not an NCCL version\n  hint: write it as 2.28.3", text)};
  }
  Version version{parts[0], parts[1], parts[2]};
  if (count == 2 && version == Version{2, 18, 0}) version = kOldest;
  if (version < kOldest || version >= Version{2, 31, 0}) {
    throw UsageError{
        fmt::format("the rules of NCCL {} are not known\n  hint: known are 2.18.3 to 2.30", text)};
  }
  return version;
}

std::string text_of(Version version) {
  return fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
}

}  // namespace foretrace::nccl
