#include "sim/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <set>

#include "models/cost/host_work.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/program/program_walk.h"
#include "sim/host/warm_state.h"

namespace foretrace::sim {
namespace {

/// The internal streams of process groups, which only their members make: those that the threads of
/// a process name, by process.
std::map<std::uint32_t, std::set<std::uint32_t>> group_streams(const Program& program) {
  std::map<const foretrace::HostThread*, std::set<std::uint32_t>> named;
  for_each_op(program, [&](const foretrace::HostThread& thread, const Op& op, Around) {
    const StreamRef* stream = op_facts(op.kind).stream;
    if (stream != nullptr) named[&thread].insert(stream->first.value);
  });
  std::map<std::uint32_t, std::set<std::uint32_t>> of;
  for (const auto& [thread, streams] : named) {
    for (const std::uint32_t process : thread->processes) {
      for (const std::uint32_t first : streams) {
        for (std::uint32_t d = 0; d < program.devices; ++d) of[process].insert(first + d);
      }
    }
  }
  return of;
}

/// "world.stream(0)": no name of a scenario has a dot.
bool is_internal(const Stream& stream) { return stream.name.find('.') != std::string::npos; }

bool uses_nccl(const Program& program, std::uint32_t process) {
  return std::ranges::any_of(program.communicators, [process](const Communicator& one) {
    return std::ranges::find(one.members, process, &RankPlace::process) != one.members.end();
  });
}

/// With the memory of one kind (of the device; of the host, whatever it is) that is allocated
/// before the run: what a program allocates itself finds room beside it.
MemoryPieces pieces_before(const Program& program, MemoryKind kind, std::uint32_t device) {
  MemoryPieces pieces;
  if (std::ranges::none_of(program.buffers, &Buffer::allocated_by_program)) return pieces;
  for (std::uint32_t id = 0; id < program.buffers.size(); ++id) {
    const Buffer& buffer = program.buffers[id];
    const bool is_here = kind != MemoryKind::Device || buffer.device == device;
    if (buffer.memory != kind || !is_here || buffer.by_nccl || buffer.allocated_by_program)
      continue;
    pieces.allocate(id, buffer.size);
  }
  return pieces;
}

}  // namespace

World::World(Engine& engine, const Program& program, const Machine& machine, Recorder& recorder,
             Fidelity fidelity, std::vector<bool> runs)
    : engine_{engine},
      program_{program},
      machine_{machine},
      runs_{std::move(runs)},
      costs_{machine},
      gaps_{machine},
      recorder_{recorder},
      faults_{faults_of(program, machine)} {
  if (fidelity == Fidelity::Chunk) {
    network_ = std::make_unique<ChunkNetwork>(engine, program.processes * program.devices);
  }
  add_links();
  add_fabric();
  for (std::uint32_t gpu = 0; gpu < gpu_links_.size(); ++gpu) {
    const GpuLinks& links = gpu_links_[gpu];
    if (!runs_[gpu / program.devices]) {
      gpus_.emplace_back();
      continue;
    }
    gpus_.push_back(std::make_unique<Device>(
        engine, DeviceLimits{machine.count(Param::SmCount), machine.rate(Param::HbmBandwidth),
                             machine.count(Param::CopyEngines), links.nccl_memory,
                             clock_times(machine, program.warmup > 0),
                             1 / share_of(MachineFault::Part::Gpu, gpu), jitter_of(gpu), gpu,
                             machine.without()}));
  }
  barriers_.resize(program.barriers.size());
  const auto used = group_streams(program);
  std::vector<MemoryPieces> pieces;
  for (std::uint32_t d = 0; d < program.devices; ++d) {
    pieces.push_back(pieces_before(program, MemoryKind::Device, d));
  }
  const MemoryPieces pinned_pieces = pieces_before(program, MemoryKind::Pinned, 0);
  for (std::uint32_t p = 0; p < program.processes; ++p) {
    Process& process = processes_.emplace_back(engine, machine, gaps_, p);
    if (!runs_[p]) continue;
    for (std::uint32_t d = 0; d < program.devices; ++d) {
      process.devices.push_back(gpus_[gpu_index(p, d)].get());
    }
    for (const Stream& stream : program.streams) {
      const std::uint32_t lane = recorder.add_lane(
          {LaneKind::Stream, node_of(gpu_index(p, stream.device)), p, stream.device, stream.name});
      process.streams.push_back(make_stream(process, stream, lane));
    }
    const auto own = used.find(p);
    share_hardware_queues(process, own == used.end() ? std::set<std::uint32_t>{} : own->second);
    process.events.resize(program.events.size());
    process.signals.resize(program.signals.size());
    for (std::size_t g = 0; g < program.graphs.size(); ++g) {
      process.graphs.push_back(std::make_unique<GraphExec>(engine));
    }
    process.peer_access.resize(std::size_t{program.devices} * program.devices);
    process.peer_enabled.resize(process.peer_access.size());
    process.pinned.resize(program.buffers.size());
    process.host_reads.resize(program.buffers.size());
    process.touched.resize(program.buffers.size());
    warm_cache(program, machine, process);
    process.pools.resize(program.devices);
    process.pieces = pieces;
    process.pinned_pieces = pinned_pieces;
    if (uses_nccl(program, p)) process.pinned_pieces.add_nccls();
    process.uploads_until.resize(program.devices);
    process.pool_calls_until.resize(program.devices);
    process.contexts.resize(program.devices);
    process.cleared.resize(program.devices);
    for (std::uint32_t d = 0; d < program.devices; ++d) {
      process.level2.emplace_back(memory_of_a_pass(program, d));
    }
  }
  add_communicators(engine);
}

std::unique_ptr<StreamQueue> World::make_stream(Process& process, const Stream& declared,
                                                std::uint32_t lane) {
  auto stream = std::make_unique<StreamQueue>(engine_, *process.devices[declared.device], process,
                                              recorder_, machine_, declared, lane);
  if (declared.kind != StreamKind::NonBlocking && declared.kind != StreamKind::LegacyDefault) {
    StreamQueue& legacy = *process.streams[declared.device];  // the first ones, one per device
    stream->set_legacy(&legacy);
    legacy.add_blocking_peer(*stream);
  }
  return stream;
}

StreamQueue& World::per_thread_stream(Process& process, std::uint32_t thread_lane, StreamId id) {
  auto& stream = process.per_thread[{thread_lane, id}];
  if (stream == nullptr) {
    const StreamQueue& declared = *process.streams[id.value];
    stream = make_stream(process, declared.declared(), declared.lane());
  }
  return *stream;
}

/// Streams take the GPU's hardware queues in turn. With enough of them nobody shares. Of the
/// process groups' streams the process makes those that it uses.
void World::share_hardware_queues(Process& process, const std::set<std::uint32_t>& used) {
  constexpr std::uint32_t kDefaultConnections = 8;  // of CUDA_DEVICE_MAX_CONNECTIONS
  std::uint32_t queues = kDefaultConnections;
  const auto setting = program_.environment.find("CUDA_DEVICE_MAX_CONNECTIONS");
  if (setting != program_.environment.end()) {
    std::from_chars(setting->second.data(), setting->second.data() + setting->second.size(),
                    queues);
  }
  queues = std::clamp(queues, 1U, std::max(1U, machine_.count(Param::HardwareQueues)));
  for (std::uint32_t device = 0; device < program_.devices; ++device) {
    std::vector<StreamQueue*> created;
    for (std::uint32_t id = 0; id < process.streams.size(); ++id) {
      const auto& stream = process.streams[id];
      const Stream& declared = stream->declared();
      if (is_internal(declared) && !used.contains(id)) continue;
      const bool is_default = declared.kind == StreamKind::LegacyDefault ||
                              declared.kind == StreamKind::PerThreadDefault;
      if (declared.device == device && !is_default) created.push_back(stream.get());
    }
    if (created.size() <= queues) continue;
    for (std::uint32_t i = 0; i < created.size(); ++i) {
      created[i]->set_hardware_queue(process.hardware_queues[{device, i % queues}]);
    }
  }
}

std::uint32_t World::gpu_index(std::uint32_t process, std::uint32_t device) const {
  return process * program_.devices + device;
}

std::uint32_t World::node_of(std::uint32_t gpu) const {
  return node_of_process(program_, gpu / program_.devices);
}

void World::add_links() {
  for (std::uint32_t n = 0; n < program_.nodes; ++n) {
    const Bandwidth host = rate_of(Param::HostLinkBandwidth);
    node_links_.push_back({engine_.add_link(fmt::format("node{}.read", n), host),
                           engine_.add_link(fmt::format("node{}.write", n), host), std::nullopt});
  }
  add_host_links();
  const Bandwidth in = rate_of(Param::H2dBandwidth);
  const Bandwidth out = rate_of(Param::D2hBandwidth);
  const Bandwidth duplex = rate_of(Param::DuplexBandwidth);
  const Bandwidth nvlink = rate_of(Param::NvlinkBandwidth);
  // A thousand GPUs have five thousand links: only those that the program can use.
  const bool copies = any_op(program_, [](const Op& op) {
    const StreamWork work = op_facts(op.kind).work;
    return work == StreamWork::Copy || work == StreamWork::Fill;
  });
  const bool kernels = copies || any_op(program_, [](const Op& op) {  // that use the memory
                         const OpFacts facts = op_facts(op.kind);
                         return facts.work == StreamWork::Kernel && !facts.accesses.empty();
                       });
  engine_.reserve_paths(paths_at_most());
  const bool slows = kernels && machine_.has(Param::NcclMemorySlowdown);
  const std::vector<std::uint32_t> alike = gpus_that_flow_alike();
  for (std::uint32_t g = 0; g < program_.processes * program_.devices; ++g) {
    GpuLinks& links = gpu_links_.emplace_back();
    if (!runs_[g / program_.devices]) continue;
    const double share = share_of(MachineFault::Part::Link, g);
    if (network_ != nullptr && share < 1) network_->narrow(g, share);
    const std::uint32_t first = alike[g];
    if (first == g) {
      const Bandwidth port =
          share < 1 ? Bandwidth::gigabytes_per_second(nvlink.bytes_per_second() * share * 1e-9)
                    : nvlink;
      links.nvlink_in = engine_.add_link(fmt::format("gpu{}.nvlink_in", g), port);
      links.nvlink_out = engine_.add_link(fmt::format("gpu{}.nvlink_out", g), port);
    } else {
      links.nvlink_in = gpu_links_[first].nvlink_in;
      links.nvlink_out = gpu_links_[first].nvlink_out;
    }
    if (copies) {
      links.pcie =
          PcieLinks{engine_.add_link(fmt::format("gpu{}.pcie_in", g), in),
                    engine_.add_link(fmt::format("gpu{}.pcie_out", g), out),
                    engine_.add_link(fmt::format("gpu{}.pcie", g), duplex), host_memory_of_pair(g)};
    }
    if (slows && !program_.communicators.empty()) {
      JoinedLink* memory = nullptr;
      if (first == g) {
        memory = &memory_links_.emplace_back(
            engine_.add_link(fmt::format("gpu{}.nccl_memory", g), nvlink, LinkSharing::PerFlow),
            nvlink);
      } else {
        memory = gpu_links_[first].nccl_memory->link;
      }
      links.nccl_memory = {memory, memory->add_member(),
                           g,      network_.get(),
                           nvlink, machine_.get(Param::NcclMemorySlowdown).value};
    }
  }
  for (const Param rate : {Param::PageableH2dBandwidth, Param::PageableH2dCached,
                           Param::PageableH2dCore, Param::PageableD2hBandwidth,
                           Param::FreshD2hBandwidth, Param::P2pShare, Param::P2pStagedBandwidth}) {
    if (!machine_.has(rate)) continue;
    caps_.emplace(
        rate, engine_.add_link(std::string{info(rate).key}, rate_of(rate), LinkSharing::PerFlow));
  }
}

/// For each GPU the first one through whose links the same flows go: those of the collectives of
/// the same communicators. Where ranks send to each other, or slices go one by one, each is its
/// own.
std::vector<std::uint32_t> World::gpus_that_flow_alike() const {
  const auto count = static_cast<std::uint32_t>(program_.processes * program_.devices);
  std::vector<std::uint32_t> first(count);
  std::iota(first.begin(), first.end(), 0U);
  if (network_ != nullptr || program_.devices > 1 || sends_between_ranks()) return first;
  std::vector<std::vector<std::uint32_t>> communicators(count);
  for (std::uint32_t c = 0; c < program_.communicators.size(); ++c) {
    for (const RankPlace& place : program_.communicators[c].members) {
      if (runs_[place.process]) communicators[gpu_index(place.process, place.device)].push_back(c);
    }
  }
  std::map<std::pair<std::vector<std::uint32_t>, double>, std::uint32_t> known;
  for (std::uint32_t g = 0; g < count; ++g) {
    if (!runs_[g]) continue;
    const double share = share_of(MachineFault::Part::Link, g);
    first[g] = known.try_emplace({std::move(communicators[g]), share}, g).first->second;
  }
  return first;
}

bool World::sends_between_ranks() const {
  return any_op(program_, [](const Op& op) { return std::holds_alternative<NcclSend>(op.kind); });
}

/// Ways that flows of the program may take: of each communicator, of its pairs, and of copies.
std::size_t World::paths_at_most() const {
  const bool pairs = sends_between_ranks();
  constexpr std::size_t kOfAGpu = 16;  // to and from its host at several rates, and NCCL's memory
  const std::size_t devices = program_.devices;
  const auto processes = static_cast<std::size_t>(std::ranges::count(runs_, true));
  const bool has_fabric = program_.fabric || machine_.fabric;
  std::size_t paths = processes * devices * (kOfAGpu + 2 * devices);
  paths += program_.nodes * (1 + 2 * team_caps_.size());
  for (const Communicator& communicator : program_.communicators) {
    const auto ranks = static_cast<std::size_t>(std::ranges::count_if(
        communicator.members, [&](const RankPlace& place) { return runs_[place.process]; }));
    const std::size_t ways = has_fabric ? 64 : 0;  // unlike loads of its rings, trees, exchanges
    const std::size_t of_pair = has_fabric ? 6 : 2;
    if (ranks > 0) paths += 2 + ways + (pairs ? of_pair * ranks * (ranks - 1) : 0);
  }
  return paths;
}

Bandwidth World::rate_of(Param param) const {
  return Bandwidth::gigabytes_per_second(machine_.rate(param) * 1e-9);
}

LinkId World::cap(Param rate) const {
  static_cast<void>(machine_.get(rate));  // a machine file without it is the user's error
  return caps_.at(rate);
}

const World::PcieLinks& World::pcie(std::uint32_t gpu) const {
  const auto& links = gpu_links_[gpu].pcie;
  FORETRACE_CHECK(links.has_value(), "only copies cross PCIe");
  return *links;
}

PathId World::peer(const Process& process, std::uint32_t from, std::uint32_t to, bool direct) {
  const GpuLinks& source = gpu_links_[gpu_index(process.index, from)];
  const GpuLinks& target = gpu_links_[gpu_index(process.index, to)];
  if (direct) return engine_.path({source.nvlink_out, target.nvlink_in, cap(Param::P2pShare)});
  return engine_.path({pcie(gpu_index(process.index, from)).out,
                       pcie(gpu_index(process.index, to)).in, cap(Param::P2pStagedBandwidth)});
}

ChunkRoute World::chunk_route(const Process& process, std::uint32_t from, std::uint32_t to,
                              bool direct) const {
  if (network_ == nullptr || !direct) return {};
  return {network_.get(), gpu_index(process.index, from), gpu_index(process.index, to),
          machine_.rate(Param::P2pShare), machine_.rate(Param::NvlinkBandwidth)};
}

}  // namespace foretrace::sim
