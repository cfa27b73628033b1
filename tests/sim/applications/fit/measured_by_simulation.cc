#include "tests/sim/applications/fit/measured_by_simulation.h"

#include <gtest/gtest.h>

#include "reports/timeline/origin.h"
#include "scenarios/read/scenario.h"
#include "sim/engine/children.h"
#include "sim/simulate.h"
#include "tests/sim/unit_machine.h"

namespace foretrace::test {

Noise jitter(double width) {
  return [width](const std::string& region, std::uint64_t instance, int repetition) {
    std::size_t hash = std::hash<std::string>{}(region) + 7919 * instance;
    hash = (hash + 104729 * static_cast<std::size_t>(repetition)) * 2654435761;
    return 1 + width * (static_cast<double>(hash >> 8 & 0xffff) / 0x8000 - 1);
  };
}

Timeline measured_on(const Program& program, const Machine& machine, const Noise& noise) {
  const auto numbers = run_in_children({[&] {
    std::vector<double> all;
    for (const RegionSamples& region : simulate(program, machine).regions) {
      all.insert(all.end(), {static_cast<double>(region.op), static_cast<double>(region.instance),
                             static_cast<double>(region.process), static_cast<double>(region.per),
                             static_cast<double>(region.samples_ns.front())});
    }
    return all;
  }});
  Timeline timeline;
  timeline.origin = origin_of(program);
  timeline.origin.measured = true;
  timeline.ops = op_rows(program);
  for (std::size_t at = 0; at + 5 <= numbers[0].size(); at += 5) {
    const double* row = numbers[0].data() + at;
    RegionSamples region;
    region.op = static_cast<std::uint32_t>(row[0]);
    region.instance = static_cast<std::uint64_t>(row[1]);
    region.process = static_cast<std::uint32_t>(row[2]);
    region.per = static_cast<std::uint64_t>(row[3]);
    region.name = timeline.ops[region.op].label;
    for (int repetition = 0; repetition < 5; ++repetition) {
      region.samples_ns.push_back(
          static_cast<std::int64_t>(row[4] * noise(region.name, region.instance, repetition)));
    }
    timeline.regions.push_back(std::move(region));
  }
  return timeline;
}

Program program_from(const std::string& text) {
  auto read = read_scenario("schema_version: 1\n" + text, "test.yaml");
  if (!read) {
    ADD_FAILURE() << render(read.error(), text);
    return {};
  }
  return std::move(read->program);
}

Machine fixed_machine() {
  Machine machine = unit_machine();
  for (std::size_t i = 0; i < kParamCount; ++i) {
    ParamValue value = machine.get(static_cast<Param>(i));
    value.source = ParameterClass::Datasheet;
    machine.set(static_cast<Param>(i), value);
  }
  return machine;
}

void open_parameter(Machine& machine, Param param, double value) {
  machine.set(param, {value, 0, ParameterClass::Assumed, "a guess", ""});
}

}  // namespace foretrace::test
