#include "sim/host/warm_state.h"

#include <algorithm>
#include <set>

#include "scenarios/program/op_refs.h"

namespace foretrace::sim {
namespace {

constexpr std::uint32_t kReadOften =
    2;  // reads in a row after which the next one is from the cache

/// What one pass does to host memory. Iterations are taken to be alike: the first stands for all.
class HostTouches {
 public:
  HostTouches(const Program& program, std::uint32_t process)
      : program_{program}, variables_{process} {}

  void add(const Block& block, double times) {
    for (const Op& op : block) {
      if (const auto* repeat = std::get_if<Repeat>(&op.kind)) {
        variables_.push_back(0);
        if (repeat->times > 0) add(repeat->ops, times * static_cast<double>(repeat->times));
        variables_.pop_back();
      } else if (const Block* inner = block_of(op.kind)) {
        add(*inner, times);
      } else {
        add(op, times);
      }
    }
  }

  std::set<std::uint32_t> read, written;
  double bytes = 0;

 private:
  void add(const Op& op, double times) {
    const auto accesses = buffer_accesses(op.kind);
    const auto memory_of = [this](const BufferAccess& access) {
      return program_.buffers[access.buffer->resolve(variables_).value].memory;
    };
    // Between a GPU and pinned memory no host thread touches the data.
    const bool by_device = std::ranges::any_of(accesses, [&](const BufferAccess& access) {
      return memory_of(access) == MemoryKind::Device;
    });
    for (const BufferAccess& access : accesses) {
      const std::uint32_t id = access.buffer->resolve(variables_).value;
      const Buffer& buffer = program_.buffers[id];
      if (buffer.memory == MemoryKind::Device) continue;
      if (buffer.memory == MemoryKind::Pinned && by_device) continue;
      (access.writes ? written : read).insert(id);
      bytes += times * static_cast<double>(buffer.size.count);
    }
  }

  const Program& program_;
  std::vector<std::int64_t> variables_;
};

void add_captured(const Program& program, const Block& block, bool captured,
                  std::set<std::uint32_t>& found) {
  for (const Op& op : block) {
    if (const CommRef* comm = captured ? nccl_comm(op.kind) : nullptr) {
      found.insert(program.comms[comm->first.value].communicator);
    }
    if (const Block* inner = block_of(op.kind)) {
      add_captured(program, *inner, captured || std::holds_alternative<GraphCapture>(op.kind),
                   found);
    }
  }
}

}  // namespace

void warm_cache(const Program& program, const Machine& machine, Process& process) {
  if (program.warmup == 0 || !machine.has(Param::HostCache)) return;
  HostTouches touches{program, process.index};
  for (const foretrace::HostThread& thread : program.threads) {
    if (std::ranges::find(thread.processes, process.index) != thread.processes.end()) {
      touches.add(thread.ops, 1);
    }
  }
  if (touches.bytes > machine.get(Param::HostCache).value) return;
  for (const std::uint32_t id : touches.read) {
    if (touches.written.contains(id)) continue;
    process.host_reads[id] = {program.buffers[id].size.count, kReadOften, 0};
  }
}

std::set<std::uint32_t> captured_communicators(const Program& program) {
  std::set<std::uint32_t> found;
  for (const foretrace::HostThread& thread : program.threads) {
    add_captured(program, thread.ops, false, found);
  }
  return found;
}

}  // namespace foretrace::sim
