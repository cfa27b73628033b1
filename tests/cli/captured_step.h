// A captured step as `foretrace capture` writes it, of the given calls.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace foretrace::test {

struct CapturedStep {
  std::string calls;        ///< lines of JSON, each with its end
  std::int64_t ns = 70000;  ///< the step's end
  int world = 1;
  std::int64_t allocated = 300, reserved = 400;  ///< bytes at the peak
  std::string assumptions = {};                  ///< JSON strings, by commas
};

/// rank0.calls.jsonl
inline std::string record_of(const CapturedStep& step) {
  return fmt::format(
      R"x({{"foretrace_calls":1,"torch":"2.11","depth":"emulated","rank":0,"world_size":{0},"host":{{"torch_loop_ns":20000000}},"assumptions":[{1}]}}
{{"k":"begin","region":"step","instance":2,"t":0}}
{2}{{"k":"end","region":"step","instance":2,"t":{3},"memory":{{"allocated":[1,{4},2],"reserved":[1,{5},2]}},"steps_cpu_ns":[{3},{3}]}}
)x",
      step.world, step.assumptions, step.calls, step.ns, step.allocated, step.reserved);
}

/// step.yaml
inline std::string scenario_of(int world = 1) {
  return fmt::format(
      "schema_version: 1\nname: step\nprocesses: {}\ncaptured_step:\n  calls: rank0.calls.jsonl\n",
      world);
}

}  // namespace foretrace::test
