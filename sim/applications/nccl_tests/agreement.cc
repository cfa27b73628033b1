#include "sim/applications/nccl_tests/agreement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>

#include "models/nccl/topology/machine.h"
#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

/// The shipped machines with such a GPU.
std::vector<std::string> machines_with(const std::string& kind) {
  std::vector<std::string> names;
  for (const std::string& name : machine_names()) {
    try {
      if (nccl::gpu_kind(load_machine(name).gpu_name) == kind) names.push_back(name);
    } catch (const UsageError&) {  // somebody's file that cannot be read is no proposal
    }
  }
  return names;
}

}  // namespace

std::string contradictions(const std::vector<NcclTestsSample>& samples, const Machine& machine) {
  std::string text;
  std::set<std::string> said;
  std::map<std::string, std::uint32_t> most_nodes;
  for (const NcclTestsSample& sample : samples) {
    std::uint32_t& most = most_nodes[sample.file];
    most = std::max(most, sample.plan.nodes);
    if (sample.gpu.empty()) continue;
    const std::string kind = nccl::gpu_kind(sample.gpu);
    if (kind == nccl::gpu_kind(machine.gpu_name)) continue;
    if (!said.insert(sample.file + "\n" + kind).second) continue;
    const std::vector<std::string> others = machines_with(kind);
    text +=
        fmt::format("warning: {}: measured on '{}', and machine '{}' has '{}'\n  hint: {}\n",
                    sample.file, sample.gpu, machine.name, machine.gpu_name,
                    others.empty() ? "no shipped machine has such GPUs; a file of its own says them"
                                   : fmt::format("--machine {}", fmt::join(others, ", ")));
  }
  return text;
}

void in_domains(std::vector<NcclTestsSample>& samples, const Machine& machine) {
  if (!nccl::is_multi_host_domain(machine)) return;
  for (NcclTestsSample& sample : samples) {
    sample.plan.nodes = nodes_for(sample.plan.ranks(), machine);
    if (sample.plan.processes % sample.plan.nodes != 0) sample.plan.nodes = 1;
  }
}

}  // namespace foretrace
