// consumer SCENARIO MACHINE: the predicted time until the last span ends, in ns.
#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "models/machine/machine.h"
#include "scenarios/read/scenario.h"
#include "sim/simulate.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const foretrace::Program program = foretrace::load_scenario(argv[1], {});
  const foretrace::Machine machine = foretrace::load_machine(argv[2]);
  const foretrace::Timeline timeline =
      foretrace::simulate(program, machine, foretrace::Fidelity::Flow);
  std::int64_t end = 0;
  for (const auto& span : timeline.spans) end = std::max(end, span.end_ns);
  std::printf("%lld\n", static_cast<long long>(end));
  return 0;
}
