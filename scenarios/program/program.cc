#include "scenarios/program/program.h"

#include <fmt/format.h>

#include "scenarios/program/program_walk.h"
#include "scenarios/base/text/errors.h"

namespace foretrace {

Program head_of(const Program& program) {
  Program head;
  head.name = program.name;
  head.file = program.file;
  head.summary = program.summary.empty() ? program.name : program.summary;
  head.tags = program.tags;
  head.environment = program.environment;
  head.environment_spots = program.environment_spots;
  head.placement = program.placement;
  head.fabric = program.fabric;
  head.faults = program.faults;
  head.nodes_follow = program.nodes_follow;
  head.processes_spot = program.processes_spot;
  return head;
}

void add_default_streams(Program& program) {
  for (const StreamKind kind : {StreamKind::LegacyDefault, StreamKind::PerThreadDefault}) {
    const bool legacy = kind == StreamKind::LegacyDefault;
    for (std::uint32_t device = 0; device < program.devices; ++device) {
      program.streams.push_back(
          {fmt::format("{}({})", legacy ? "default" : "per_thread", device), device, kind, 0});
    }
  }
}

std::vector<OpInfo> index_ops(const Program& program) {
  std::vector<OpInfo> index(program.op_count);
  for (std::uint32_t thread = 0; thread < program.threads.size(); ++thread) {
    for_each_op(program.threads[thread].ops, [&](const Op& op, Around around) {
      FORETRACE_CHECK(op.id.value < index.size(), "OpIds are 0 ... op_count-1");
      OpInfo& info = index[op.id.value];
      info = {&op, thread, {}};
      for (const Op* loop : loops_of(around)) info.loops.push_back(loop->id);
    });
  }
  return index;
}

std::vector<std::int64_t> loop_indices(std::uint64_t instance,
                                       const std::vector<std::uint64_t>& times) {
  std::vector<std::int64_t> indices(times.size());
  for (std::size_t loop = times.size(); loop-- > 0;) {
    FORETRACE_CHECK(times[loop] > 0, "an operation in a loop of no iterations has no instance");
    indices[loop] = static_cast<std::int64_t>(instance % times[loop]);
    instance /= times[loop];
  }
  return indices;
}

}  // namespace foretrace
