#include "sim/simulate.h"

#include <fmt/format.h>

#include <memory>
#include <set>
#include <vector>

#include "scenarios/base/text/errors.h"
#include "sim/engine/engine.h"
#include "sim/host/thread.h"
#include "sim/limits.h"
#include "sim/message_limit.h"
#include "sim/record/deadlock.h"
#include "sim/record/recorder.h"
#include "sim/record/standing.h"
#include "sim/world.h"

namespace foretrace {

namespace {

/// Where the first host thread is that has not returned.
TooLarge out_of_bounds(const Program& program,
                       const std::vector<std::unique_ptr<sim::HostThread>>& threads,
                       const sim::OutOfBounds& limit) {
  Diagnostic problem;
  problem.at.file = program.file;
  problem.message = fmt::format("{}: too long to be simulated", limit.what());
  for (const auto& thread : threads) {
    if (thread->finished() || thread->current() == nullptr) continue;
    problem.at.line = thread->current()->line;
    problem.at.column = thread->current()->column;
    problem.hint = fmt::format("host thread '{}' is here then", thread->name());
    break;
  }
  return TooLarge{{std::move(problem)}};
}

/// By process: whether its host threads run. One that shares a thread's text with an earlier
/// process, and all its other threads too, is that one's twin; so is one that has none.
std::vector<bool> running(const Program& program, Simulated simulated) {
  std::vector<bool> runs(program.processes, true);
  if (simulated == Simulated::All) return runs;
  std::vector<std::vector<std::size_t>> threads(program.processes);
  for (std::size_t i = 0; i < program.threads.size(); ++i) {
    for (const std::uint32_t process : program.threads[i].processes) threads[process].push_back(i);
  }
  std::set<std::vector<std::size_t>> seen;
  for (std::uint32_t process = 0; process < program.processes; ++process) {
    runs[process] = !threads[process].empty() && seen.insert(threads[process]).second;
  }
  return runs;
}

}  // namespace

TooLarge::TooLarge(Diagnostics problems)
    : UsageError{render(problems, "")}, problems_{std::move(problems)} {}

Timeline simulate(const Program& program, const Machine& machine, Fidelity fidelity,
                  Simulated simulated, Says says) {
  if (const auto spread = spread_over_nodes(program, machine)) {
    return simulate(*spread, machine, fidelity, simulated, says);
  }
  const std::vector<bool> runs = running(program, simulated);
  if (const Diagnostics problems = too_large_to_simulate(program, runs); !problems.empty()) {
    throw TooLarge{problems};
  }
  sim::Engine engine;
  sim::Recorder recorder{program, machine, says};
  // Devices, streams, links, communicators. With what calls take, remembered, it is too large for a
  // small stack.
  const auto held =
      std::make_unique<sim::World>(engine, program, machine, recorder, fidelity, runs);
  sim::World& world = *held;
  if (fidelity == Fidelity::Chunk) {
    const Diagnostics problems = sim::too_many_messages(program, world, runs);
    if (!problems.empty()) throw TooLarge{problems};
  }

  std::vector<std::unique_ptr<sim::HostThread>> threads;
  for (const HostThread& thread : program.threads) {
    for (const std::uint32_t process : thread.processes) {
      if (!runs[process]) continue;
      threads.push_back(std::make_unique<sim::HostThread>(engine, world, recorder, machine, program,
                                                          thread, process));
      threads.back()->start();
    }
  }
  try {
    engine.run();  // until nothing is left to happen
  } catch (const sim::OutOfBounds& limit) {
    throw out_of_bounds(program, threads, limit);
  }
  Timeline timeline = std::move(recorder).finish(sim::explain_outcome(program, threads, world));
  timeline.end_ps = engine.now().time_since_epoch().count();
  sim::note_standing(timeline, program, machine);
  return timeline;
}

}  // namespace foretrace
