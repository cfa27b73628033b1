// What the channels of an operation's ranks do, as a graph: stages (one rank's channels in one
// role) that pass slices on to each other over links (a channel's buffer at the receiver, whose
// places are the sender's credits). Pure: no engine, no time of day.
#pragma once

#include <cstdint>
#include <vector>

#include "models/nccl/time/slices.h"
#include "sim/chunk/queue.h"

namespace foretrace::sim {

inline constexpr std::uint32_t kNowhere = 0xffffffff;
/// Of one operation: 2 GiB of stages and links, as all_to_all of 2,048 ranks has.
inline constexpr std::uint64_t kMostLinks = std::uint64_t{1} << 22;
/// Of all operations of a program together: a minute of work or two.
inline constexpr std::uint64_t kMostMessages = std::uint64_t{1} << 25;

struct ChunkLink {
  std::uint32_t from = kNowhere;  ///< stage
  std::uint32_t to = kNowhere;    ///< stage; nowhere: whoever takes the slices is always ready
  std::uint32_t to_rank = 0;
  std::uint32_t way = kNowhere;  ///< ChunkNetwork::add_way: what lies between the nodes
};

/// A role of a rank: takes a slice from each of its inputs, then sends one to each of its outputs.
struct ChunkStage {
  std::uint32_t rank = 0;
  std::vector<std::uint32_t> inputs, outputs;  ///< links
};

/// nccl::Pass in picoseconds.
struct ChunkPass {
  std::uint64_t count = 0;
  std::uint32_t slices = 1;
  std::uint32_t turns = 1;  ///< pieces in which a slice takes the port
  ChunkTime before = 0, work = 0, port = 0, receive = 0;
  ChunkTime nic = 0;  ///< of each link of a way
  /// Of the port, whole picoseconds.
  ChunkTime turn() const { return turns == 1 ? port : port / turns; }
};

struct ChunkProgram {
  /// Ring: a pass has `sends` steps that send, all but the first after receiving, and one that only
  /// receives. Otherwise every step takes from all inputs and gives to all outputs.
  bool ring = false;
  std::uint32_t sends = 1;
  /// All ranks end with the last one: chains over several nodes, as their prices at flow fidelity
  /// have it.
  bool together = false;
  bool by_kernel = true;  ///< false: a copy engine's, which the GPU's memory does not slow down
  ChunkTime fixed = 0;    ///< from a rank's begin to its first step
  ChunkTime hop = 0;      ///< streams: from a slice's begin here to its begin at the next stage
  ChunkPass full, last;
  std::uint64_t window = 1;  ///< slices
  std::uint32_t ranks = 0;
  std::vector<ChunkStage> stages;  ///< those of a rank stand together, in the order of the ranks
  std::vector<ChunkLink> links;

  /// Messages from rank to rank, folded channels counted once.
  /// Throws UsageError when they are more than can be simulated.
  std::uint64_t messages() const;
};

/// What a collective would take, without making its program: none where it stays a flow.
struct ChunkSize {
  double links = 0;
  double messages = 0;
};
ChunkSize chunk_size(const nccl::Slices& slices, CollectiveKind kind, std::uint32_t ranks,
                     std::uint32_t nodes);

/// The program of a collective; empty (no stages) for nccl::Shape::Whole. `lanes`: groups of
/// channels of a ring that go on independently of each other.
ChunkProgram collective_program(const nccl::Slices& slices, CollectiveKind kind,
                                std::uint32_t ranks, std::uint32_t nodes, std::uint32_t root,
                                std::uint32_t lanes = 1);

/// Rank 0 sends to rank 1.
ChunkProgram pair_program(const nccl::Slices& slices);

/// `bytes` from rank 0 to rank 1 by a copy engine of so many bytes per second, where a port moves
/// `port` of them.
ChunkProgram copy_program(std::uint64_t bytes, double rate, double port);

}  // namespace foretrace::sim
