// What NCCL fixes when a communicator is made: its channels, its buffers, and the price table from
// which it chooses algorithm and protocol of every operation. All pure functions; prices are
// computed in NCCL's own mixture of float and double, so they agree to the last digit.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/nccl/topology/topology.h"
#include "scenarios/base/values/units.h"

namespace foretrace::nccl {

/// A price table: NCCL's bandwidths (GB/s) or latencies (us).
using Table = std::array<std::array<std::array<float, kProtocols>, kAlgorithms>, kFunctions>;

struct Tuning {
  Topology topology;
  Version version;
  Settings settings;
  const Constants* constants = nullptr;
  Graphs graphs;
  std::uint32_t channels = 1;               ///< "coll channels"
  std::uint32_t nvls_channels = 0;          ///< 0: no NVLS here
  std::uint32_t p2p_channels = 1;           ///< "p2p channels"
  std::uint32_t p2p_channels_per_peer = 1;  ///< "p2p channels per peer"
  bool all_nvlink = false;
  PerProtocol<std::uint64_t> buffer_bytes{};  ///< of one channel and connection
  std::uint64_t p2p_chunk_bytes = 0;
  PerAlgorithm<std::uint32_t> max_threads{};
  PerAlgorithm<std::uint32_t> bytes_per_thread{};  ///< below it fewer channels, then threads
  Table bandwidth{};
  Table latency{};

  std::uint32_t ranks() const { return topology.ranks(); }
  /// The GPUs have NVLink, but NCCL_P2P_DISABLE or NCCL_P2P_LEVEL sends all data through the memory
  /// of the host.
  bool leaves_nvlink() const { return topology.has_nvlink() && settings.p2p_level() == Path::Loc; }
  /// All data stay on the NVLink of one node: what a machine file's times of rings were measured
  /// on.
  bool stays_on_nvlink() const {
    return topology.nodes == 1 && topology.has_nvlink() && !leaves_nvlink() &&
           !topology.is_wider_than_bridges();
  }
  const SearchGraph& graph(Algorithm algorithm) const;
};

Tuning tune(const Topology& topology, Version version, const Settings& settings = {},
            std::optional<Rings> rings = {});

/// One collective call that NCCL prices, or several of a group as one.
struct Request {
  Function function = Function::AllReduce;
  Bytes bytes;  ///< NCCL's nBytes: the whole vector (all_gather: gathered; reduce_scatter: input)
  DataType type = DataType::Float32;
  RedOp op = RedOp::Sum;
  std::uint32_t pipelined = 1;  ///< operations of the group per channel, rounded up
  bool direct = false;          ///< the buffers allow it: see registration.h
};

/// One pair of algorithm and protocol, and what NCCL asks for it.
struct Candidate {
  Algorithm algorithm = Algorithm::Ring;
  Protocol protocol = Protocol::Simple;
  float latency_us = 0;
  float bandwidth_gbps = 0;  ///< algorithm bandwidth, corrections for this size included
  float price_us = 0;
  std::string out;  ///< why it cannot be taken; empty when it can
};

/// All candidates in NCCL's order.
std::vector<Candidate> priced_candidates(const Tuning& tuning, const Request& request);

/// The cheapest, the first of equals. Throws UsageError where the settings leave none.
Candidate cheapest(const Tuning& tuning, const Request& request);

/// What runs in the end: of a collective, or of one transfer.
struct Choice {
  Algorithm algorithm = Algorithm::Ring;
  Protocol protocol = Protocol::Simple;
  std::uint32_t channels = 1;   ///< CTAs of the kernel
  std::uint32_t threads = 512;  ///< per CTA
  bool direct = false;          ///< straight into registered buffers: see registration.h
};

}  // namespace foretrace::nccl
