#include "models/nccl/time/hop_time.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "models/constants/constants.h"
#include "models/nccl/time/buffer_steps.h"
#include "models/nccl/time/network.h"
#include "models/nccl/time/overlap.h"
#include "models/nccl/time/params.h"
#include "models/nccl/time/ring_time.h"

namespace foretrace::nccl {
namespace {

using enum Protocol;

class HopTime {
 public:
  HopTime(Reading& read, const Tuning& tuning, CollectiveKind kind, const Choice& choice,
          double bytes)
      : read_{read},
        topology_{tuning.topology},
        kind_{kind},
        choice_{choice},
        bytes_{bytes},
        nodes_{static_cast<double>(topology_.nodes)},
        ranks_{static_cast<double>(topology_.ranks())},
        per_node_{static_cast<double>(topology_.gpus_per_node)},
        channels_{static_cast<double>(choice.channels)},
        ring_{ring_params(kind, choice.protocol)},
        network_{read, topology_} {}

  std::optional<Terms> terms() const {
    switch (choice_.algorithm) {
      case Algorithm::Ring:
        if (!read_.has(ring_.base)) return {};
        return ring();
      case Algorithm::Tree:
        if (!read_.has(kTreeBase.ll) && (nodes_ == 1 || !read_.has(ring_.base))) return {};
        return tree();
      case Algorithm::Nvls:
      case Algorithm::NvlsTree:
        if (!read_.has(Param::NcclNvlsBase)) return {};
        return nvls();
      case Algorithm::Pat:
        if (!read_.has(ring_.base)) return {};
        return pat();
      case Algorithm::CollNetDirect:
      case Algorithm::CollNetChain:
        break;
    }
    return {};
  }

 private:
  double port_seconds(double bytes) const {
    double share = choice_.protocol == LL ? 0.5 : 1;  // the other half are flags
    if (share < 1 && read_.has(Param::NcclHostLlShare)) share = read_.value(Param::NcclHostLlShare);
    return bytes / (read_.rate(Param::NcclPortShare) * share);
  }

  double hop_seconds(const ProtocolParams& step, double payload) const {
    return network_.hop_seconds(step, choice_.protocol, payload);
  }
  double network_seconds(double bytes) const {
    return network_.seconds(bytes, choice_.algorithm, choice_.protocol);
  }
  /// Of these the NICs are busy; with flags the proxies may be what is slow.
  double busy_seconds(double bytes) const {
    const double with_flags = choice_.protocol == LL ? 2 * bytes : bytes;
    return std::min(network_seconds(bytes),
                    network_.seconds(with_flags, choice_.algorithm, Simple));
  }
  /// Of trees inside a node: the network's defaults stand in between nodes only.
  double tree_param(const ProtocolParams& params) const {
    const Param param = params[choice_.protocol];
    return nodes_ == 1 || read_.has(param) ? read_.value(param) : network_.value(param);
  }

  Terms terms_of(double hops, double through_ports, double network_bytes, double wire_bytes) const {
    Terms terms;
    terms.hop_seconds = hops;
    const double network = nodes_ == 1 ? 0 : network_seconds(network_bytes);
    if (nodes_ > 1) terms.network_seconds = busy_seconds(network_bytes);
    if (nodes_ == 1) {
      terms.channel_seconds = through_ports;
    } else if (choice_.algorithm == Algorithm::Ring) {
      terms.channel_seconds = overlapped(through_ports, network, constant("nccl.ring_overlap"));
    } else {
      terms.channel_seconds = overlapped(read_, through_ports, network);
    }
    terms.seconds = terms.hop_seconds + terms.channel_seconds;
    terms.wire_bytes = wire_bytes;
    terms.wire_seconds = wire_bytes / read_.rate(Param::NcclPortShare);
    return terms;
  }

  /// Every rank passes every part on; of all hops those over a node's border go over the network.
  Terms ring() const {
    const bool chain = is_chain(kind_);
    const double per_channel = bytes_ / channels_;
    const double part = std::min(chain ? per_channel : per_channel / ranks_, largest_part());
    const double rounds = kind_ == CollectiveKind::AllReduce ? 2 : 1;
    const double steps = rounds * (ranks_ - 1);
    const double between = nodes_ == 1 ? 0 : steps * nodes_ / ranks_;
    double step_share = 1;  // of a step's latency that shows: the rest hides behind earlier parts
    if (choice_.protocol == Simple && chain) {
      step_share = std::min(1.0, part / kSimpleStepBytes);
    } else if (choice_.protocol == Simple) {
      step_share = 1 / std::hypot(1.0, part / read_.value(Param::NcclHiddenStep));
    }
    const double wire = bus_bytes(kind_, bytes_, ranks_);
    const double network = network_seconds(wire);
    double hops =
        read_.seconds(ring_.base) + (steps - between + 1) * read_.seconds(ring_.step) * step_share;
    if (nodes_ > 1 && choice_.protocol == LL && read_.has(Param::NcclNetRingChannel)) {
      hops += std::max(0.0, between * message_seconds() - network);
    } else if (nodes_ > 1) {
      hops += shown_seconds(between * hop_seconds(kNetRingStep, part), part, network);
    }
    Terms terms = terms_of(hops, port_seconds(wire), wire, wire);
    if (choice_.protocol == Simple && !chain) {
      const double least = steps * network_.ring_pace(part, kind_ == CollectiveKind::AllReduce);
      const double more = std::max(0.0, least - terms.seconds);
      terms.hop_seconds += more;
      terms.seconds += more;
    }
    return terms;
  }

