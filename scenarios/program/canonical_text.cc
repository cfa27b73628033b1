// Program::hash is the digest of this text, so it holds everything that decides what is run and
// nothing else: no names, labels, files or lines. Two scenarios that run the same hash the same.
#include <fmt/format.h>

#include "scenarios/program/program.h"

namespace foretrace {
namespace {

std::string text(const Expr& e) { return e.to_string(); }
std::string text(const BytesExpr& e) { return e.expr.to_string() + "B"; }
std::string text(const DurationExpr& e) { return e.expr.to_string() + "ps"; }
std::string text(DataType type) { return fmt::format("t{}", static_cast<int>(type)); }
std::string text(RedOp op) { return fmt::format("r{}", static_cast<int>(op)); }
std::string text(std::uint32_t n) { return std::to_string(n); }
template <class Tag>
std::string text(Id<Tag> id) {
  return fmt::format("#{}", id.value);
}
template <class Tag>
std::string text(const Ref<Tag>& ref) {
  return fmt::format("#{}+{}", ref.first.value, ref.index.to_string());
}
template <class T>
std::string text(const std::vector<T>& all) {
  std::string joined = "[";
  for (const T& one : all) joined.append(text(one)).append(" ");
  return joined + "]";
}

template <class T>
std::string text(const std::optional<T>& one) {
  return one ? text(*one) : "-";
}

template <class... Fields>
std::string fields(const Fields&... all) {
  std::string joined;
  (joined.append(" ").append(text(all)), ...);
  return joined;
}

/// Nothing of a plain product: those hash as they did before others could be written.
std::string rest_of(const Gemm& gemm) {
  std::string rest;
  if (gemm.transpose_a) rest += " ta";
  if (gemm.transpose_b) rest += " tb";
  if (!gemm.batch.is_constant() || gemm.batch.constant() != 1) rest += " x" + text(gemm.batch);
  if (gemm.adds_to_c) rest += " +c";
  return rest;
}

/// What stands after the operation's name, blocks' bodies excepted.
std::string fields_of(const OpKind& kind) {
  return std::visit(
      Overloaded{
          [](const HostCompute& o) { return fields(o.duration); },
          [](const HostFill& o) { return fields(o.dst, o.size); },
          [](const HostBarrier& o) { return fields(o.barrier); },
          [](const HostSignal& o) { return fields(o.signal); },
          [](const HostWait& o) { return fields(o.signal); },
          [](const HostParallel& o) { return fields(o.flops, o.bytes, o.threads); },
          [](const ReadFile& o) { return fields(o.dst, o.size); },
          [](const FrameworkCall& o) {
            return fields(static_cast<std::uint32_t>(o.work), o.count);
          },
          [](const Spin& o) { return fields(o.stream, o.duration, o.blocks); },
          [](const Gemm& o) {
            return fields(o.stream, o.m, o.n, o.k, o.type, o.a, o.b, o.c) + rest_of(o);
          },
          [](const Elementwise& o) { return fields(o.stream, o.sources, o.dst, o.size, o.type); },
          [](const Reduction& o) { return fields(o.stream, o.src, o.dst, o.size, o.type, o.op); },
          [](const LibraryKernel& o) {
            return fields(o.stream, static_cast<std::uint32_t>(o.kernel), o.flops, o.bytes,
                          o.width);
          },
          [](const HostFunc& o) { return fields(o.stream, o.duration, o.wait, o.signal); },
          [](const Fault& o) { return fields(o.stream); },
          [](const MemcpyAsync& o) {
            return fields(o.stream, o.src, o.dst, o.src_offset, o.dst_offset, o.size);
          },
          [](const Memcpy& o) { return fields(o.src, o.dst, o.src_offset, o.dst_offset, o.size); },
          [](const MemsetAsync& o) { return fields(o.stream, o.dst, o.size); },
          [](const Memset& o) { return fields(o.dst, o.size); },
          [](const EnablePeerAccess& o) { return fields(o.device, o.peer); },
          [](const EventRecord& o) { return fields(o.event, o.stream); },
          [](const StreamWaitEvent& o) { return fields(o.stream, o.event); },
          [](const EventSynchronize& o) { return fields(o.event); },
          [](const EventQuery& o) { return fields(o.event); },
          [](const EventElapsedTime& o) { return fields(o.start, o.end); },
          [](const EventWaitFor& o) { return fields(o.event, o.timeout, o.poll); },
          [](const StreamSynchronize& o) { return fields(o.stream); },
          [](const StreamQuery& o) { return fields(o.stream); },
          [](const DeviceSynchronize& o) { return fields(o.device); },
          [](const Malloc& o) { return fields(o.buffer); },
          [](const Free& o) { return fields(o.buffer); },
          [](const MallocAsync& o) { return fields(o.buffer, o.stream); },
          [](const FreeAsync& o) { return fields(o.buffer, o.stream); },
          [](const HostAlloc& o) { return fields(o.buffer); },
          [](const HostFree& o) { return fields(o.buffer); },
          [](const HostRegister& o) { return fields(o.buffer); },
          [](const NcclCommInit& o) { return fields(o.comm) + (o.if_needed ? " if_needed" : ""); },
          [](const NcclCommDestroy& o) { return fields(o.comm); },
          [](const NcclCommRegister& o) { return fields(o.comm, o.buffer); },
          [](const NcclCommDeregister& o) { return fields(o.comm, o.buffer); },
          [](const NcclCollective& o) {
            return fields(o.comm, o.stream, o.send, o.recv, o.size, o.type, o.op, o.root);
          },
          [](const NcclSend& o) {
            return fields(o.comm, o.stream, o.buffer, o.size, o.type, o.peer);
          },
          [](const NcclRecv& o) {
            return fields(o.comm, o.stream, o.buffer, o.size, o.type, o.peer);
          },
          [](const GraphLaunch& o) { return fields(o.graph, o.stream); },
          [](const Repeat& o) { return fmt::format(" {}", o.times); },
          [](const Region& o) { return fmt::format(" {}", o.per); },
          [](const NcclGroup&) { return std::string{}; },
          [](const GraphCapture& o) { return fields(o.graph, o.stream); },
      },
      kind);
}

void append_block(std::string& out, const Block& block) {
  for (const Op& op : block) {
    out += kind_name(op.kind) + fields_of(op.kind) + "\n";
    if (const Block* inner = block_of(op.kind)) {
      out += "{\n";
      append_block(out, *inner);
      out += "}\n";
    }
  }
}

void append_objects(std::string& out, const Program& program) {
  for (const Stream& s : program.streams) {
    out += fmt::format("stream {} {} {}\n", s.device, static_cast<int>(s.kind), s.priority);
  }
  for (const Event& e : program.events) out += fmt::format("event {} {}\n", e.device, e.timing);
  for (const Buffer& b : program.buffers) {
    out +=
        fmt::format("buffer {} {} {} {} {}{}\n", static_cast<int>(b.memory), b.device, b.size.count,
                    static_cast<int>(b.contents), b.allocated_by_program, b.by_nccl ? " nccl" : "");
  }
  for (const Communicator& c : program.communicators) {
    out += fmt::format("communicator {}", static_cast<int>(c.init));
    for (const RankPlace& rank : c.members) out += fmt::format(" {}.{}", rank.process, rank.device);
    out += "\n";
  }
  for (const CommHandle& h : program.comms) {
    out += fmt::format("handle {} {}\n", h.communicator, h.device);
  }
  out += fmt::format("signals {} barriers {}\n", program.signals.size(), program.barriers.size());
  if (!program.graphs.empty()) out += fmt::format("graphs {}\n", program.graphs.size());
}

}  // namespace

std::string canonical_text(const Program& program) {
  std::string out = fmt::format("foretrace program 1\nnodes {} processes {} devices {} warmup {}\n",
                                program.nodes, program.processes, program.devices, program.warmup);
  if (program.placement != Placement::Nodewise) out += "placement round_robin\n";
  for (const auto& [name, value] : program.environment) {
    out += fmt::format("environment {} {}={}\n", value.size(), name, value);
  }
  append_objects(out, program);
  for (const HostThread& thread : program.threads) {
    out += "thread";
    for (const std::uint32_t process : thread.processes) out += fmt::format(" {}", process);
    out += "\n{\n";
    append_block(out, thread.ops);
    out += "}\n";
  }
  return out;
}

}  // namespace foretrace
