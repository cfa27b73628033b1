#include "sim/record/standing.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>

#include "sim/record/region_reader.h"

namespace foretrace::sim {
namespace {

using enum Param;

constexpr std::array kInNoShare{
    LaunchQueueDepth,   HostContention,   HostWake,          HostWakeEvent,
    LaunchLatency,      HostFuncLatency,  HostFuncNext,      HostFuncPoll,
    HostFuncBackoff,    HostFuncReturn,   GraphLatency,      GraphGap,
    KernelGap,          EventGap,         EventLatencyCopy,  EventLatency,
    EventLatencyPeer,   CopyAfterKernel,  DuplexBandwidth,   HostLinkBandwidth,
    PairCopies,         PairCopiesMemory, CopyLaunchLatency, CopyGap,
    DuplexCopy,         SaturatedCopy,    SaturatedCopyIdle, CopySwitch,
    SmallCopySwitch,    SmallCopyLimit,   NcclLaunchLatency, NcclGap,
    NcclConnect,        NcclConnectPeer,  NcclInit,          NcclGenericKernel,
    NcclMemorySlowdown, NcclMemoryLeast,  GemmHalfPairLoss,  NcclColdKernel};

/// By key, the sources that learned from this program at any size.
std::map<std::string, const Source*> sources_for(const Machine& machine, const RegionFacts& any) {
  std::map<std::string, const Source*> sources;
  for (std::size_t i = 0; i < kParamCount; ++i) {
    const auto param = static_cast<Param>(i);
    if (!machine.has(param) || !machine.get(param).is_learned()) continue;
    const Source* const source = machine.get(param).origin.get();
    if (learned_from(*source, any)) sources[std::string{info(param).key}] = source;
  }
  return sources;
}

}  // namespace

std::span<const Param> in_no_share() { return kInNoShare; }

void note_standing(Timeline& predicted, const Program& program, const Machine& machine) {
  RegionFacts facts{.scenario = program.name, .ranks = program.processes * program.devices};
  const auto sources = sources_for(machine, facts);
  if (sources.empty()) return;
  const RegionReader reader{program};
  for (RegionSamples& region : predicted.regions) {
    facts.bytes = reader.content(region.op, region.instance).bytes;
    facts.pass = reader.pass_of(region.op, region.instance);
    const auto note = [&](const std::string& key) {
      const auto source = sources.find(key);
      if (source == sources.end() || !learned_from(*source->second, facts)) return;
      region.learned_by.push_back(key);
    };
    for (const ParameterShare& part : region.decided_by) note(part.parameter);
    for (const Param param : kInNoShare) note(std::string{info(param).key});
  }
}

}  // namespace foretrace::sim
