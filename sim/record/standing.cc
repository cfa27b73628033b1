#include "sim/record/standing.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "sim/record/region_reader.h"

namespace foretrace::sim {
namespace {

using Sources = std::map<std::string_view, const Source*>;  // by the parameter's key

/// Those that learned from anything.
Sources learned_sources(const Machine& machine) {
  Sources sources;
  for (std::size_t i = 0; i < kParamCount; ++i) {
    const auto param = static_cast<Param>(i);
    if (!machine.has(param) || !machine.get(param).is_learned()) continue;
    sources[info(param).key] = machine.get(param).origin.get();
  }
  return sources;
}

}  // namespace

void note_standing(Timeline& predicted, const Program& program, const Machine& machine) {
  const Sources sources = learned_sources(machine);
  std::optional<RegionReader> reader;
  for (RegionSamples& region : predicted.regions) {
    std::optional<RegionFacts> facts;
    for (const ParameterShare& part : region.decided_by) {
      const auto source = sources.find(part.parameter);
      if (source == sources.end()) continue;
      if (!reader) reader.emplace(program);
      if (!facts) {
        facts = RegionFacts{.scenario = program.name,
                            .ranks = program.processes * program.devices,
                            .bytes = reader->content(region.op, region.instance).bytes,
                            .pass = reader->pass_of(region.op, region.instance)};
      }
      if (learned_from(*source->second, *facts)) region.learned_by.push_back(part.parameter);
    }
  }
}

}  // namespace foretrace::sim
