#include "models/nccl/time/group_cost.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "models/nccl/rules/plan.h"
#include "models/nccl/time/time.h"

namespace foretrace::nccl {
namespace {

/// One call with its place among the kernel's channels.
struct Placed {
  CollectiveKind kind;
  double bytes;           ///< NCCL's nBytes
  double bytes_per_unit;  ///< of them for each byte of a share
  Plan plan;

  double share(std::uint32_t channel) const {
    if (channel < plan.first_channel || channel >= plan.first_channel + plan.channels) return 0;
    const std::uint32_t place = channel - plan.first_channel;
    const bool is_last = place + 1 == plan.channels;
    const ChannelShare& share = place == 0 ? plan.low : is_last ? plan.high : plan.middle;
    return static_cast<double>(share.bytes) * bytes_per_unit;
  }
  /// Through each port; LL's time has no wire apart.
  double wire_bytes(double ranks) const {
    return plan.protocol == Protocol::LL ? 0 : bus_bytes(kind, bytes, ranks);
  }
  Choice choice(std::uint32_t channels) const {
    return {plan.algorithm, plan.protocol, channels, plan.threads};
  }
};

class GroupTime {
 public:
  GroupTime(const Machine& machine, double ranks, const std::vector<Placed>& calls)
      : machine_{machine}, ranks_{ranks}, calls_{calls} {}

  /// Seconds of the kernel, of which `wire` is that of all calls' bytes through a port; empty where
  /// some call's time is not known.
  std::optional<double> seconds(std::uint32_t kernel_channels, double wire) const {
    double fixed = 0;
    for (const Placed& call : calls_) {
      const auto alone = ring_time(machine_, call.kind, call.choice(1), call.bytes, ranks_);
      if (!alone) return std::nullopt;
      fixed = std::max(fixed, alone->fixed);
    }
    constexpr std::uint32_t kMostChannels = 64;  // nccl src/include/device.h, MAXCHANNELS
    double busiest = 0;
    for (std::uint32_t c = 0; c < kMostChannels; ++c) {
      busiest = std::max(busiest, seconds_of(c, wire, kernel_channels));
    }
    return fixed + machine_.get(Param::NcclChannelDoubling).value * std::log2(kernel_channels) +
           (is_generic() ? machine_.get(Param::NcclGenericKernel).value : 0) + busiest;
  }

 private:
  bool is_generic() const {
    const auto differs = [this](const Placed& call) {
      return call.kind != calls_.front().kind || call.plan.protocol != calls_.front().plan.protocol;
    };
    return machine_.has(Param::NcclGenericKernel) && std::ranges::any_of(calls_, differs);
  }

  Time time(const Placed& call, double bytes) const {
    return *ring_time(machine_, call.kind, call.choice(1), bytes, ranks_);
  }

  /// Every part has steps of its own; what the channels drift apart by grows with all of their
  /// data. A channel with less than its share of the bytes is on the wire for less of its time.
  double seconds_of(std::uint32_t channel, double wire, double kernel_channels) const {
    double seconds = 0;
    double drift = 0;
    double rate = 0;
    double own_wire = 0;
    struct Alike {
      const Placed* example = nullptr;
      double bytes = 0;
    };
    std::map<std::pair<CollectiveKind, Protocol>, Alike> alike;
    for (const Placed& call : calls_) {
      const double bytes = call.share(channel);
      if (bytes == 0) continue;
      const Time part = time(call, bytes);
      seconds += part.seconds - part.fixed;
      if (call.plan.protocol == Protocol::LL) continue;
      seconds -= part.channel + wire_of(call, bytes);
      own_wire += wire_of(call, bytes);
      Alike& same = alike[{call.kind, call.plan.protocol}];
      same.example = &call;
      same.bytes += bytes;
    }
    for (const auto& [key, same] : alike) {
      const Time all = time(*same.example, same.bytes);
      drift += all.drift;
      rate += all.rate;
    }
    const double shared = std::min(wire, own_wire * kernel_channels);
    return seconds + shared + beyond_wire(shared, drift, rate);
  }

  double wire_of(const Placed& call, double bytes) const {
    return bus_bytes(call.kind, bytes, ranks_) / machine_.rate(Param::NcclPortBandwidth);
  }

  const Machine& machine_;
  double ranks_;
  const std::vector<Placed>& calls_;
};

}  // namespace

std::vector<Cost> group_cost(const Machine& machine, const Tuning& tuning,
                             const std::vector<GroupCall>& calls) {
  std::vector<Cost> costs;
  std::vector<Request> requests;
  std::vector<std::size_t> busy;  // calls that have anything to do
  for (const GroupCall& call : calls) {
    if (call.size.count == 0) {
      costs.emplace_back();
      continue;
    }
    busy.push_back(costs.size());
    costs.push_back(collective_cost(machine, tuning, call.kind, call.size, call.type, call.op));
    const Bytes bytes = vector_bytes(call.kind, call.size, tuning.ranks());
    requests.push_back({function_of(call.kind), bytes, call.type, call.op, 1});
  }
  if (busy.size() < 2 || !tuning.stays_on_nvlink()) return costs;
  const std::vector<Plan> plans = plan_group(tuning, requests);
  std::vector<Placed> placed;
  for (std::size_t i = 0; i < busy.size(); ++i) {
    const GroupCall& call = calls[busy[i]];
    const auto bytes = static_cast<double>(requests[i].bytes.count);
    placed.push_back({call.kind, bytes, bytes / static_cast<double>(call.size.count), plans[i]});
  }
  const GroupTime group{machine, static_cast<double>(tuning.ranks()), placed};
  const std::uint32_t channels = kernel_channels(plans);
  const double port = machine.rate(Param::NcclPortBandwidth);
  double all_wires = 0;
  for (const Placed& call : placed) all_wires += call.wire_bytes(tuning.ranks()) / port;
  const auto seconds = group.seconds(channels, all_wires);
  if (!seconds) return costs;
  const double beside = std::max(0.0, *seconds - all_wires);
  for (std::size_t i = 0; i < busy.size(); ++i) {
    const double wire = placed[i].wire_bytes(tuning.ranks());
    costs[busy[i]] = cost_of(machine, placed[i].choice(channels), {beside + wire / port, wire});
  }
  return costs;
}

}  // namespace foretrace::nccl
