#include "models/nccl/rules/tuning.h"

#include <algorithm>

#include "models/nccl/rules/p2p.h"
#include "models/nccl/rules/prices.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::nccl {
namespace {

using enum Number;

std::uint32_t number(const Settings& settings, Number setting, std::uint32_t otherwise) {
  const std::int64_t value = settings.get(setting, otherwise);
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(value, 0, kMaxChannels));
}

std::uint32_t min_ctas(const Settings& settings) {
  return std::min(number(settings, MinCtas, 1), number(settings, MaxCtas, kMaxChannels));
}

/// src/graph/connect.cc, ncclTopoPostset: two CTAs per search channel, then the settings.
void set_channels(Tuning& tuning) {
  const Settings& settings = tuning.settings;
  std::uint32_t channels = std::min(tuning.graphs.tree.channels, tuning.graphs.ring.channels);
  tuning.graphs.tree.channels = tuning.graphs.ring.channels = channels;
  channels = std::min(kMaxChannels, 2 * channels);
  if (tuning.topology.capability >= 90 && tuning.topology.nodes > 1 &&
      tuning.graphs.ring.intra_gbps > 45 && channels < 16) {
    channels *= 2;
  }
  channels = std::min({channels, std::max(number(settings, MaxChannels, kMaxChannels), 1u),
                       number(settings, MaxCtas, kMaxChannels)});
  channels = std::max({channels, number(settings, MinChannels, 0), min_ctas(settings)});
  tuning.channels = channels;
}

/// src/transport/nvls.cc, ncclNvlsInit.
void set_nvls_channels(Tuning& tuning) {
  if (tuning.graphs.nvls.channels == 0) return;
  const bool blackwell = tuning.topology.capability >= 100;
  const std::uint32_t by_generation = !blackwell ? 16 : tuning.topology.nodes > 1 ? 32 : 24;
  const std::uint32_t wanted = number(tuning.settings, NvlsCtas, by_generation);
  tuning.nvls_channels = std::max(min_ctas(tuning.settings),
                                  std::min(number(tuning.settings, MaxCtas, kMaxChannels), wanted));
  // Before 2.28 the other algorithms got as many.
  if (tuning.version < Version{2, 28, 0}) {
    tuning.channels = std::max(tuning.channels, tuning.nvls_channels);
  }
}

/// src/init.cc, computeBuffSizes.
void set_buffers(Tuning& tuning) {
  const auto size = [&](Number setting, std::int64_t otherwise) {
    return static_cast<std::uint64_t>(tuning.settings.get(setting, otherwise));
  };
  tuning.buffer_bytes = {size(LlBuffer, 512 << 10), size(Ll128Buffer, 120 * 640 * 8 * 8),
                         size(Buffer, 4 << 20)};
  const bool wide = tuning.version >= Version{2, 30, 0} && tuning.topology.cpu == Cpu::Arm &&
                    tuning.topology.capability >= 100;
  if (tuning.topology.nodes > 1) {
    tuning.p2p_chunk_bytes = (wide ? 2 : 1) * size(P2pNetChunk, 128 << 10);
  } else {
    tuning.p2p_chunk_bytes =
        tuning.all_nvlink ? size(P2pNvlChunk, 512 << 10) : size(P2pPciChunk, 128 << 10);
  }
  tuning.p2p_chunk_bytes = std::min(tuning.p2p_chunk_bytes,
                                    tuning.buffer_bytes[index_of(Protocol::Simple)] / kBufferSteps);
}

/// src/graph/tuning.cc, getNthreads: what is no multiple of a warp becomes the largest.
std::uint32_t threads(std::int64_t set, std::uint32_t least, std::uint32_t most,
                      std::uint32_t otherwise) {
  if (set <= 0) return otherwise;
  if (set % 32 != 0 || set > most) return most;
  return std::max(static_cast<std::uint32_t>(set), least);
}

void set_threads(Tuning& tuning) {
  const SearchGraph& ring = tuning.graphs.ring;
  const std::int64_t set = tuning.settings.get(Threads, 0);
  const bool slow = ring.intra_gbps * static_cast<float>(ring.channels) <= 12;
  for (const Algorithm algorithm : {Algorithm::Tree, Algorithm::Ring}) {
    const bool few = slow && algorithm == Algorithm::Ring;
    tuning.max_threads[index_of(algorithm)] = {
        threads(set, 64, 512, 512), threads(tuning.settings.get(Ll128Threads, 0), 160, 640, 640),
        threads(set, 64, 512, few ? 256 : 512)};
  }
  for (auto& by_protocol : tuning.bytes_per_thread) by_protocol = {8, 8, 64};
  tuning.bytes_per_thread[index_of(Algorithm::Ring)][index_of(Protocol::LL)] *= tuning.ranks();
  using enum Algorithm;
  for (const Algorithm algorithm : {CollNetDirect, CollNetChain, Nvls, NvlsTree}) {
    tuning.max_threads[index_of(algorithm)].back() = 640;
  }
  for (const Algorithm algorithm : {CollNetDirect, CollNetChain}) {
    tuning.bytes_per_thread[index_of(algorithm)].back() = 512;
  }
}

}  // namespace

const SearchGraph& Tuning::graph(Algorithm algorithm) const {
  switch (algorithm) {
    case Algorithm::Tree:
    case Algorithm::Pat:
      return graphs.tree;
    case Algorithm::Nvls:
    case Algorithm::NvlsTree:
      return graphs.nvls;
    case Algorithm::Ring:
    case Algorithm::CollNetDirect:
    case Algorithm::CollNetChain:
      break;
  }
  return graphs.ring;
}

Tuning tune(const Topology& topology, Version version, const Settings& settings,
            std::optional<Rings> rings) {
  FORETRACE_CHECK(topology.ranks() >= 1, "a communicator has ranks");
  Tuning tuning;
  tuning.topology = topology;
  tuning.version = version;
  tuning.settings = settings;
  tuning.constants = &constants_of(version);
  tuning.graphs = search_graphs(topology, *tuning.constants, settings, rings);
  tuning.all_nvlink = tuning.graphs.gpu_path < Path::Pix;
  set_channels(tuning);
  set_nvls_channels(tuning);
  set_buffers(tuning);
  set_threads(tuning);
  set_p2p_channels(tuning);
  set_prices(tuning);
  return tuning;
}

}  // namespace foretrace::nccl
