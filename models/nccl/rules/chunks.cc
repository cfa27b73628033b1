#include "models/nccl/rules/chunks.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace foretrace::nccl {
namespace {

using enum Algorithm;
using enum Function;
using enum Protocol;

/// Chunks are whole multiples of this many bytes.
std::uint64_t grain(Protocol protocol) {
  if (protocol == LL) return 16;
  return protocol == LL128 ? 1920 : 512;
}

/// Buffer steps in a chunk and in a slice: src/include/collectives.h.
std::pair<std::uint64_t, std::uint64_t> steps_of(Function function, const Plan& plan) {
  const bool pipelines = plan.protocol == Simple && plan.algorithm == Ring;
  if (!pipelines || function == Broadcast || function == Reduce) return {1, 1};
  return {kBufferSteps / 2, kBufferSteps / 4};
}

using Limits = std::pair<std::uint64_t, std::uint64_t>;  // pieces of work, largest chunk

/// A small operation takes smaller chunks, so that the pipeline fills: below `first` passes of
/// `passes` bytes a chunk has at most `second`.
std::uint64_t cut(std::uint64_t chunk, std::uint64_t bytes, std::uint64_t heads,
                  std::initializer_list<Limits> limits) {
  for (const auto& [passes, largest] : limits) {
    if (bytes < passes * heads * chunk && chunk > largest) chunk = largest;
  }
  return chunk;
}

std::uint64_t tree_ll128_chunk(const Tuning& tuning, std::uint64_t bytes, std::uint64_t chunk) {
  const int levels = static_cast<int>(std::bit_width(tuning.topology.nodes)) - 1;
  const auto per_node = static_cast<float>(tuning.topology.gpus_per_node);
  const auto depth = static_cast<float>(1 + levels + 0.1 * static_cast<double>(per_node));
  const auto few = [&](float pieces) {
    return static_cast<float>(bytes / chunk) < depth * pieces / per_node;
  };
  while (few(64) && chunk > 131072) chunk /= 2;
  while (few(16) && chunk > 32768) chunk /= 2;
  return chunk;
}

std::uint64_t nvls_chunk(const Tuning& tuning, const Plan& plan, std::uint64_t bytes,
                         std::uint64_t chunk) {
  const std::uint64_t heads = tuning.graphs.nvls.channels;
  const auto set = static_cast<std::uint64_t>(tuning.settings.get(Number::NvlsChunk, 128 << 10));
  if (plan.algorithm == Nvls) {
    return cut(std::min(chunk, set), bytes, heads, {{64, 65536}, {8, 32768}, {2, 16384}});
  }
  chunk = tuning.topology.nodes >= 4 ? std::min<std::uint64_t>(set, 65536) : set;
  return cut(chunk, bytes, heads, {{32, 262144}, {16, 131072}, {4, 65536}, {1, 32768}});
}

std::uint64_t chunk_of(const Tuning& tuning, Function function, const Plan& plan,
                       std::uint64_t bytes) {
  const std::uint64_t step = tuning.buffer_bytes[index_of(plan.protocol)] / kBufferSteps;
  std::uint64_t chunk = step * steps_of(function, plan).first;
  if (plan.protocol == LL) chunk /= 2;
  if (plan.protocol == LL128) chunk = chunk / 16 * 15;
  if (plan.algorithm == Nvls || plan.algorithm == NvlsTree) {
    chunk = nvls_chunk(tuning, plan, bytes, chunk);
  } else if (plan.algorithm == Tree && plan.protocol == LL128) {
    chunk = tree_ll128_chunk(tuning, bytes, chunk);
  } else if (plan.algorithm == Pat) {
    const std::uint64_t pieces = function == AllGather ? 32 : 16;
    while (chunk * pieces > bytes && chunk > 65536) chunk /= 2;
  }
  return chunk / grain(plan.protocol) * grain(plan.protocol);
}

/// Steps and chunks of one pass.
std::pair<std::uint64_t, std::uint64_t> pass_of(const Tuning& tuning, Function function,
                                                const Plan& plan) {
  const std::uint64_t ranks = tuning.ranks();
  if (plan.algorithm == Nvls || plan.algorithm == NvlsTree) {
    return {1, tuning.graphs.nvls.channels};
  }
  if (plan.algorithm != Ring || function == Broadcast || function == Reduce) return {1, 1};
  return {function == AllReduce ? 2 * (ranks - 1) : ranks - 1, ranks};
}

}  // namespace

std::uint64_t ranks_sharing(Function function, std::uint32_t ranks) {
  return function == AllGather || function == ReduceScatter ? ranks : 1;
}

ChannelShare share_of(const Tuning& tuning, Function function, const Plan& plan,
                      std::uint64_t bytes) {
  if (bytes == 0) return {};
  const std::uint64_t all = bytes * ranks_sharing(function, tuning.ranks());
  const auto [chunk_steps, slice_steps] = steps_of(function, plan);
  const auto [pass_steps, pass_chunks] = pass_of(tuning, function, plan);
  ChannelShare share;
  share.bytes = bytes;
  share.chunk_bytes = chunk_of(tuning, function, plan, all);
  share.slice_bytes = share.chunk_bytes / chunk_steps * slice_steps;
  const std::uint64_t pass_bytes = pass_chunks * share.chunk_bytes;
  share.loops = (all + pass_bytes - 1) / pass_bytes;
  share.steps = pass_steps * share.loops * chunk_steps;
  return share;
}

}  // namespace foretrace::nccl
