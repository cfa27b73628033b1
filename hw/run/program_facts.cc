#include "hw/run/program_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "scenarios/program/product_type.h"

namespace foretrace::hw {
namespace {

template <class T>
concept Typed = requires(const T& op) {
  op.type;
};
template <class T>
concept OnStream = requires(const T& op) {
  op.stream;
};

/// The buffers that a typed operation computes on.
std::vector<BufferRef> computed_buffers(const OpKind& kind) {
  return std::visit(
      [](const auto& op) -> std::vector<BufferRef> {
        using T = std::decay_t<decltype(op)>;
        if constexpr (std::is_same_v<T, Reduction>) return {op.src, op.dst};
        if constexpr (std::is_same_v<T, NcclCollective>) return {op.send, op.recv};
        if constexpr (std::is_same_v<T, NcclSend> || std::is_same_v<T, NcclRecv>) {
          return {op.buffer};
        }
        if constexpr (std::is_same_v<T, Elementwise>) {
          std::vector<BufferRef> all = op.sources;
          all.push_back(op.dst);
          return all;
        }
        return {};
      },
      kind);
}

std::optional<DataType> type_of(const OpKind& kind) {
  return std::visit(
      [](const auto& op) -> std::optional<DataType> {
        if constexpr (Typed<std::decay_t<decltype(op)>>) return op.type;
        return std::nullopt;
      },
      kind);
}

/// Where a copy without a stream goes: the legacy default stream of a device that takes part.
StreamId default_stream(const Program& program, BufferId src, BufferId dst) {
  for (const BufferId id : {dst, src}) {
    const foretrace::Buffer& buffer = program.buffers[id.value];
    if (buffer.memory == MemoryKind::Device) return StreamId{buffer.device};
  }
  return StreamId{0};
}

}  // namespace

bool has_fault(const Program& program) {
  return any_op(program, [](const Op& op) { return std::holds_alternative<Fault>(op.kind); });
}

bool runs_in(const HostThread& thread, std::uint32_t process) {
  return std::ranges::find(thread.processes, process) != thread.processes.end();
}

std::vector<std::uint32_t> threads_of(const Program& program, std::uint32_t process) {
  std::vector<std::uint32_t> result;
  for (std::uint32_t t = 0; t < program.threads.size(); ++t) {
    if (runs_in(program.threads[t], process)) result.push_back(t);
  }
  return result;
}

std::vector<Element> buffer_types(const Program& program) {
  std::vector<std::optional<Element>> found(program.buffers.size());
  // A family's members have the same use as far as its type goes: mark from the first one to the
  // next declared buffer of another name.
  const auto family_name = [&](std::size_t buffer) {
    const std::string& name = program.buffers[buffer].name;
    return name.substr(0, name.find('('));
  };
  const auto mark = [&](const BufferRef& ref, Element type) {
    for (std::size_t b = ref.first.value;
         b < found.size() && family_name(b) == family_name(ref.first.value); ++b) {
      if (!found[b]) found[b] = type;
    }
  };
  for (const HostThread& thread : program.threads) {
    for_each_op(thread.ops, [&](const Op& op) {
      if (const auto* gemm = std::get_if<Gemm>(&op.kind)) {
        mark(gemm->a, element_of(gemm->type));
        mark(gemm->b, gemm->type == DataType::Float8E5M2 ? Element::Float8E4M3
                                                         : element_of(gemm->type));
        mark(gemm->c, element_of(gemm->result.value_or(result_of(gemm->type))));
        return;
      }
      const auto type = type_of(op.kind);
      if (!type) return;
      for (const BufferRef& ref : computed_buffers(op.kind)) mark(ref, element_of(*type));
    });
  }
  std::vector<Element> result;
  for (const auto& type : found) result.push_back(type.value_or(Element::Float32));
  return result;
}

std::vector<Element> checked_types(const Program& program) {
  std::vector<Element> types = buffer_types(program);
  for (Element& type : types) {
    if (type == Element::Float8E4M3 || type == Element::Float8E5M2) type = Element::Int8;
  }
  return types;
}

int rank_of(const Program& program, CommId comm, std::uint32_t process) {
  const CommHandle& handle = program.comms[comm.value];
  const auto& members = program.communicators[handle.communicator].members;
  const auto found = std::ranges::find(members, RankPlace{process, handle.device});
  return found == members.end() ? -1 : static_cast<int>(found - members.begin());
}

std::vector<std::int64_t> variables_at(const OpInfo& info, const std::vector<OpInfo>& infos,
                                       std::uint64_t instance, std::uint32_t process) {
  std::vector<std::uint64_t> times;
  for (const OpId loop : info.loops) {
    times.push_back(std::get<Repeat>(infos[loop.value].op->kind).times);
  }
  std::vector<std::int64_t> variables{process};
  const auto indices = loop_indices(instance, times);
  variables.insert(variables.end(), indices.begin(), indices.end());
  return variables;
}

std::optional<StreamId> stream_of(const Program& program, const OpKind& kind, Variables variables) {
  return std::visit(
      [&](const auto& op) -> std::optional<StreamId> {
        using T = std::decay_t<decltype(op)>;
        if constexpr (OnStream<T>) {
          return op.stream.resolve(variables);
        } else if constexpr (std::is_same_v<T, Memcpy>) {
          return default_stream(program, op.src.resolve(variables), op.dst.resolve(variables));
        } else if constexpr (std::is_same_v<T, Memset>) {
          const BufferId dst = op.dst.resolve(variables);
          return default_stream(program, dst, dst);
        } else {
          return std::nullopt;
        }
      },
      kind);
}

std::string place_of(const Program& program, const OpInfo& info, std::uint32_t process) {
  return fmt::format("process {}, thread {}, {}:{}: {}", process, program.threads[info.thread].name,
                     std::filesystem::path{program.file}.filename().string(), info.op->line,
                     kind_name(info.op->kind));
}

}  // namespace foretrace::hw
