// What lies between GPUs and between nodes: the fabric, its faults, and communicators.
#include <algorithm>
#include <map>
#include <set>

#include "models/nccl/topology/machine.h"
#include "scenarios/program/program_walk.h"
#include "sim/host/warm_state.h"
#include "sim/world.h"

namespace foretrace::sim {
namespace {

/// In their order: GPUs whose links are joined name the same ones.
std::vector<LinkId> each_once(const std::vector<LinkId>& links) {
  std::vector<LinkId> once;
  std::set<LinkId> seen;
  for (const LinkId link : links) {
    if (seen.insert(link).second) once.push_back(link);
  }
  return once;
}

}  // namespace

/// Its node, and which of the node's GPUs it is.
Nic World::place_of(std::uint32_t gpu) const {
  const std::uint32_t process = gpu / program_.devices;
  return {node_of_process(program_, process),
          place_in_node(program_, process) * program_.devices + gpu % program_.devices};
}

double World::share_of(MachineFault::Part part, std::uint32_t gpu) const {
  return foretrace::share_of(faults_, part, place_of(gpu));
}

double World::jitter_of(std::uint32_t gpu) const {
  const Nic place = place_of(gpu);
  double jitter = 0;
  for (const MachineFault& fault : faults_) {
    const bool is_of =
        fault.part == MachineFault::Part::Gpu && fault.is_of(place.node, place.index);
    if (is_of) jitter = std::max(jitter, fault.jitter);
  }
  return jitter;
}

/// Between nodes that have something to say to each other.
void World::add_fabric() {
  const auto& fabric = program_.fabric ? program_.fabric : machine_.fabric;
  if (!fabric || program_.nodes == 1 || program_.communicators.empty()) return;
  const std::uint32_t gpus = std::max(machine_.gpus_per_node, 1U);
  const FabricNodes nodes{program_.nodes, gpus, machine_.node.nics.value_or(gpus),
                          nccl::nic_bytes_per_second(machine_)};
  fabric_ =
      std::make_unique<NetworkLinks>(engine_, FabricLinks{nodes, *fabric, faults_}, network_.get());
}

const nccl::Tuning& World::tuning_of(const Communicator& communicator) {
  std::set<std::uint32_t> nodes;
  for (const RankPlace& place : communicator.members) {
    nodes.insert(node_of(gpu_index(place.process, place.device)));
  }
  const std::pair key{static_cast<std::uint32_t>(communicator.members.size()),
                      static_cast<std::uint32_t>(nodes.size())};
  const auto known = tunings_.find(key);
  if (known != tunings_.end()) return known->second;
  return tunings_
      .emplace(key, nccl::tuning_for(machine_, key.first, key.second, program_.environment))
      .first->second;
}

/// NCCL lets a process' GPUs reach each other's memory when it connects them, and leaves it so:
/// then copies between them go straight, too. Seen in rounds 2 and 4 of reports/blind.
void World::open_to_peers(const Communicator& communicator) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> devices;  // by process
  for (const RankPlace& place : communicator.members) {
    devices[place.process].push_back(place.device);
  }
  for (const auto& [process, of_process] : devices) {
    for (const std::uint32_t from : of_process) {
      const std::size_t row = std::size_t{from} * program_.devices;
      for (const std::uint32_t to : of_process) processes_[process].peer_access[row + to] = true;
    }
  }
}

void World::add_communicators(Engine& engine) {
  const bool warm = program_.warmup > 0;
  const std::set<std::uint32_t> captured = captured_communicators(program_);
  for (const Communicator& declared : program_.communicators) {
    if (program_.devices > 1) open_to_peers(declared);
    std::vector<std::uint32_t> running;
    for (std::uint32_t rank = 0; rank < declared.members.size(); ++rank) {
      if (runs_[declared.members[rank].process]) running.push_back(rank);
    }
    auto comm =
        std::make_unique<NcclComm>(engine, machine_, declared, tuning_of(declared), warm, running);
    const auto links = [this, &declared](std::uint32_t rank) -> const GpuLinks& {
      const RankPlace& place = declared.members[rank];
      return gpu_links_[gpu_index(place.process, place.device)];
    };
    const Duration memory_least = machine_.has(Param::NcclMemorySlowdown)
                                      ? machine_.time(Param::NcclMemoryLeast)
                                      : Duration{0};
    const auto path_of = [&engine, memory_least](const std::vector<LinkId>& ports,
                                                 const std::vector<NcclMemory>& memories) {
      std::vector<LinkId> shared;
      for (const NcclMemory& memory : memories) shared.push_back(memory.link->link());
      shared = each_once(shared);
      std::vector<LinkId> all = each_once(ports);
      all.insert(all.end(), shared.begin(), shared.end());
      TransferPath path{engine.path(all), std::nullopt};
      if (!shared.empty()) {
        path.memory = {engine.path(shared), memories.front().idle, memory_least};
      }
      return path;
    };
    std::vector<LinkId> ports;
    std::vector<NcclMemory> memories;
    for (const std::uint32_t rank : running) {
      const GpuLinks& gpu = links(rank);
      ports.insert(ports.end(), {gpu.nvlink_out, gpu.nvlink_in});
      if (gpu.nccl_memory) memories.push_back(*gpu.nccl_memory);
    }
    // Pairs are many and few of them talk: their paths are made when they do.
    if (!running.empty())
      comm->set_paths(path_of(ports, memories), [=](std::uint32_t from, std::uint32_t to) {
        std::vector<NcclMemory> of_pair;
        for (const std::uint32_t rank : {from, to}) {
          if (links(rank).nccl_memory) of_pair.push_back(*links(rank).nccl_memory);
        }
        return path_of({links(from).nvlink_out, links(to).nvlink_in}, of_pair);
      });
    if (warm && captured.contains(static_cast<std::uint32_t>(communicators_.size()))) {
      comm->set_captured();
    }
    std::vector<Nic> places;
    for (const RankPlace& place : declared.members) {
      places.push_back(place_of(gpu_index(place.process, place.device)));
    }
    comm->set_places(places);
    const nccl::Tuning& tuning = tuning_of(declared);
    if (fabric_ != nullptr && tuning.topology.nodes > 1) {
      comm->set_fabric(
          std::make_unique<CommNetwork>(*fabric_, places, tuning.topology.has_nvlink()));
    }
    if (network_ != nullptr) {
      std::vector<std::uint32_t> gpus;
      for (const RankPlace& place : declared.members) {
        gpus.push_back(gpu_index(place.process, place.device));
      }
      comm->set_network(*network_, std::move(gpus));
    }
    communicators_.push_back(std::move(comm));
  }
}

}  // namespace foretrace::sim
