#include "models/nccl/time/group_cost.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "models/nccl/rules/plan.h"
#include "models/nccl/time/ring_time.h"

namespace foretrace::nccl {
namespace {

/// One call with its place among the kernel's channels.
struct Placed {
  CollectiveKind kind;
  Bytes bytes;                   ///< NCCL's nBytes
  std::uint64_t bytes_per_unit;  ///< of them for each byte of a share
  Plan plan;

  Bytes share(std::uint32_t channel) const {
    if (channel < plan.first_channel || channel >= plan.first_channel + plan.channels) return {0};
    const std::uint32_t place = channel - plan.first_channel;
    const bool is_last = place + 1 == plan.channels;
    const ChannelShare& share = place == 0 ? plan.low : is_last ? plan.high : plan.middle;
    return {share.bytes * bytes_per_unit};
  }
};

class GroupTime {
 public:
  GroupTime(Reading& read, const Tuning& tuning, const std::vector<Placed>& calls)
      : read_{read}, tuning_{tuning}, calls_{calls} {}

  /// Of a call's bytes through each port; LL's time has no wire apart.
  double wire_seconds(const Placed& call, Bytes bytes) const {
    if (call.plan.protocol == Protocol::LL) return 0;
    return bus_bytes(call.kind, static_cast<double>(bytes.count), tuning_.ranks()) /
           read_.rate(Param::NcclPortShare);
  }

  /// Seconds of the kernel, of which `wire` is that of all calls' bytes through a port; empty where
  /// some call does not run around the NVLinks step by step.
  std::optional<double> seconds(std::uint32_t kernel_channels, double wire) const {
    for (const Placed& call : calls_) {
      if (on_one_channel(call, call.bytes).model != Model::Ring) return std::nullopt;
    }
    double busiest = 0;
    for (std::uint32_t c = 0; c < kMaxChannels; ++c) {
      busiest = std::max(busiest, channel_seconds(c, wire, kernel_channels));
    }
    return read_.seconds(Param::NcclChannelDoubling) * std::log2(kernel_channels) +
           (is_generic() ? read_.seconds(Param::NcclGenericKernel) : 0) + busiest;
  }

  /// Of each rank of a chain behind the one before.
  std::optional<Hops> hops(const Placed& call) const {
    if (!is_chain(call.kind)) return std::nullopt;
    const Terms terms = planned_time(read_, tuning_, call.kind, call.bytes, call.plan).terms;
    return Hops{terms.step_seconds, terms.last_step_seconds};
  }

 private:
  bool is_generic() const {
    const auto differs = [this](const Placed& call) {
      return call.kind != calls_.front().kind || call.plan.protocol != calls_.front().plan.protocol;
    };
    return read_.has(Param::NcclGenericKernel) && std::ranges::any_of(calls_, differs);
  }

  CollectiveTime on_one_channel(const Placed& call, Bytes bytes) const {
    Plan plan = call.plan;
    plan.channels = 1;
    return planned_time(read_, tuning_, call.kind, bytes, plan);
  }

  /// A part's own time, its data by Simple apart; of a chain without the ranks' way.
  double own_seconds(const Placed& call, Bytes bytes, const Terms& part) const {
    double own = part.seconds - part.fixed_seconds;
    if (is_chain(call.kind)) own -= part.chain_seconds();
    if (call.plan.protocol == Protocol::LL) return own;
    return own - part.channel_seconds - wire_seconds(call, bytes);
  }

