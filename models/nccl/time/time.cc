#include "models/nccl/time/time.h"

#include <algorithm>
#include <cmath>

#include "scenarios/text/errors.h"

namespace foretrace::nccl {
namespace {

constexpr double kRingChunk = 4 * kSimpleStep;  // a rank's part in one pass
constexpr double kBytesPerThread = 8;           // of LL, in one round
constexpr double kLlThreads = 512;

}  // namespace

RingParams ring_params(CollectiveKind kind, Protocol protocol) {
  // Each operation's eleven parameters stand in one order in the catalogue.
  const auto first = [&] {
    switch (kind) {
      case CollectiveKind::AllReduce:
        return Param::NcclAllReduceLlBase;
      case CollectiveKind::AllGather:
        return Param::NcclAllGatherLlBase;
      case CollectiveKind::ReduceScatter:
        return Param::NcclReduceScatterLlBase;
      case CollectiveKind::Broadcast:
        return Param::NcclBroadcastLlBase;
      default:
        return Param::NcclReduceLlBase;
    }
  }();
  const auto at = [&](int offset) {
    return static_cast<Param>(static_cast<int>(first) + 3 * static_cast<int>(protocol) + offset);
  };
  const auto rate = static_cast<Param>(static_cast<int>(first) + 10);
  return {at(0), at(1), at(2), at(protocol == Protocol::Simple ? 3 : 2), rate};
}

double bus_bytes(CollectiveKind kind, double bytes, double ranks) {
  switch (kind) {
    case CollectiveKind::AllReduce:
      return bytes * 2 * (ranks - 1) / ranks;
    case CollectiveKind::Broadcast:
    case CollectiveKind::Reduce:
      return bytes;
    default:
      return bytes * (ranks - 1) / ranks;
  }
}

double both(double one, double other, double power) {
  return std::pow(std::pow(one, power) + std::pow(other, power), 1 / power);
}

double beyond_wire(double wire, double drift, double rate) {
  constexpr double kPower = 8;  // of 4, 5 and 8 that which changes fits of all 24 channels least
  return rate > 0 ? both(wire + drift, rate, kPower) - wire : drift;
}

namespace {

double seconds(const Machine& machine, Param param) { return machine.get(param).value; }

/// One round moves 8 bytes of every thread; with fewer threads it is over sooner.
double ll_rounds(const Machine& machine, const RingParams& params, const Choice& choice,
                 double bytes) {
  const double rounds = std::max(1.0, std::ceil(bytes / (choice.threads * kBytesPerThread) - 1e-9));
  const double floor = machine.get(Param::NcclThreadFloor).value;
  return rounds * seconds(machine, params.slope) *
         (floor + (1 - floor) * choice.threads / kLlThreads);
}

/// Ring LL: data and flags arrive together, so a step costs its rounds and a fixed part. A pass has
/// one step more than it has transfers: the last rank only receives.
double ring_ll(const Machine& machine, const RingParams& params, const Choice& choice, double steps,
               double per_channel, double ranks) {
  const auto pass = [&](double part) {
    return steps * (seconds(machine, params.step) + ll_rounds(machine, params, choice, part));
  };
  const double full = std::floor(per_channel / (ranks * kLlStep));
  const double rest = per_channel - full * ranks * kLlStep;
  return full * pass(kLlStep) + (rest > 0 || full == 0 ? pass(rest / ranks) : 0);
}

}  // namespace

std::optional<Time> ring_time(const Machine& machine, CollectiveKind kind, const Choice& choice,
                              double bytes, double ranks) {
  const RingParams params = ring_params(kind, choice.protocol);
  if (choice.algorithm != Algorithm::Ring || !machine.has(params.base)) return std::nullopt;
  const bool chain = kind == CollectiveKind::Broadcast || kind == CollectiveKind::Reduce;
  const double per_channel = bytes / choice.channels;
  Time time;
  time.wire_bytes = bus_bytes(kind, bytes, ranks);
  time.fixed = seconds(machine, params.base) +
               seconds(machine, Param::NcclChannelDoubling) * std::log2(choice.channels);
  time.seconds = time.fixed;
  const double step = seconds(machine, params.step);
  if (choice.protocol == Protocol::LL) {
    constexpr double kFilled = 8.0 * 1024;  // a smaller part is through before the next rank asks
    time.step = chain ? step * std::min(1.0, per_channel / kFilled) : step;
    time.channel = chain ? ll_rounds(machine, params, choice, per_channel) : 0;
    time.seconds += chain ? time.step * (ranks - 1) + time.channel
                          : ring_ll(machine, params, choice,
                                    kind == CollectiveKind::AllReduce ? 2 * ranks - 1 : ranks,
                                    per_channel, ranks);
    return time;
  }
  const double wire = time.wire_bytes / machine.rate(Param::NcclPortBandwidth);
  time.seconds += wire;
  const double channel_rate = machine.has(params.rate) ? machine.rate(params.rate) : 0;
  const bool simple = choice.protocol == Protocol::Simple;
  const double drift = seconds(machine, params.slope);
  const double power = simple ? machine.get(params.power).value : 1;
  if (chain) {  // filling the chain costs a step's time for each rank behind the root
    const double filled = simple ? std::min(1.0, per_channel / kSimpleStep) : 1;
    time.step = step * filled;
    time.drift = drift * std::pow(per_channel / kRingChunk, power);
    if (channel_rate > 0) time.rate = per_channel / channel_rate;
    time.channel = beyond_wire(wire, time.drift, time.rate);
    time.seconds += time.step * (ranks - 1) + time.channel;
    return time;
  }
  const double part = per_channel / ranks;
  const double steps = kind == CollectiveKind::AllReduce ? 2 * ranks - 1 : ranks;
  const double shown =
      simple ? 1 / std::hypot(1.0, part / machine.get(Param::NcclHiddenStep).value) : 1;
  time.step = step * shown;
  time.drift = drift * std::pow(part / kRingChunk, power);
  if (channel_rate > 0) time.rate = steps * part / channel_rate;
  time.channel = beyond_wire(wire, time.drift, time.rate);
  time.seconds += steps * time.step + time.channel;
  return time;
}

double ll_work(const Machine& machine, CollectiveKind kind, const Choice& choice, double bytes) {
  return ll_rounds(machine, ring_params(kind, choice.protocol), choice, bytes);
}

std::optional<Time> exchange_time(const Machine& machine, Exchange exchange, const Choice& choice,
                                  double bytes, double peers) {
  constexpr Param kFirst[] = {Param::NcclSendRecvLlBase, Param::NcclAllToAllLlBase,
                              Param::NcclGatherLlBase, Param::NcclScatterLlBase,
                              Param::NcclSendRecvLlBase};
  const auto param = [&](int offset) {
    return static_cast<Param>(static_cast<int>(kFirst[static_cast<int>(exchange)]) + offset);
  };
  if (!machine.has(param(0))) return std::nullopt;
  const double part = bytes / choice.channels;
  Time time;
  time.wire_bytes = bytes * peers;
  const double ports =
      time.wire_bytes / (machine.rate(Param::NcclPortBandwidth) * machine.get(param(5)).value);
  if (choice.protocol == Protocol::LL) {  // flags double the bytes
    time.fixed = seconds(machine, param(0)) +
                 seconds(machine, Param::NcclChannelDoubling) * std::log2(choice.channels);
    time.ports = 2 * ports;
    time.channel = both(part / machine.rate(param(1)), time.ports);
    time.seconds = time.fixed + time.channel;
    return time;
  }
  time.fixed = seconds(machine, param(2));
  time.ports = ports;
  const double steps = part / kSimpleStep;
  const bool drifts = machine.has(param(6)) && machine.get(param(6)).value > 0;
  if (drifts) {
    constexpr double kLeast = 0.25;  // no part is so small that its channels do not drift apart
    const double power = machine.get(Param::NcclExchangePower).value;
    time.channel = ports + seconds(machine, param(6)) * std::pow(std::max(steps, kLeast), power);
  } else {
    const double channels =
        part / machine.rate(param(3)) + std::min(part, kSimpleStep) / machine.rate(param(4));
    const bool overlaps = exchange == Exchange::SendRecv && machine.has(Param::NcclPairOverlap);
    const double power =
        overlaps ? machine.get(Param::NcclPairOverlap).value +
                       machine.get(Param::NcclPairOverlapGrowth).value * std::log2(1 + steps)
                 : kBothPower;
    time.channel =
        exchange == Exchange::OneWay ? std::max(channels, ports) : both(channels, ports, power);
  }
  time.seconds = time.fixed + time.channel;
  return time;
}

}  // namespace foretrace::nccl
