#include "models/nccl/time/slices.h"

#include <algorithm>
#include <cmath>

#include "models/nccl/rules/plan.h"
#include "models/nccl/time/cost.h"
#include "models/nccl/time/exchange.h"
#include "models/nccl/time/far_time.h"
#include "models/nccl/time/time.h"
#include "scenarios/text/errors.h"

namespace foretrace::nccl {
namespace {

constexpr double kBufferSteps = 8;  // nccl src/include/device.h, NCCL_STEPS

/// Payload of a channel's buffer: LL carries four bytes of flags for four of data, LL128 eight for
/// each 120.
double buffer_payload(const Tuning& tuning, Protocol protocol) {
  const auto bytes = static_cast<double>(tuning.buffer_bytes[index_of(protocol)]);
  if (protocol == Protocol::LL) return bytes / 2;
  return protocol == Protocol::LL128 ? bytes / 16 * 15 : bytes;
}

std::uint64_t whole(double value) { return static_cast<std::uint64_t>(value); }

/// What an operation's terms are, in seconds, wherever they come from.
struct Terms {
  double fixed = 0;
  double steps = 0;    ///< ring: of all steps' latency together; else of the longest way's hops
  double channel = 0;  ///< a channel's work, beside the port
  double extra = 0;    ///< ring: work before the port
  double port = 0;     ///< of each port and direction
};

/// Streams: as many equal slices as keep a slice below a port's turn and a step of the buffer.
/// Each is passed on while it still comes in.
void stream(Slices& slices, const Terms& terms, double per_channel, double buffer) {
  const double step = buffer / kBufferSteps;
  const double count = std::max(
      {1.0, std::ceil(terms.port / kPortTurn - 1e-9), std::ceil(per_channel / step - 1e-9)});
  slices.fixed = terms.fixed;
  slices.latency = terms.steps;
  slices.full = {1,
                 static_cast<std::uint32_t>(count),
                 0,
                 terms.channel / count,
                 terms.port / count,
                 terms.channel / count};
  slices.window = std::max<std::uint64_t>(1, whole(buffer * count / std::max(per_channel, 1.0)));
  slices.window = std::min(slices.window, whole(count));
}

/// A part below 32 KiB is one slice (nccl src/device/prims_simple.h: at least 1/32 of the largest).
std::uint32_t slices_of(double part, const ChannelShare& share) {
  const double largest = static_cast<double>(share.slice_bytes);
  const double most = std::round(static_cast<double>(share.chunk_bytes) / largest);
  return static_cast<std::uint32_t>(std::clamp(std::ceil(part * 32 / largest), 1.0, most));
}

Shape shape_of(CollectiveKind kind, Algorithm algorithm) {
  if (is_send_recv(kind)) return Shape::Pairs;
  if (algorithm == Algorithm::Tree) return Shape::Tree;
  if (algorithm != Algorithm::Ring) return Shape::Whole;
  const bool chain = kind == CollectiveKind::Broadcast || kind == CollectiveKind::Reduce;
  return chain ? Shape::Chain : Shape::Ring;
}

/// What a machine file says about trees and several nodes: latency, and the rest is bandwidth.
Terms far_terms(const Time& time) { return {0, time.fixed, time.seconds - time.fixed, 0, 0}; }

/// NCCL's own price: its latency is that of the hops beyond the base, its bandwidth the channels'.
Terms price_terms(const Tuning& tuning, const Request& request, const Plan& plan) {
  Terms terms;
  const auto candidates = candidates_of(tuning, request);
  const auto chosen = std::ranges::find_if(candidates, [&](const Candidate& candidate) {
    return candidate.algorithm == plan.algorithm && candidate.protocol == plan.protocol;
  });
  FORETRACE_CHECK(chosen != candidates.end(), "a plan's choice is one of the candidates");
  const double latency = chosen->latency_us * 1e-6;
  const double base =
      tuning.constants->base_latency[index_of(plan.algorithm)][index_of(plan.protocol)] * 1e-6;
  terms.fixed = std::min(latency, base);
  terms.steps = latency - terms.fixed;
  terms.channel = std::max(0.0, plan.price_us * 1e-6 - latency);
  return terms;
}

/// One pass of a ring moves a part of each rank's once around, or twice.
void ring(Slices& slices, const Terms& terms, const ChannelShare& share, double per_channel,
          double ranks, bool ll, const auto& work_of_part) {
  const double chunk = static_cast<double>(share.chunk_bytes);
  const double full = std::floor(per_channel / (ranks * chunk) + 1e-9);
  const double rest = std::max(0.0, per_channel - full * ranks * chunk);
  const bool has_last = full == 0 || rest >= ranks;  // a byte for each rank
  const double passes = full + (has_last ? 1 : 0);
  const double steps = slices.steps + 1.0;  // the last one only receives
  const auto pass = [&](double count, double part) {
    const std::uint32_t pieces = slices_of(part, share);
    const double of_all = per_channel > 0 ? part * ranks / per_channel : 1;
    Pass result{whole(count), pieces};
    result.before = (terms.steps + terms.extra) / (passes * steps * pieces);
    result.work = work_of_part(part, of_all) / pieces;
    result.port = terms.port * of_all / (slices.steps * pieces);
    // LL takes its data out of the lines that came; otherwise they have arrived in place.
    result.receive = result.before + (ll ? result.work : 0);
    return result;
  };
  slices.fixed = terms.fixed;
  if (full > 0) slices.full = pass(full, chunk);
  if (has_last) slices.last = pass(1, rest / ranks);
}

/// Slices of a collective by ring, chain or tree.
Slices collective(const Machine& machine, const Tuning& tuning, CollectiveKind kind, Bytes bytes,
                  DataType type, RedOp op) {
  const Request request{function_of(kind), bytes, type, op, 1};
  const Plan plan = plan_of(tuning, request);
  const Choice choice{plan.algorithm, plan.protocol, plan.channels, plan.threads};
  const auto count = static_cast<double>(bytes.count);
  const double ranks = tuning.ranks();
  const double per_channel = count / choice.channels;
  const double buffer = buffer_payload(tuning, plan.protocol);
  Slices slices;
  slices.shape = shape_of(kind, plan.algorithm);
  if (slices.shape == Shape::Whole) return slices;
  slices.steps = (kind == CollectiveKind::AllReduce ? 2 : 1) * (tuning.ranks() - 1);

  const bool near = tuning.stays_on_nvlink() && plan.algorithm == Algorithm::Ring;
  const auto time = near ? ring_time(machine, kind, choice, count, ranks)
                         : far_time(machine, tuning, kind, choice, count);
  const bool rings = slices.shape == Shape::Ring;
  const bool ll = plan.protocol == Protocol::LL;
  const double sends = slices.steps;
  Terms terms;
  if (near && time) {
    terms.fixed = time->fixed;
    terms.port = time->wire_bytes / machine.rate(Param::NcclPortBandwidth);
    // Beyond the wire: drift. What streams through a chain meets it on the way, not at each rank.
    (ll || !rings ? terms.channel : terms.extra) = time->channel;
    if (!ll && !rings) terms.channel += terms.port;
    terms.steps = time->step * (rings ? sends + 1 : ranks - 1);
  } else {
    const double wire = rings ? count * sends / ranks : count;
    terms = time ? far_terms(*time) : price_terms(tuning, request, plan);
    // A rank of a tree sends a slice up and to two others down, in each of two trees.
    const double uses = slices.shape == Shape::Tree ? 4 : 1;
    terms.port = std::min(wire / machine.rate(Param::NcclPortBandwidth), terms.channel / uses);
  }
  if (!rings) {
    stream(slices, terms, per_channel, buffer);
    return slices;
  }
  ChannelShare share = plan.middle.chunk_bytes != 0 ? plan.middle : plan.low;
  if (share.chunk_bytes == 0) share = {0, whole(buffer), whole(buffer), 1, 1};  // no bytes at all
  if (near && time && ll) {
    Terms of_pass = terms;  // every pass pays for its steps
    const double chunk = static_cast<double>(share.chunk_bytes);
    const double full = std::floor(per_channel / (ranks * chunk) + 1e-9);
    const bool has_last = full == 0 || per_channel - full * ranks * chunk >= ranks;
    of_pass.steps *= full + (has_last ? 1 : 0);
    ring(slices, of_pass, share, per_channel, ranks, true,
         [&](double part, double) { return ll_work(machine, kind, choice, part); });
  } else {
    ring(slices, terms, share, per_channel, ranks, false,
         [&](double, double of_all) { return terms.channel * of_all / sends; });
  }
  const double slice = static_cast<double>(share.slice_bytes);
  slices.window = std::max<std::uint64_t>(1, whole(buffer / slice + 1e-9));
  return slices;
}

Slices exchange(const Machine& machine, const Tuning& tuning, Exchange kind, Bytes size,
                std::uint32_t peers, Peer peer) {
  const auto [choice, time] = exchange_with_peers(machine, tuning, kind, size, peers, peer);
  Slices slices;
  slices.shape = Shape::Pairs;
  const Terms terms{time.fixed, 0, time.channel, 0, time.ports / peers};
  stream(slices, terms, static_cast<double>(size.count) / choice.channels,
         buffer_payload(tuning, choice.protocol));
  return slices;
}

}  // namespace

Slices collective_slices(const Machine& machine, const Tuning& tuning, CollectiveKind kind,
                         Bytes size, DataType type, RedOp op) {
  const std::uint32_t ranks = tuning.ranks();
  if (is_send_recv(kind)) {
    const bool several = tuning.topology.nodes > 1;
    return exchange(machine, tuning, exchange_of(kind), size, ranks - 1,
                    several ? Peer::OtherNode : Peer::SameNode);
  }
  return collective(machine, tuning, kind, vector_bytes(kind, size, ranks), type, op);
}

Slices send_recv_slices(const Machine& machine, const Tuning& tuning, Bytes size, bool both_ways,
                        Peer peer) {
  return exchange(machine, tuning, both_ways ? Exchange::SendRecv : Exchange::OneWay, size, 1,
                  peer);
}

}  // namespace foretrace::nccl