  /// Every part has steps of its own, those of a chain apart; what the channels drift apart by
  /// grows with all of their data. A channel with less than its share of the bytes is on the wire
  /// for less of its time.
  double channel_seconds(std::uint32_t channel, double wire, double kernel_channels) const {
    double fixed = 0;
    double ll = 0;
    double steps = 0;
    double drift = 0;
    double limit = 0;
    double own_wire = 0;
    struct Alike {
      const Placed* example = nullptr;
      Bytes bytes;
    };
    std::map<std::pair<CollectiveKind, Protocol>, Alike> alike;
    for (const Placed& call : calls_) {
      const Bytes bytes = call.share(channel);
      if (bytes.count == 0) continue;
      const Terms part = on_one_channel(call, bytes).terms;
      const double own = own_seconds(call, bytes, part);
      fixed = std::max(fixed, part.fixed_seconds);
      if (call.plan.protocol == Protocol::LL) {
        ll += own;
        continue;
      }
      steps += own;
      own_wire += wire_seconds(call, bytes);
      Alike& same = alike[{call.kind, call.plan.protocol}];
      same.example = &call;
      same.bytes = same.bytes + bytes;
    }
    if (alike.empty()) return fixed + ll;
    for (const auto& [key, same] : alike) {
      const Terms all = on_one_channel(*same.example, same.bytes).terms;
      drift += all.drift_seconds;
      limit += all.limit_seconds;
    }
    const double shared = std::min(wire, own_wire * kernel_channels);
    return fixed + steps + shared + beyond_wire_seconds(read_, shared, drift, limit + ll);
  }

  Reading& read_;
  const Tuning& tuning_;
  const std::vector<Placed>& calls_;
};

}  // namespace

std::vector<GroupedTime> group_time(Reading& read, const Tuning& tuning,
                                    const std::vector<Call>& calls) {
  std::vector<GroupedTime> times;
  std::vector<Request> requests;
  std::vector<std::size_t> busy;  // calls that have anything to do
  for (const Call& call : calls) {
    if (call.size.count == 0) {
      times.emplace_back();
      continue;
    }
    busy.push_back(times.size());
    const CollectiveTime alone = collective_time(read, tuning, call);
    GroupedTime time{alone.choice,
                     alone.terms.seconds,
                     alone.terms.wire_seconds,
                     alone.terms.network_seconds,
                     {}};
    if (alone.model == Model::Ring && is_chain(call.kind)) {
      time.hops = Hops{alone.terms.step_seconds, alone.terms.last_step_seconds};
      time.seconds -= alone.terms.chain_seconds();
    }
    times.push_back(time);
    const Bytes bytes = vector_bytes(call.kind, call.size, tuning.ranks());
    requests.push_back({function_of(call.kind), bytes, call.type, call.op, 1, call.direct});
  }
  if (busy.size() < 2) return times;
  const std::vector<Plan> plans = plan_group(tuning, requests);
  std::vector<Placed> placed;
  for (std::size_t i = 0; i < busy.size(); ++i) {
    const Call& call = calls[busy[i]];
    const Bytes bytes = requests[i].bytes;
    placed.push_back({call.kind, bytes, bytes.count / call.size.count, plans[i]});
  }
  const GroupTime group{read, tuning, placed};
  const std::uint32_t channels = kernel_channels(plans);
  double all_wires = 0;
  for (const Placed& call : placed) all_wires += group.wire_seconds(call, call.bytes);
  const auto seconds = group.seconds(channels, all_wires);
  if (!seconds) return times;
  const double beside = std::max(0.0, *seconds - all_wires);
  for (std::size_t i = 0; i < busy.size(); ++i) {
    const Plan& plan = plans[i];
    const double wire = group.wire_seconds(placed[i], placed[i].bytes);
    times[busy[i]] = {{plan.algorithm, plan.protocol, channels, plan.threads, plan.direct},
                      beside + wire,
                      wire,
                      0,
                      group.hops(placed[i])};
  }
  return times;
}

std::vector<Cost> group_cost(const Machine& machine, const Tuning& tuning,
                             const std::vector<Call>& calls) {
  Reading read{machine};
  std::vector<Cost> costs;
  for (const GroupedTime& time : group_time(read, tuning, calls)) {
    costs.push_back(
        cost_of(machine, time.choice, time.seconds, time.wire_seconds, time.network_seconds));
    if (!time.hops) continue;
    costs.back().hop = seconds_to_duration(time.hops->seconds);
    costs.back().last_hop = seconds_to_duration(time.hops->last_seconds);
  }
  return costs;
}

}  // namespace foretrace::nccl
