#include "tests/sim/unit_machine.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "scenarios/read/scenario.h"
#include "sim/simulate.h"

namespace foretrace::test {
namespace {

double unit_value(Param param) {
  switch (param) {
    case Param::SmCount:
      return 10;
    case Param::CopyEngines:
      return 3;
    case Param::LaunchQueueDepth:
      return 1024;
    case Param::HardwareQueues:
      return 32;
    case Param::GpuMemory:
      return 1e12;
    case Param::HostMemory:
      return 1e12;
    case Param::L2Size:
      return 1;
    case Param::NcclSearchChannels:
      return 12;
    case Param::NcclMemoryLeast:
      return 20e-6;
    case Param::NcclOverlap:
      return 3.5;
    case Param::NcclChannelOverlap:
      return 8;
    case Param::DuplexBandwidth:
      return 2e9;
    case Param::HostLinkBandwidth:
      return 1e12;
    case Param::SmallPageableLimit:
      return 64 * 1024;
    case Param::NcclConnect:
      return 100e-6;
    case Param::NcclInit:
      return 1000e-6;
    case Param::HostFirstCall:
    case Param::HostPoolGrow:
    case Param::HostPoolTrim:
    case Param::HostAllocLeast:
    case Param::HostFreeHostLeast:
      return 0;
    case Param::HostClearBandwidth:
    case Param::HostPoolGrowBandwidth:
    case Param::HostPoolTrimBandwidth:
      return 1e15;
    case Param::HostFirstGemm:
    case Param::NcclNvls:
    case Param::HostContention:
    case Param::HostFuncBackoff:
      return 0;
    default:
      break;
  }
  if (info(param).key.starts_with("blind.")) return 0;
  switch (info(param).unit) {
    case ParamUnit::Time:
      return info(param).key.starts_with("host.") ? 1e-6 : 0;
    case ParamUnit::Rate:
      return 1e9;
    case ParamUnit::FlopRate:
      return 1e12;
    default:
      return 1;
  }
}

std::vector<Span> spans_of(const Timeline& timeline, const std::string& id, bool device) {
  std::vector<Span> found;
  for (const Span& span : timeline.spans) {
    if (timeline.ops[span.op].label == id && (span.part > 0) == device) found.push_back(span);
  }
  std::ranges::stable_sort(found, {}, &Span::begin_ns);
  return found;
}

}  // namespace

Machine unit_machine() {
  Machine machine;
  machine.name = "unit";
  machine.gpus_per_node = 8;
  machine.gpu_name = "NVIDIA H200";  // what NCCL chooses by
  for (std::size_t i = 0; i < kParamCount; ++i) {
    const auto param = static_cast<Param>(i);
    machine.set(param, {unit_value(param), 0, ParameterClass::Assumed, "unit machine", ""});
  }
  for (const Param latency :
       {Param::LaunchLatency, Param::CopyLaunchLatency, Param::NcclLaunchLatency}) {
    machine.set(latency, {1e-6, 0, ParameterClass::Assumed, "unit machine", ""});
  }
  return machine;
}

Timeline predict(const std::string& text, const Machine& machine) {
  const auto read = read_scenario("schema_version: 1\nname: test\n" + text, "test.yaml");
  if (!read) {
    ADD_FAILURE() << render(read.error(), "schema_version: 1\nname: test\n" + text);
    return {};
  }
  return simulate(read->program, machine);
}

std::vector<Span> device_spans(const Timeline& timeline, const std::string& id) {
  return spans_of(timeline, id, true);
}

std::vector<Span> host_spans(const Timeline& timeline, const std::string& id) {
  return spans_of(timeline, id, false);
}

double region_us(const Timeline& timeline, const std::string& name) {
  for (const RegionSamples& region : timeline.regions) {
    if (region.name == name) return us(region.samples_ns.front());
  }
  ADD_FAILURE() << "no region " << name;
  return 0;
}

}  // namespace foretrace::test
