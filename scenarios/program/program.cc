#include "scenarios/program/program.h"

#include "scenarios/program/program_walk.h"
#include "scenarios/text/errors.h"

namespace foretrace {
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
