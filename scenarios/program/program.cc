#include "scenarios/program/program.h"

#include "scenarios/text/errors.h"

namespace foretrace {
namespace {

void index_block(const Block& block, std::uint32_t thread, std::vector<OpId>& loops,
                 std::vector<OpInfo>& index) {
  for (const Op& op : block) {
    FORETRACE_CHECK(op.id.value < index.size(), "OpIds are 0 ... op_count-1");
    index[op.id.value] = {&op, thread, loops};
    if (const Block* inner = block_of(op.kind)) {
      const bool is_loop = std::holds_alternative<Repeat>(op.kind);
      if (is_loop) loops.push_back(op.id);
      index_block(*inner, thread, loops, index);
      if (is_loop) loops.pop_back();
    }
  }
}

}  // namespace

std::vector<OpInfo> index_ops(const Program& program) {
  std::vector<OpInfo> index(program.op_count);
  std::vector<OpId> loops;
  for (std::uint32_t thread = 0; thread < program.threads.size(); ++thread) {
    index_block(program.threads[thread].ops, thread, loops, index);
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