  /// Until one message of each channel has left a node: one after the other. All-gathers of 8, 32
  /// and 512 ranks on Slingshot take 30 us for each step and channel, whatever the size.
  double message_seconds() const {
    return network_.value(kNetRingStep.ll) +
           (channels_ - 1) * read_.seconds(Param::NcclNetRingChannel);
  }

  /// What shows of the latency of all hops between nodes when Simple passes on parts of this size:
  /// transfers hide it, and none hides more of it than it takes longer itself.
  double shown_seconds(double latency, double part, double network) const {
    if (choice_.protocol != Simple || is_chain(kind_) || latency == 0) return latency;
    constexpr double kSteepest = 0.6495;  // slope of 1 / (1 + x^2) where it falls most
    const double hidden =
        std::min(part / network_.value(Param::NcclNetHidden), network / (kSteepest * latency));
    return latency / (1 + hidden * hidden);
  }

  double largest_part() const {
    if (choice_.protocol == LL) return kLlStepBytes;
    return choice_.protocol == LL128 ? kLl128StepBytes : 4 * kSimpleStepBytes;
  }

  /// Up and down again: a chain inside each node, a binary tree over the nodes. A chunk is passed
  /// on when all of it has come, so the first one pays for every hop.
  Terms tree() const {
    const double chunk = choice_.protocol == LL      ? read_.value(Param::NcclLlFill)
                         : choice_.protocol == LL128 ? kLl128StepBytes
                                                     : kSimpleStepBytes;
    const double message = std::min(bytes_ / channels_, chunk);
    double hops = tree_param(kTreeBase) +
                  2 * (per_node_ - 1) * (tree_param(kTreeStep) + within_seconds(message));
    if (nodes_ > 1) {
      hops += 2 * levels() *
              (hop_seconds(kNetTreeStep, message) +
               network_.seconds(message * channels_, choice_.algorithm, choice_.protocol, true));
    }
    const double wire = 2 * bytes_ * (per_node_ - 1) / per_node_;
    return terms_of(hops, port_seconds(wire), tree_bytes(), wire);
  }

  /// One chunk of one channel to the next GPU of the node.
  double within_seconds(double message) const {
    if (nodes_ == 1 || choice_.protocol != Simple || !read_.has(Param::NcclTreeChannelRate))
      return 0;
    return message / read_.rate(Param::NcclTreeChannelRate);
  }

  /// Through the NICs of a node, up and down.
  double tree_bytes() const { return 2 * bytes_ * (nodes_ - 1) / nodes_; }
  double levels() const { return std::bit_width(topology_.nodes) - 1; }

  /// What filling a pipeline costs: all of it for large sizes, half of it at `half`.
  double fill_seconds(Param fill, Param half) const {
    return read_.seconds(fill) * bytes_ / (bytes_ + read_.value(half));
  }

  /// The switches add up and spread; NVLSTree has a tree over the nodes for each GPU's part.
  Terms nvls() const {
    const bool all_reduce = kind_ == CollectiveKind::AllReduce;
    const double switches = all_reduce ? bytes_ / read_.rate(Param::NcclNvlsShare)
                                       : port_seconds(bytes_ * (per_node_ - 1) / per_node_);
    double hops = read_.seconds(Param::NcclNvlsBase);
    if (nodes_ > 1) {
      hops += 2 * levels() * network_.value(kNetTreeStep[choice_.protocol]);
      hops += network_.value(Param::NcclNvlsTreeFill) * bytes_ /
              (bytes_ + network_.value(Param::NcclNvlsTreeFillSize));
    } else {
      hops += fill_seconds(Param::NcclNvlsFill, Param::NcclNvlsFillSize);
    }
    return terms_of(hops, switches, tree_bytes(), bytes_);
  }

  /// One GPU in each node, messages that double: as many hops as the number of ranks has bits.
  Terms pat() const {
    const double wire = bytes_ * (ranks_ - 1) / ranks_;
    const double count = std::bit_width(topology_.ranks() - 1);
    const double hops =
        read_.seconds(ring_.base) + count * hop_seconds(kNetRingStep, wire / ranks_);
    return terms_of(hops, port_seconds(wire), wire, wire);
  }

  Reading& read_;
  const Topology& topology_;
  CollectiveKind kind_;
  const Choice& choice_;
  double bytes_, nodes_, ranks_, per_node_, channels_;
  RingParams ring_;
  Network network_;
};

}  // namespace

std::optional<Terms> hop_time(Reading& read, const Tuning& tuning, CollectiveKind kind,
                              const Choice& choice, Bytes bytes) {
  // The machine's times are those of its NVLink.
  if (tuning.leaves_nvlink() || tuning.topology.is_wider_than_bridges()) return {};
  return HopTime{read, tuning, kind, choice, static_cast<double>(bytes.count)}.terms();
}

}  // namespace foretrace::nccl
