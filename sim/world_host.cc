// What lies in a host: its cores, its memory and storage, and the routes of copies through them.
#include <fmt/format.h>

#include <set>

#include "models/cost/host_work.h"
#include "scenarios/program/program_walk.h"
#include "sim/world.h"

namespace foretrace::sim {

/// The cores, the memory and the storage of a host. Copies to and from GPUs go through the memory
/// too, but only where the CPU does: what they reach among themselves is host_memory_of_pair.
void World::add_host_links() {
  std::set<std::uint32_t> teams;
  bool reads = false;
  any_op(program_, [&](const Op& op) {
    if (const auto* work = std::get_if<HostParallel>(&op.kind)) teams.insert(work->threads);
    reads |= std::holds_alternative<ReadFile>(op.kind);
    return false;
  });
  if (teams.empty() && !reads) return;
  Reading read{machine_};
  const auto rate = [](double value) { return Bandwidth::gigabytes_per_second(value * 1e-9); };
  for (std::uint32_t n = 0; n < program_.nodes; ++n) {
    node_links_[n].host = HostLinks{
        engine_.add_link(fmt::format("node{}.cores", n), rate(cost::parallel_flops(read, 0))),
        engine_.add_link(fmt::format("node{}.memory", n), rate_of(Param::HostMemoryBandwidth)),
        engine_.add_link(fmt::format("node{}.storage", n), rate_of(Param::StorageBandwidth))};
  }
  for (const std::uint32_t threads : teams) {
    team_caps_[threads] = {
        engine_.add_link(fmt::format("team{}.flops", threads),
                         rate(cost::parallel_flops(read, threads)), LinkSharing::PerFlow),
        engine_.add_link(fmt::format("team{}.memory", threads),
                         rate(cost::parallel_bandwidth(read, threads)), LinkSharing::PerFlow)};
  }
  if (reads) {
    caps_.emplace(
        Param::StorageReader,
        engine_.add_link("storage.reader", rate_of(Param::StorageReader), LinkSharing::PerFlow));
  }
}

const World::HostLinks& World::host_links(const Process& process) const {
  const auto& links = node_links_[node_of(gpu_index(process.index, 0))].host;
  FORETRACE_CHECK(links.has_value(), "a program for the CPU has the CPU's links");
  return *links;
}

PathId World::cores(const Process& process, std::uint32_t threads) {
  return engine_.path({host_links(process).cores, team_caps_.at(threads).flops});
}

PathId World::host_memory(const Process& process, std::uint32_t threads) {
  return engine_.path({host_links(process).memory, team_caps_.at(threads).memory});
}

PathId World::storage(const Process& process) {
  const HostLinks& links = host_links(process);
  return engine_.path({links.storage, caps_.at(Param::StorageReader), links.memory});
}

/// Of two GPUs that are neighbours. Both directions of one GPU go at their full rate, those of two
/// do not. They lose less where the program's pinned memory fits in the last-level cache, which
/// the GPUs read from and write to (blind rounds 1 to 26, `all_four` of `copies_of_two_gpus`).
std::optional<LinkId> World::host_memory_of_pair(std::uint32_t gpu) {
  const bool known = machine_.has(Param::PairCopies) && machine_.has(Param::PairCopiesMemory) &&
                     machine_.has(Param::PairCopiesCache);
  const std::uint32_t first = gpu - place_of(gpu).index % 2;
  const std::uint32_t second = first + 1;
  const auto runs = [this](std::uint32_t one) { return runs_[one / program_.devices]; };
  const bool has_both = second < program_.processes * program_.devices &&
                        node_of(second) == node_of(first) && runs(first) && runs(second);
  if (!known || !has_both) return std::nullopt;
  if (gpu == second) return pcie(first).pair;
  double pinned = 0;
  for (const Buffer& buffer : program_.buffers) {
    if (buffer.memory == MemoryKind::Pinned) pinned += static_cast<double>(buffer.size.count);
  }
  if (program_.devices == 1) pinned *= 2;  // a process for each GPU
  const bool cached = pinned <= static_cast<double>(machine_.size(Param::PairCopiesCache).count);
  return engine_.add_link(fmt::format("gpu{}.pair", first),
                          rate_of(cached ? Param::PairCopies : Param::PairCopiesMemory));
}

/// Through a GPU's links of one direction: pinned memory at that direction's own rate and beside
/// its neighbour's copies, other memory at a rate of its own.
PathId World::host_route(std::uint32_t gpu, LinkId host_end, LinkId gpu_end,
                         std::optional<Param> capped) {
  std::vector<LinkId> links{host_end, gpu_end, pcie(gpu).both};
  if (capped) {
    links.push_back(cap(*capped));
  } else if (pcie(gpu).pair) {
    links.push_back(*pcie(gpu).pair);
  }
  if (const auto& host = node_links_[node_of(gpu)].host) links.push_back(host->memory);
  return engine_.path(links);
}

PathId World::host_to_device(const Process& process, std::uint32_t device, Param rate) {
  const std::uint32_t gpu = gpu_index(process.index, device);
  const bool pinned = rate == Param::H2dBandwidth;
  return host_route(gpu, node_links_[node_of(gpu)].host_read, pcie(gpu).in,
                    pinned ? std::nullopt : std::optional{rate});
}

PathId World::device_to_host(const Process& process, std::uint32_t device, Param rate) {
  const std::uint32_t gpu = gpu_index(process.index, device);
  const bool pinned = rate == Param::D2hBandwidth;
  return host_route(gpu, node_links_[node_of(gpu)].host_write, pcie(gpu).out,
                    pinned ? std::nullopt : std::optional{rate});
}

}  // namespace foretrace::sim
