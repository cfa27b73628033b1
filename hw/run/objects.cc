#include "hw/run/objects.h"

#include <exception>
#include <ranges>

#include "hw/cuda/cuda_check.h"
#include "hw/cuda/device_guard.h"
#include "hw/cuda/nccl_check.h"
#include "hw/run/program_facts.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::hw {
namespace {

/// Long enough for an idle GPU to reach its working clock: seen to take tens of milliseconds.
constexpr std::int64_t kWakeUpNs = 100'000'000;

bool is_fresh(const Buffer& buffer) {
  return buffer.declared().memory == MemoryKind::FreshPageable;
}

}  // namespace

Objects::Objects(const Program& program, const Processes& processes, int first_ordinal)
    : program_{program},
      processes_{processes},
      first_ordinal_{first_ordinal},
      buffer_types_{buffer_types(program)},
      graphs_(program.graphs.size()),
      comms_(program.comms.size()),
      comm_ids_(program.communicators.size()) {
  prepare_devices();
  write_files();
  for (const foretrace::Stream& stream : program.streams) {
    streams_.emplace_back(stream, ordinal(stream.device));
  }
  const auto process = static_cast<std::uint32_t>(processes.rank());
  for (std::uint32_t c = 0; c < program.comms.size(); ++c) {
    ranks_.push_back(rank_of(program, CommId{c}, process));
  }
  for (const foretrace::Buffer& buffer : program.buffers) {
    buffers_.emplace_back(buffer, ordinal(buffer.device));
  }
  for (std::uint32_t b = 0; b < buffers_.size(); ++b) {
    if (buffers_[b].declared().allocated_by_program || is_fresh(buffers_[b])) continue;
    buffers_[b].allocate();
    fill_buffer(BufferId{b});
  }
  create_communicators(CommInit::All);
  create_communicators(CommInit::Rank);
  synchronize_devices();
}

Objects::~Objects() {
  destroy_graphs();
  // Emptied before the members go: an abort of a communicator must not find its buffers gone.
  // Other ranks may be lost when an exception unwinds; otherwise all are idle and here together.
  for (Communicator& comm : comms_) {
    if (std::uncaught_exceptions() > 0) {
      comm.abort();
    } else if (ncclComm_t handle = comm.release(); handle != nullptr) {
      ncclCommDestroy(handle);
    }
  }
}

void Objects::prepare_devices() {
  for (std::uint32_t d = 0; d < program_.devices; ++d) {
    use_device(ordinal(d));
    Device& device = devices_[ordinal(d)];
    cuda_check(prepare_kernels(device.limits));
    // A cold program must not find its GPU warmed up.
    if (program_.warmup > 0) {
      cuda_check(launch_spin(cudaStreamLegacy, device.limits, SpinClock{}, kWakeUpNs,
                             device.limits.sm_count));
    }
    // Its launch must not wait for the device, in a cold program neither.
    if (has_fault(program_)) cuda_check(load_fault_kernel());
    std::int64_t globaltimer_step_ns = 0;
    cuda_check(measure_spin_clock(device.spin_clock, globaltimer_step_ns));
  }
  // Reductions: their scratch memory, per stream.
  for (const HostThread& thread : program_.threads) {
    for_each_op(thread.ops, [&](const Op& op) {
      const auto* reduction = std::get_if<Reduction>(&op.kind);
      if (reduction == nullptr) return;
      for (std::uint32_t s = reduction->stream.first.value; s < program_.streams.size(); ++s) {
        auto& memory = scratch_[StreamId{s}];
        if (memory) continue;
        use_device(ordinal(program_.streams[s].device));
        void* allocated = nullptr;
        cuda_check(cudaMalloc(&allocated, kReductionScratchBytes));
        memory.reset(allocated);
        cuda_check(cudaMemset(allocated, 0, kReductionScratchBytes));
      }
    });
  }
}

void Objects::write_files() {
  for (std::uint32_t thread = 0; thread < program_.threads.size(); ++thread) {
    std::uint64_t largest = 0;
    for_each_op(program_.threads[thread].ops, [&](const Op& op) {
      const auto* read = std::get_if<ReadFile>(&op.kind);
      if (read == nullptr) return;
      for (std::uint32_t b = read->dst.first.value; b < program_.buffers.size(); ++b) {
        largest = std::max(largest, program_.buffers[b].size.count);
      }
    });
    if (largest > 0) files_.write(thread, largest);
  }
}

void Objects::fill_buffer(BufferId id) {
  const auto seed = id.value + 1000 * static_cast<std::uint32_t>(processes_.rank());
  use_device(first_ordinal_);
  fill(buffers_[id.value], buffer_types_[id.value], seed);
}

void Objects::fill_host_buffers() {
  for (std::uint32_t b = 0; b < buffers_.size(); ++b) {
    if (!buffers_[b].on_device() && buffers_[b].holds_memory()) fill_buffer(BufferId{b});
  }
}

