#include "models/nccl/time/slices.h"

#include <algorithm>
#include <cmath>

#include "models/constants/constants.h"
#include "models/nccl/time/ring_time.h"

namespace foretrace::nccl {

double port_turn_bytes() {
  static const double kBytes = constant("nccl.port_turn");
  return kBytes;
}

namespace {

double turn_seconds(Reading& read) { return port_turn_bytes() / read.rate(Param::NcclPortShare); }

/// Payload of a channel's buffer: LL carries four bytes of flags for four of data, LL128 eight for
/// each 120.
double buffer_payload(const Tuning& tuning, Protocol protocol) {
  const auto bytes = static_cast<double>(tuning.buffer_bytes[index_of(protocol)]);
  if (protocol == Protocol::LL) return bytes / 2;
  return protocol == Protocol::LL128 ? bytes / 16 * 15 : bytes;
}

std::uint64_t whole(double value) { return static_cast<std::uint64_t>(value); }

/// An operation's time as slices need it, in seconds.
struct Work {
  double fixed = 0;    ///< before the first slice
  double latency = 0;  ///< ring: of all steps; else of the longest way's hops
  double channel = 0;  ///< a channel's work on all its data, beside the port
  double extra = 0;    ///< ring: the same before the port
  double port = 0;     ///< of each port and direction
  double nic = 0;      ///< between nodes, of a NIC: ring: for all steps; else of one sender's data
};

/// As many equal slices as keep a slice below a port's turn and a step of the buffer. Each is
/// passed on while it still comes in.
void stream(Slices& slices, const Work& work, double per_channel, double buffer) {
  const double step = buffer / static_cast<double>(kBufferSteps);
  const double count = std::max({1.0, std::ceil(work.port / slices.turn_seconds - 1e-9),
                                 std::ceil(per_channel / step - 1e-9)});
  slices.fixed_seconds = work.fixed;
  slices.hop_seconds = work.latency;
  slices.full = {1,
                 static_cast<std::uint32_t>(count),
                 0,
                 work.channel / count,
                 work.port / count,
                 work.channel / count,
                 work.nic / count};
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
  if (algorithm == Algorithm::Tree) return Shape::Tree;
  if (algorithm != Algorithm::Ring) return Shape::Whole;
  return is_chain(kind) ? Shape::Chain : Shape::Ring;
}

/// How often a channel passes whole chunks of all ranks' parts around the ring, and what is left.
struct Passes {
  Passes(double per_channel, double ranks, double chunk)
      : full{std::floor(per_channel / (ranks * chunk) + 1e-9)},
        rest{std::max(0.0, per_channel - full * ranks * chunk)},
        has_last{full == 0 || rest >= ranks} {}  // a byte for each rank
  double full;
  double rest;
  bool has_last;
  double count() const { return full + (has_last ? 1 : 0); }
};

/// One pass of a ring moves a part of each rank's once around, or twice.
void ring(Slices& slices, const Work& work, const Passes& passes, const ChannelShare& share,
          double per_channel, double ranks, bool ll, const auto& work_of_part) {
  const double steps = slices.steps + 1.0;  // the last one only receives
  const auto pass = [&](double count, double part) {
    const std::uint32_t pieces = slices_of(part, share);
    const double of_all = per_channel > 0 ? part * ranks / per_channel : 1;
    Pass result{whole(count), pieces};
    result.before_seconds = (work.latency + work.extra) / (passes.count() * steps * pieces);
    result.work_seconds = work_of_part(part, of_all) / pieces;
    result.port_seconds = work.port * of_all / (slices.steps * pieces);
    result.nic_seconds = work.nic * of_all / (slices.steps * pieces);
    // LL takes its data out of the lines that came; otherwise they have arrived in place.
    result.receive_seconds = result.before_seconds + (ll ? result.work_seconds : 0);
    return result;
  };
  slices.fixed_seconds = work.fixed;
  if (passes.full > 0) slices.full = pass(passes.full, static_cast<double>(share.chunk_bytes));
  if (passes.has_last) slices.last = pass(1, passes.rest / ranks);
}

Work work_of(Reading& read, const CollectiveTime& time, Shape shape, double sends, Bytes bytes,
             double ranks) {
  const Terms& terms = time.terms;
  Work work;
  work.fixed = terms.fixed_seconds;
  // A node of a tree sends up once and down twice in one tree, up once in the other: a quarter
  // each.
  work.nic = terms.network_seconds / (shape == Shape::Tree ? 4 : 1);
  if (time.model == Model::Ring) {
    work.latency = shape == Shape::Chain ? terms.chain_seconds() : terms.step_seconds * terms.steps;
    work.port = terms.wire_seconds;
    const bool ll = time.choice.protocol == Protocol::LL;
    // Beyond the wire: drift. What streams through a chain meets it on the way, not at each rank.
    (ll || shape != Shape::Ring ? work.channel : work.extra) = terms.channel_seconds;
    if (!ll && shape != Shape::Ring) work.channel += work.port;
    return work;
  }
  work.latency = terms.hop_seconds;
  work.channel = terms.channel_seconds;
  const auto count = static_cast<double>(bytes.count);
  const double through_port = shape == Shape::Ring ? count * sends / ranks : count;
  // A rank of a tree sends a slice up and to two others down, in each of two trees.
  const double uses = shape == Shape::Tree ? 4 : 1;
  work.port = std::min(through_port / read.rate(Param::NcclPortShare), work.channel / uses);
  return work;
}

/// `rooted`: gather and scatter, where the root's NIC is what is busy.
Slices pairs(Reading& read, const Tuning& tuning, const CollectiveTime& time, Bytes size,
             std::uint32_t peers, bool rooted) {
  const Terms& terms = time.terms;
  Slices slices;
  slices.shape = Shape::Pairs;
  slices.turn_seconds = turn_seconds(read);
  // Of a GPU's peers those on other nodes; all of its node's GPUs share the NICs.
  const Topology& topology = tuning.topology;
  const double elsewhere = topology.ranks() - topology.gpus_per_node;
  const double nics = rooted ? 1.0 : 1.0 * topology.nics / topology.gpus_per_node;
  const double nic = peers > 1 ? terms.network_seconds * nics / elsewhere : terms.network_seconds;
  stream(slices,
         {terms.fixed_seconds, 0, terms.channel_seconds, 0, terms.port_seconds / peers, nic},
         static_cast<double>(size.count) / time.choice.channels,
         buffer_payload(tuning, time.choice.protocol));
  return slices;
}

}  // namespace

Slices collective_slices(const Machine& machine, const Tuning& tuning, const Call& call) {
  Reading read{machine};
  const CollectiveTime time = collective_time(read, tuning, call);
  if (is_send_recv(call.kind)) {
    return pairs(read, tuning, time, call.size, tuning.ranks() - 1,
                 call.kind != CollectiveKind::AllToAll);
  }
  Slices slices;
  slices.shape = shape_of(call.kind, time.choice.algorithm);
  if (slices.shape == Shape::Whole) return slices;
  slices.turn_seconds = turn_seconds(read);
  slices.steps = (call.kind == CollectiveKind::AllReduce ? 2 : 1) * (tuning.ranks() - 1);

  const double ranks = tuning.ranks();
  const double sends = slices.steps;
  const Bytes bytes = vector_bytes(call.kind, call.size, tuning.ranks());
  const double per_channel = static_cast<double>(bytes.count) / time.choice.channels;
  const double buffer = buffer_payload(tuning, time.choice.protocol);
  Work work = work_of(read, time, slices.shape, sends, bytes, ranks);
  if (slices.shape != Shape::Ring) {
    stream(slices, work, per_channel, buffer);
    return slices;
  }
  const Plan& plan = time.plan;
  ChannelShare share = plan.middle.chunk_bytes != 0 ? plan.middle : plan.low;
  if (share.chunk_bytes == 0) share = {0, whole(buffer), whole(buffer), 1, 1};  // no bytes at all
  const Passes passes{per_channel, ranks, static_cast<double>(share.chunk_bytes)};
  if (time.model == Model::Ring && time.choice.protocol == Protocol::LL) {
    work.latency *= passes.count();  // every pass pays for its steps
    ring(slices, work, passes, share, per_channel, ranks, true,
         [&](double part, double) { return ll_round_seconds(read, call.kind, time.choice, part); });
  } else {
    ring(slices, work, passes, share, per_channel, ranks, false,
         [&](double, double of_all) { return work.channel * of_all / sends; });
  }
  const double slice = static_cast<double>(share.slice_bytes);
  slices.window = std::max<std::uint64_t>(1, whole(buffer / slice + 1e-9));
  return slices;
}

Slices send_recv_slices(const Machine& machine, const Tuning& tuning, Bytes size, bool both_ways,
                        Peer peer, bool direct) {
  Reading read{machine};
  const CollectiveTime time = send_recv_time(read, tuning, size, both_ways, peer, direct);
  return pairs(read, tuning, time, size, 1, false);
}

}  // namespace foretrace::nccl
