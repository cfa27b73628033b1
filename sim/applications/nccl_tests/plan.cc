#include "sim/applications/nccl_tests/plan.h"

#include <fmt/format.h>

#include <cstdio>

#include "models/nccl/rules/rccl.h"
#include "models/nccl/rules/types.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/print.h"

namespace foretrace {
namespace {

void require(bool condition, const std::string& message) {
  if (!condition) throw UsageError{message};
}

std::string layout(const NcclTestsPlan& plan) {
  std::string text = fmt::format("{} process(es)", plan.processes);
  if (plan.threads > 1) text += fmt::format(" x {} threads", plan.threads);
  return text + fmt::format(" x {} GPU(s)", plan.gpus);
}

}  // namespace

Machine machine_of(const NcclTestsPlan& plan, const Machine& machine) {
  Machine changed = machine;
  if (plan.nccl.empty()) return changed;
  require(!nccl::parse_rccl_version(machine.nccl_version),
          fmt::format("NCCL {}: machine '{}' has RCCL", plan.nccl, machine.name));
  changed.nccl_version = nccl::text_of(nccl::parse_version(plan.nccl));
  return changed;
}

void check_plan(const NcclTestsPlan& plan, const Machine& machine) {
  require(plan.processes > 0 && plan.threads > 0 && plan.gpus > 0 && plan.nodes > 0,
          "--processes, --nodes, -t and -g must be positive");
  require(plan.iterations > 0, "-n must be positive");
  require(plan.blocking <= 3, fmt::format("-z {}: it is 0, 1, 2 or 3", plan.blocking));
  require(plan.local_register <= 1,
          fmt::format("-R {} is not predicted: symmetric memory (0 or 1 is)", plan.local_register));
  require(plan.blocking == 0 || plan.graph_launches == 0,
          "-z waits after each call, and a CUDA graph (-G) cannot hold a wait: give one of them");
  require(plan.processes % plan.nodes == 0,
          fmt::format("{} processes cannot be spread evenly over {} nodes", plan.processes,
                      plan.nodes));
  const std::uint64_t ranks = std::uint64_t{plan.processes} * plan.threads * plan.gpus;
  require(ranks / plan.nodes <= machine.gpus_per_node,
          fmt::format("{} ranks ({}, on {} node(s)) do not fit: a node of machine '{}' has {} "
                      "GPU(s)\n  hint: --nodes {}",
                      ranks, layout(plan), plan.nodes, machine.name, machine.gpus_per_node,
                      nodes_for(ranks, machine)));
  require(ranks >= 2, fmt::format("{} is one rank, which has nobody to talk to", layout(plan)) +
                          "\n  hint: --processes 8, or -g 8 for one process with 8 GPUs");
  require(!info(plan.op).has_root || plan.root < ranks,
          fmt::format("-r {}: the ranks are 0 to {}", plan.root, ranks - 1));
}

std::vector<NcclTestsSize> plan_sizes(const NcclTestsPlan& plan,
                                      const std::vector<std::uint64_t>& requested) {
  const NcclTestsType& type = parse_nccl_tests_type(plan.type);
  std::vector<NcclTestsSize> sizes;
  std::size_t too_small = 0;
  for (const std::uint64_t bytes : requested) {
    require(bytes >= type.element.count,
            fmt::format("a size of {} B holds no element of type {}, which has {} B", bytes,
                        type.name, type.element.count));
    const NcclTestsSize size = nccl_tests_size(plan.op, bytes, type, plan.ranks());
    if (size.count > 0) {
      sizes.push_back(size);
    } else {
      ++too_small;
    }
  }
  const std::string least =
      fmt::format("{} of {} ranks takes 16 B from each, so at least {} B", info(plan.op).name,
                  plan.ranks(), 16 * std::uint64_t{plan.ranks()});
  require(!sizes.empty(), fmt::format("no size is large enough: {}", least));
  if (too_small > 0) {
    print_error("note: {} size(s) left out, which nccl-tests rounds down to 0: {}\n", too_small,
                least);
  }
  return sizes;
}

}  // namespace foretrace