void Objects::share_comm_ids(CommInit when) {
  for (std::size_t c = 0; c < comm_ids_.size(); ++c) {
    const foretrace::Communicator& declared = program_.communicators[c];
    if (declared.init != when) continue;
    const auto root = static_cast<int>(declared.members.front().process);
    if (root == processes_.rank()) nccl_check(ncclGetUniqueId(&comm_ids_[c]));
    processes_.broadcast(std::as_writable_bytes(std::span{&comm_ids_[c], 1}), root);
  }
}

void Objects::create_communicators(CommInit when) {
  if (when == CommInit::Rank) share_comm_ids(when);
  for (std::uint32_t c = 0; c < program_.communicators.size(); ++c) {
    const foretrace::Communicator& declared = program_.communicators[c];
    if (declared.init != when) continue;
    std::vector<CommId> mine;
    for (std::uint32_t h = 0; h < comms_.size(); ++h) {
      if (program_.comms[h].communicator == c && is_mine(CommId{h})) mine.push_back(CommId{h});
    }
    if (when == CommInit::All) {
      std::vector<int> ordinals;
      for (const RankPlace& place : declared.members) ordinals.push_back(ordinal(place.device));
      std::vector<ncclComm_t> handles(ordinals.size());
      nccl_check(
          ncclCommInitAll(handles.data(), static_cast<int>(handles.size()), ordinals.data()));
      for (const CommId id : mine) {
        *comm(id).created() = handles[static_cast<std::size_t>(rank(id))];
        comm(id).publish();
      }
      continue;
    }
    nccl_check(ncclGroupStart());
    for (const CommId id : mine) {
      use_device(ordinal(program_.comms[id.value].device));
      nccl_check(ncclCommInitRank(comm(id).created(), static_cast<int>(declared.members.size()),
                                  comm_ids_[c], rank(id)));
    }
    nccl_check(ncclGroupEnd());
    for (const CommId id : mine) comm(id).publish();
  }
}

void Objects::destroy_communicators(CommInit when) {
  for (std::uint32_t h = 0; h < comms_.size(); ++h) {
    if (program_.communicators[program_.comms[h].communicator].init != when) continue;
    if (ncclComm_t handle = comms_[h].release(); handle != nullptr) {
      use_device(ordinal(program_.comms[h].device));
      nccl_check(ncclCommDestroy(handle));
    }
  }
}

void Objects::before_pass() {
  events_.clear();
  for (const foretrace::Event& event : program_.events) {
    events_.emplace_back(event, ordinal(event.device));
  }
  for (std::uint32_t b = 0; b < buffers_.size(); ++b) {
    Buffer& buffer = buffers_[b];
    if (is_fresh(buffer) && !buffer.declared().allocated_by_program) {
      buffer.allocate();
    } else if (buffer.on_device() && buffer.holds_memory()) {
      fill_buffer(BufferId{b});  // sums in place would grow from pass to pass
    }
  }
  share_comm_ids(CommInit::Op);
  synchronize_devices();
}

void Objects::destroy_graphs() {
  // Before communicators: NCCL waits in their destruction for the graphs that hold their work.
  for (Graph& graph : graphs_) graph.reset();
}

void Objects::wake_tracer() const {
  if (program_.warmup == 0) return;
  for (const auto& [ordinal, device] : devices_) {
    use_device(ordinal);
    cuda_check(launch_spin(cudaStreamLegacy, device.limits, device.spin_clock, 1000, 1));
  }
  synchronize_devices();
}

void Objects::after_pass() {
  synchronize_devices();
  destroy_graphs();
  registrations_.remove_all([this](CommId id) {
    use_device(ordinal(program_.comms[id.value].device));
    return comm(id).handle();
  });
  for (Buffer& buffer : buffers_) {
    buffer.unregister_host();
    if (buffer.declared().allocated_by_program || is_fresh(buffer)) buffer.release();
  }
  // NCCL may have come to rely on it since.
  if (program_.communicators.empty()) {
    for (const PeerAccess& access : peer_accesses_) {
      use_device(access.ordinal);
      cuda_ignore(cudaDeviceDisablePeerAccess(access.peer));
    }
    peer_accesses_.clear();
  }
  destroy_communicators(CommInit::Op);
}

void Objects::enable_peer_access(int ordinal, int peer) {
  use_device(ordinal);
  const cudaError_t error = cudaDeviceEnablePeerAccess(peer, 0);
  if (error == cudaErrorPeerAccessAlreadyEnabled) {  // by NCCL, or by the program before
    cuda_ignore(error);
    return;
  }
  cuda_check(error);
  peer_accesses_.push_back({ordinal, peer});
}

void Objects::abort_communicators() {
  for (Communicator& comm : comms_) comm.abort();
}

void Objects::synchronize_devices() const {
  for (std::uint32_t d = 0; d < program_.devices; ++d) {
    use_device(ordinal(d));
    cuda_check(cudaDeviceSynchronize());
  }
}

}  // namespace foretrace::hw
