#include "models/nccl/time/ring_time.h"

#include <algorithm>
#include <cmath>

#include "models/constants/constants.h"
#include "models/nccl/time/buffer_steps.h"
#include "models/nccl/time/overlap.h"
#include "models/nccl/time/params.h"

namespace foretrace::nccl {
namespace {

// nccl src/include/device.h
constexpr double kRingChunk = 4 * kSimpleStepBytes;  ///< a rank's part in one pass
constexpr double kBytesPerThread = 8;                ///< of LL, in one round
constexpr double kLlThreads = 512;                   ///< NCCL_LL_MAX_NTHREADS

/// One round moves 8 bytes of every thread; with fewer threads it is over sooner.
double rounds_seconds(Reading& read, Param round, const Choice& choice, double bytes) {
  const double rounds = std::max(1.0, std::ceil(bytes / (choice.threads * kBytesPerThread) - 1e-9));
  const double floor = read.value(Param::NcclThreadFloor);
  return rounds * read.seconds(round) * (floor + (1 - floor) * choice.threads / kLlThreads);
}

/// Data and flags arrive together, so a step costs its rounds and a fixed part, in every pass.
double ll_passes_seconds(Reading& read, const RingParams& params, const Choice& choice,
                         double steps, double per_channel, double ranks) {
  const auto pass = [&](double part) {
    return steps * (read.seconds(params.step) + rounds_seconds(read, params.slope, choice, part));
  };
  const double full = std::floor(per_channel / (ranks * kLlStepBytes));
  const double rest = per_channel - full * ranks * kLlStepBytes;
  return full * pass(kLlStepBytes) + (rest > 0 || full == 0 ? pass(rest / ranks) : 0);
}

void add_ll(Terms& terms, Reading& read, const RingParams& params, const Choice& choice,
            double per_channel, double ranks, bool chain) {
  const double step = read.seconds(params.step);
  if (!chain) {
    terms.step_seconds = step;
    terms.seconds += ll_passes_seconds(read, params, choice, terms.steps, per_channel, ranks);
    return;
  }
  terms.step_seconds = step;
  terms.last_step_seconds = step;
  terms.channel_seconds = rounds_seconds(read, params.slope, choice, per_channel);
  terms.seconds += terms.chain_seconds() + terms.channel_seconds;
}

/// Simple and LL128. How much of a step shows: a ring hides its steps' latency behind large parts.
double shown_share(Reading& read, double part, bool chain, Protocol protocol) {
  if (protocol != Protocol::Simple || chain) return 1;
  return 1 / std::hypot(1.0, part / read.value(Param::NcclHiddenStep));
}

/// Simple: a rank of a chain passes a step on when all of it has come, at a channel's own rate or,
/// with many of them, at its share of the port.
double first_step_seconds(Reading& read, const RingParams& params, double part, double channels) {
  const double step = std::min(part, kSimpleStepBytes);
  const double shared = step * channels / read.rate(Param::NcclPortShare);
  const bool limited = params.channel_rate && read.has(*params.channel_rate);
  return limited ? std::max(shared, step / read.rate(*params.channel_rate)) : shared;
}

/// The last rank of a chain passes nothing on.
double last_step_seconds(Reading& read, CollectiveKind kind, Protocol protocol, double part,
                         double step_seconds) {
  const std::optional<Param> rate = last_step_param(kind, protocol);
  if (!rate || !read.has(*rate)) return step_seconds;
  return std::min(step_seconds, std::min(part, kSimpleStepBytes) / read.rate(*rate));
}

/// Registered buffers: nobody copies the last step out of a buffer, and what a channel writes is
/// the bottleneck, or the wire.
void add_direct(Terms& terms, Reading& read, double part, bool chain) {
  const Param rate = chain ? Param::NcclDirectChainRate : Param::NcclDirectRate;
  terms.fixed_seconds =
      read.seconds(Param::NcclDirectBase) + read.seconds(Param::NcclDirectExchange);
  terms.step_seconds = read.seconds(Param::NcclDirectStep);
  terms.last_step_seconds = terms.step_seconds;
  terms.limit_seconds = (chain ? 1 : terms.steps - 1) * part / read.rate(rate);
  terms.channel_seconds = std::max(0.0, terms.limit_seconds - terms.wire_seconds);
  terms.seconds = terms.fixed_seconds + terms.steps * terms.step_seconds + terms.wire_seconds +
                  terms.channel_seconds;  // a chain's last step is like the others
}

/// What Simple takes longer when the ranks' parts lie behind each other and do not begin aligned.
double unaligned_seconds(CollectiveKind kind, Protocol protocol, double part, double wire) {
  if (protocol != Protocol::Simple || is_aligned(part)) return 0;
  if (kind == CollectiveKind::AllGather) return wire * constant("nccl.unaligned.all_gather");
  if (kind == CollectiveKind::ReduceScatter)
    return wire * constant("nccl.unaligned.reduce_scatter");
  return 0;
}

}  // namespace

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

bool is_chain(CollectiveKind kind) {
  return kind == CollectiveKind::Broadcast || kind == CollectiveKind::Reduce;
}

bool is_direct(const Reading& read, const Choice& choice) {
  return choice.direct && read.has(Param::NcclDirectExchange);
}

double beyond_wire_seconds(Reading& read, double wire_seconds, double drift_seconds,
                           double limit_seconds) {
  if (limit_seconds <= 0) return drift_seconds;
  const double exponent = read.value(Param::NcclChannelOverlap);
  return overlapped(wire_seconds + drift_seconds, limit_seconds, exponent) - wire_seconds;
}

std::optional<Terms> ring_time(Reading& read, CollectiveKind kind, const Choice& choice,
                               Bytes bytes, std::uint32_t ranks, double links) {
  const RingParams params = ring_params(kind, choice.protocol);
  if (choice.algorithm != Algorithm::Ring || !read.has(params.base)) return std::nullopt;
  const bool chain = is_chain(kind);
  const double all_bytes = static_cast<double>(bytes.count);
  const double per_channel = all_bytes / choice.channels;
  Terms terms;
  terms.wire_bytes = bus_bytes(kind, all_bytes, ranks) / links;
  terms.wire_seconds = terms.wire_bytes / read.rate(Param::NcclPortShare);
  terms.fixed_seconds = read.seconds(params.base) +
                        read.seconds(Param::NcclChannelDoubling) * std::log2(choice.channels);
  terms.seconds = terms.fixed_seconds;
  terms.steps = chain ? ranks - 1.0 : kind == CollectiveKind::AllReduce ? 2.0 * ranks - 1 : ranks;
  if (choice.protocol == Protocol::LL) {
    add_ll(terms, read, params, choice, per_channel, ranks, chain);
    return terms;
  }
  const double part = chain ? per_channel : per_channel / ranks;
  if (is_direct(read, choice)) {
    add_direct(terms, read, part, chain);
    return terms;
  }
  const double power = params.power ? read.value(*params.power) : 1;
  terms.step_seconds = read.seconds(params.step) * shown_share(read, part, chain, choice.protocol);
  if (chain && choice.protocol == Protocol::Simple) {
    terms.step_seconds += first_step_seconds(read, params, part, choice.channels);
  }
  if (chain) {
    terms.last_step_seconds =
        last_step_seconds(read, kind, choice.protocol, part, terms.step_seconds);
  }
  terms.drift_seconds = read.seconds(params.slope) * std::pow(part / kRingChunk, power);
  if (read.has(*params.channel_rate)) {
    const double through = chain ? part : terms.steps * part;
    terms.limit_seconds = through / read.rate(*params.channel_rate);
  }
  terms.channel_seconds =
      beyond_wire_seconds(read, terms.wire_seconds, terms.drift_seconds, terms.limit_seconds);
  if (read.takes(Term::Unaligned)) {
    terms.channel_seconds +=
        unaligned_seconds(kind, choice.protocol, all_bytes / ranks, terms.wire_seconds);
  }
  terms.seconds += terms.wire_seconds + terms.channel_seconds;
  terms.seconds += chain ? terms.chain_seconds() : terms.steps * terms.step_seconds;
  return terms;
}

double ll_round_seconds(Reading& read, CollectiveKind kind, const Choice& choice, double bytes) {
  return rounds_seconds(read, ring_params(kind, Protocol::LL).slope, choice, bytes);
}

}  // namespace foretrace::nccl
