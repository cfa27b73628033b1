// How far a predicted time of nccl-tests may be off.
#include <algorithm>
#include <array>

#include "models/nccl/time/trust.h"
#include "sim/nccl_tests/predict.h"

namespace foretrace {
namespace {

// About the 5th and 95th percentile of single repeats over their prediction, for the nine
// operations on 2, 3 and 4 H200s of three machines (reports/measured/nccl_tests and *_ranks), by
// how they were launched. Hosts of one kind differ by 1.6 between process starts and machines.
constexpr NcclBand kGraph{0.97, 1.05};
constexpr NcclBand kCallsSmall{0.8, 1.5};  // below 1 MiB the host's jitter decides
constexpr NcclBand kCallsLarge{0.94, 1.08};
constexpr NcclBand kOneThreadSmall{0.88, 1.75};
constexpr NcclBand kOneThreadLarge{0.94, 1.25};
constexpr std::uint64_t kLarge = std::uint64_t{1} << 20;

// Machines that were fitted to tables which others published: the same percentiles of the points
// that were left out of the fits (models/machines/README.md), one node and several. Wider where a
// parameter is a datasheet's or another publication's, and where it is assumed: no such point.
constexpr std::array kPublished{NcclBand{0.88, 1.22}, NcclBand{0.78, 1.45}};
constexpr std::array kDatasheet{NcclBand{0.8, 1.3}, NcclBand{0.65, 1.65}};
constexpr std::array kAssumed{NcclBand{0.73, 1.37}, NcclBand{0.55, 1.9}};

/// NCCL's own prices stand in where no times were fitted: off by a quarter on one node, by their
/// use against public tables of other machines.
constexpr NcclBand kPrices{0.7, 1.4};
constexpr NcclBand kPricesOverNetwork{0.5, 2.0};

/// Of ten repeats, eight are within so many standard deviations.
constexpr double kEightOfTen = 1.28;

std::optional<CollectiveKind> kind_of(NcclTestsOp op) {
  switch (op) {
    case NcclTestsOp::AllReduce:
      return CollectiveKind::AllReduce;
    case NcclTestsOp::AllGather:
      return CollectiveKind::AllGather;
    case NcclTestsOp::ReduceScatter:
      return CollectiveKind::ReduceScatter;
    case NcclTestsOp::Broadcast:
      return CollectiveKind::Broadcast;
    case NcclTestsOp::Reduce:
      return CollectiveKind::Reduce;
    case NcclTestsOp::AllToAll:
      return CollectiveKind::AllToAll;
    case NcclTestsOp::Gather:
      return CollectiveKind::Gather;
    case NcclTestsOp::Scatter:
      return CollectiveKind::Scatter;
    case NcclTestsOp::SendRecv:
      break;
  }
  return {};
}

template <class Enum>
std::optional<Enum> named(const std::string& name, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (name_of(static_cast<Enum>(i)) == name) return static_cast<Enum>(i);
  }
  return {};
}

std::optional<nccl::Trust> trust_in(const Machine& machine, const NcclTestsPlan& plan,
                                    const NcclTestsRow& row) {
  const auto algorithm = named<nccl::Algorithm>(row.algorithm, nccl::kAlgorithms);
  const auto protocol = named<nccl::Protocol>(row.protocol, nccl::kProtocols);
  if (!algorithm || !protocol) return {};
  return nccl::trust_of(machine, kind_of(plan.op), *algorithm, *protocol, plan.nodes);
}

NcclBand by_source(const nccl::Trust& trust, bool several) {
  const std::size_t column = several ? 1 : 0;
  NcclBand band = kDatasheet[column];
  if (trust.least == ParameterClass::Fit) band = kPublished[column];
  if (trust.least == ParameterClass::Assumed) band = kAssumed[column];
  const double wider = 1 + kEightOfTen * trust.spread;
  return {band.low / wider, band.high * wider};
}

}  // namespace

NcclBand nccl_time_band(const Machine& machine, const NcclTestsPlan& plan,
                        const NcclTestsRow& row) {
  const bool several = plan.nodes > 1;
  const auto trust = trust_in(machine, plan, row);
  if (!trust) return several ? kPricesOverNetwork : kPrices;
  if (several || !machine.based_on.empty()) return by_source(*trust, several);
  const bool fitted = machine.has(Param::NcclAllReduceLlBase) &&
                      machine.get(Param::NcclAllReduceLlBase).trusted_as() == ParameterClass::Fit;
  if (!fitted) return kPrices;
  if (plan.graph_launches > 0) return kGraph;
  const bool large = row.size.bytes >= kLarge;
  if (plan.gpus_per_process() > 1) return large ? kOneThreadLarge : kOneThreadSmall;
  return large ? kCallsLarge : kCallsSmall;
}

}  // namespace foretrace
