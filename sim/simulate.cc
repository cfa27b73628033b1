#include "sim/simulate.h"

#include <memory>
#include <vector>

#include "sim/engine/engine.h"
#include "sim/host/thread.h"
#include "sim/record/deadlock.h"
#include "sim/record/recorder.h"
#include "sim/record/standing.h"
#include "sim/world.h"

namespace foretrace {

Timeline simulate(const Program& program, const Machine& machine, Fidelity fidelity) {
  sim::Engine engine;
  sim::Recorder recorder{program, machine};
  // devices, streams, links, communicators
  sim::World world{engine, program, machine, recorder, fidelity};

  std::vector<std::unique_ptr<sim::HostThread>> threads;
  for (const HostThread& thread : program.threads) {
    for (const std::uint32_t process : thread.processes) {
      threads.push_back(std::make_unique<sim::HostThread>(engine, world, recorder, machine, program,
                                                          thread, process));
      threads.back()->start();
    }
  }
  engine.run();  // until nothing is left to happen
  Timeline timeline = std::move(recorder).finish(sim::explain_outcome(program, threads, world));
  sim::note_standing(timeline, program, machine);
  return timeline;
}

}  // namespace foretrace
