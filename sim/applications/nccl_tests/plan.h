// One run of an nccl-tests program: who takes part, what is called how often, and for which sizes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "sim/applications/nccl_tests/op.h"
#include "sim/simulate.h"

namespace foretrace {

struct NcclTestsPlan {
  NcclTestsOp op = NcclTestsOp::AllReduce;
  std::uint32_t nodes = 1;
  std::uint32_t processes = 1;  ///< over all nodes
  std::uint32_t threads = 1;    ///< of each process, -t
  std::uint32_t gpus = 1;       ///< of each thread, -g
  std::string type = "float";
  std::string redop = "sum";
  std::uint32_t root = 0;
  std::uint32_t iterations = 20;
  std::uint32_t warmup = 1;
  std::uint32_t graph_launches = 0;  ///< -G; 0: calls, no CUDA graph
  std::uint32_t local_register = 0;  ///< -R; 1: ncclCommRegister of both buffers
  std::uint32_t blocking = 0;        ///< -z; 1: wait and barrier after each call, 2: wait, 3: as 1,
                                     ///< but the barrier is not timed
  Fidelity fidelity = Fidelity::Flow;
  std::string nccl;  ///< version whose rules choose; empty: the machine's
  std::map<std::string, std::string> environment;
  std::vector<NcclTestsSize> sizes;

  std::uint32_t gpus_per_process() const { return threads * gpus; }
  std::uint32_t ranks() const { return processes * gpus_per_process(); }
};

/// The machine with the plan's NCCL. Throws UsageError for a version whose rules are not known.
Machine machine_of(const NcclTestsPlan& plan, const Machine& machine);

/// Throws UsageError when no such run exists on `machine`: more ranks than it has GPUs, one rank, a
/// root that is no rank, flags that contradict each other.
void check_plan(const NcclTestsPlan& plan, const Machine& machine);

/// The requested sizes as nccl-tests rounds them. Those that come out as 0 are left out and named
/// on stderr; throws UsageError when none is left or one is smaller than an element of the type.
std::vector<NcclTestsSize> plan_sizes(const NcclTestsPlan& plan,
                                      const std::vector<std::uint64_t>& requested);

/// How often a size's timed region runs; nccl-tests runs {plan.iterations, plan.graph_launches}.
struct NcclTestsLoop {
  std::uint32_t iterations;
  std::uint32_t launches;  ///< of the graph that holds the iterations; 0 without one
  std::uint64_t total() const { return std::uint64_t{iterations} * (launches > 0 ? launches : 1); }
};

/// The run as a scenario. In every host thread the k-th region is loop k % loops.size() of size
/// k / loops.size(). GPUs that one thread drives are captured into one graph over all of them.
std::string nccl_tests_scenario(const NcclTestsPlan& plan, const std::vector<NcclTestsLoop>& loops);

}  // namespace foretrace
