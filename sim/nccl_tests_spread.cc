// How far a predicted time of nccl-tests may be off.
#include "sim/nccl_tests_predict.h"

namespace foretrace {
namespace {

// The 10th and 90th percentile of single repeats over their prediction, for the nine operations of
// scenarios/nccl on 2, 3 and 4 H200s (reports/measured/*_ranks), by how they were launched.
constexpr NcclBand kGraph{0.97, 1.05};
constexpr NcclBand kCallsSmall{0.93, 1.22};  // below 1 MiB the host's jitter decides
constexpr NcclBand kCallsLarge{0.96, 1.05};
constexpr NcclBand kOneThreadSmall{0.87, 1.12};
constexpr NcclBand kOneThreadLarge{0.95, 1.08};
constexpr std::uint64_t kLarge = std::uint64_t{1} << 20;

/// NCCL's own prices stand in where no times were fitted: off by a quarter on one node, by their
/// use against public tables of other machines.
constexpr NcclBand kPrices{0.7, 1.4};
constexpr NcclBand kPricesOverNetwork{0.5, 2.0};

}  // namespace

NcclBand nccl_time_band(const Machine& machine, const NcclTestsPlan& plan,
                        const NcclTestsRow& row) {
  if (plan.nodes > 1) return kPricesOverNetwork;
  const bool fitted = machine.has(Param::NcclAllReduceLlBase) &&
                      machine.get(Param::NcclAllReduceLlBase).source == ParameterClass::Fit;
  if (!fitted) return kPrices;
  if (plan.graph_launches > 0) return kGraph;
  const bool large = row.size.bytes >= kLarge;
  if (plan.gpus_per_process() > 1) return large ? kOneThreadLarge : kOneThreadSmall;
  return large ? kCallsLarge : kCallsSmall;
}

}  // namespace foretrace
