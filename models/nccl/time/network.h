// The network between nodes as NCCL's times need it: the machine file's parameters or, where it has
// none, those of a fabric that is like most: one 400 Gb/s InfiniBand NIC for each GPU.
#pragma once

#include "models/machine/reading.h"
#include "models/nccl/time/params.h"
#include "models/nccl/time/terms.h"

namespace foretrace::nccl {

class Network {
 public:
  Network(Reading& read, const Topology& topology) : read_{read}, topology_{topology} {}

  /// Whether the machine file has times of its network; else what is read here is assumed.
  bool is_known() const {
    return read_.has(kNetRingStep.ll) || read_.has(kNetTreeStep.ll) ||
           read_.has(Param::NcclNetExchangeBase);
  }
  /// Of `nccl.network.*`, `network.*` and `nccl.tree.*`; SI base units.
  double value(Param param) const;

  /// One message of `payload` bytes of one channel to the next node, beyond its bytes' time.
  double hop_seconds(const ProtocolParams& step, Protocol protocol, double payload) const;
  /// The least that a ring's step by Simple takes, with parts of this size: two messages, or one.
  /// Parts of 128 KiB take longer than 256 KiB on GH200s on Slingshot, in all-reduces on 4 to 16
  /// nodes.
  double ring_pace(double part, bool all_reduce) const;
  /// `bytes` of payload through the NICs of a node, by rings or by trees (`algorithm`). A tree's
  /// first chunks have the NICs for themselves.
  double seconds(double bytes, Algorithm algorithm, Protocol protocol,
                 bool first_chunks = false) const;

  /// Send/recv and what is made of it: before the first bytes leave, with so many peers elsewhere.
  double exchange_start(double bytes, double peers) const;
  /// What messages of an all-to-all take longer that are so small that larger ones are faster.
  double small_seconds(double bytes, double peers) const;
  /// What one NIC moves of it, in bytes/s.
  double exchange_rate() const;

 private:
  /// `share` of what two nodes get, for each doubling of the nodes beyond two.
  double spread(Param share) const;
  /// The proxies of a node that look at flags: one for each GPU that takes part.
  double proxies() const;

  Reading& read_;
  const Topology& topology_;
};

/// Between nodes an operation is never slower than it would be by what NCCL goes over to when sizes
/// grow (LL to LL128 to Simple): its choice is taken to be right, unless NCCL may not take the
/// next, or the machine file says by how much the choice loses (nccl.network.flags_lose).
void limit_by_next(Reading& read, const Tuning& tuning, CollectiveKind kind, Bytes bytes,
                   const Plan& plan, Terms& terms);

}  // namespace foretrace::nccl
