#include "scenarios/check/happens_before.h"

#include "scenarios/check/order_walk.h"

namespace foretrace {

HappensBefore happens_before(const Program& program, const OrderOptions& options) {
  const OrderFacts unknown;
  OrderOptions likely = options;
  likely.mode = OrderMode::Likely;
  OrderWalk first{program, likely, unknown};
  first.run();
  if (options.mode == OrderMode::Likely) return std::move(first).take_result();

  // Who gives which signal and records which event is known now.
  OrderWalk second{program, options, first.facts()};
  second.run();
  return std::move(second).take_result();
}

std::vector<std::int64_t> variables_of(const std::vector<OpInfo>& index, const ExecutedOp& executed,
                                       std::uint32_t process) {
  std::vector<std::uint64_t> times;
  for (const OpId loop : index[executed.op->id.value].loops) {
    times.push_back(std::get<Repeat>(index[loop.value].op->kind).times);
  }
  std::vector<std::int64_t> variables = loop_indices(executed.instance, times);
  variables.insert(variables.begin(), process);
  return variables;
}

}  // namespace foretrace
