#include "sim/host/warm_state.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "models/cost/copy.h"
#include "scenarios/program/program_walk.h"

namespace foretrace::sim {
namespace {

/// What one pass does to host memory. Of an operation's executions the first thousand stand for
/// all.
class HostTouches {
 public:
  HostTouches(const Program& program, std::uint32_t process)
      : program_{program}, variables_{process} {}

  void add(const Block& block) {
    for_each_op(block, [this](const Op& op, Around around) {
      constexpr std::uint64_t kMostWalked = 1000;
      std::vector<std::uint64_t> loops;
      for (const Op* outer : around) {
        if (const auto* loop = std::get_if<Repeat>(&outer->kind)) loops.push_back(loop->times);
      }
      variables_.resize(1 + loops.size());
      const std::uint64_t walked = std::min(executions(around), kMostWalked);
      for (std::uint64_t execution = 0; execution < walked; ++execution) {
        std::uint64_t rest = execution;
        for (std::size_t i = loops.size(); i > 0; --i) {
          variables_[i] = static_cast<std::int64_t>(rest % loops[i - 1]);
          rest /= loops[i - 1];
        }
        add(op);
      }
    });
  }

  std::map<std::uint32_t, std::uint32_t> reads;  ///< so often in a row, by buffer
  std::set<std::uint32_t> written;               ///< by the GPU, too
  double bytes = 0;  ///< of all that host threads touch, each buffer once

 private:
  /// Of a buffer. A read of another part is the first one of that part: shards of 21 MB of a data
  /// set come from memory in each pass (20_register_a_dataset of blind round written-6).
  struct Part {
    std::uint64_t begin = 0, end = 0;
    [[nodiscard]] bool overlaps(const Part& other) const {
      return begin < other.end && other.begin < end;
    }
  };

  Part part_of(const BufferAccess& access, const Buffer& buffer) const {
    const std::uint64_t begin =
        access.offset == nullptr ? 0 : access.offset->eval(variables_).count;
    if (access.size != nullptr) return {begin, begin + access.size->eval(variables_).count};
    if (access.bytes) return {begin, begin + access.bytes->count};
    return {begin, buffer.size.count};
  }

  void add(const Op& op) {
    const auto accesses = op_facts(op.kind).accesses;
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
      if (buffer.memory == MemoryKind::Pinned && by_device) {
        if (access.writes) written.insert(id);
        continue;
      }
      if (touched_.insert(id).second) bytes += static_cast<double>(buffer.size.count);
      if (access.writes) {
        written.insert(id);
      } else {
        const Part part = part_of(access, buffer);
        in_a_row_ = id == last_read_ && part.overlaps(last_part_) ? in_a_row_ + 1 : 1;
        last_read_ = id;
        last_part_ = part;
        reads[id] = std::max(reads[id], in_a_row_);
      }
    }
  }

  const Program& program_;
  std::vector<std::int64_t> variables_;
  std::set<std::uint32_t> touched_;
  std::optional<std::uint32_t> last_read_;
  Part last_part_;
  std::uint32_t in_a_row_ = 0;
};

}  // namespace

void warm_cache(const Program& program, const Machine& machine, Process& process) {
  if (program.warmup == 0 || !machine.has(Param::HostCache)) return;
  const auto on_device = [](const Buffer& buffer) { return buffer.memory == MemoryKind::Device; };
  if (std::ranges::all_of(program.buffers, on_device)) return;
  HostTouches touches{program, process.index};
  for (const foretrace::HostThread& thread : program.threads) {
    if (std::ranges::find(thread.processes, process.index) != thread.processes.end()) {
      touches.add(thread.ops);
    }
  }
  const auto most = [&](Param param) {
    return machine.get(machine.has(param) ? param : Param::HostCache).value;
  };
  for (const auto& [id, reads] : touches.reads) {
    const bool read_again = reads > cost::kReadsIntoCache;
    if (touches.written.contains(id)) continue;
    process.host_reads[id].from_last_pass =
        touches.bytes <= most(read_again ? Param::UploadCache : Param::KeptCache);
  }
}

double memory_of_a_pass(const Program& program, std::uint32_t device) {
  if (program.warmup == 0) return std::numeric_limits<double>::infinity();
  double bytes = 0;
  for (const Buffer& buffer : program.buffers) {
    if (buffer.memory != MemoryKind::Device || buffer.device != device) continue;
    bytes += static_cast<double>(buffer.size.count);
  }
  return bytes;
}

std::set<std::uint32_t> captured_communicators(const Program& program) {
  std::set<std::uint32_t> found;
  for_each_op(program, [&](const foretrace::HostThread& thread, const Op& op, Around around) {
    const CommRef* comm = is_inside<GraphCapture>(around) ? nccl_comm(op.kind) : nullptr;
    if (comm == nullptr) return;
    // Which one may depend on the process; turns of loops only choose among its devices.
    std::vector<std::int64_t> variables(loops_of(around).size() + 1, 0);
    for (const std::uint32_t process : thread.processes) {
      variables[0] = process;
      found.insert(program.comms[comm->resolve(variables).value].communicator);
    }
  });
  return found;
}

}  // namespace foretrace::sim
