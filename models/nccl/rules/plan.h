// From NCCL's choice to its kernel: how many channels and threads, how the bytes are split over the
// channels, and in what chunks and steps each channel moves them (nccl src/enqueue.cc).
#pragma once

#include <cstdint>
#include <vector>

#include "models/nccl/rules/tuning.h"

namespace foretrace::nccl {

/// What one channel moves of an operation. Bytes are those of the call's count: all_gather's and
/// reduce_scatter's per rank.
struct ChannelShare {
  std::uint64_t bytes = 0;
  std::uint64_t chunk_bytes = 0;  ///< payload of one chunk
  std::uint64_t slice_bytes = 0;  ///< handed over to the next rank at once
  std::uint64_t loops = 0;        ///< passes over the ring or tree
  std::uint64_t steps = 0;        ///< buffer steps of all passes, as the network proxy counts them
};

struct Plan {
  Algorithm algorithm = Algorithm::Ring;
  Protocol protocol = Protocol::Simple;
  float price_us = 0;              ///< of all operations that were chosen for together
  float latency_us = 0;            ///< the part of it that does not grow with the bytes
  std::uint32_t max_channels = 1;  ///< by the bytes each thread should have
  std::uint32_t first_channel = 0;
  std::uint32_t channels = 1;      ///< that take part
  std::uint32_t threads = 512;     ///< of each CTA of the kernel
  bool direct = false;             ///< ranks write into each other's buffers
  ChannelShare low, middle, high;  ///< of the first channel, those between, the last
};

Plan plan_of(const Tuning& tuning, const Request& request);

/// The operations of one group on one communicator, in the order of the calls: operations alike are
/// chosen for together, and all share the channels of one kernel.
std::vector<Plan> plan_group(const Tuning& tuning, const std::vector<Request>& requests);

/// The channels, one bit each, of the kernel that runs `plans` together.
std::uint64_t kernel_mask(const std::vector<Plan>& plans);
/// Its CTAs.
std::uint32_t kernel_channels(const std::vector<Plan>& plans);

}  // namespace foretrace::nccl
