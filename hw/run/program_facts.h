// What the harness must know of a program beyond its objects: pure functions, no GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hw/cuda/element.h"
#include "scenarios/program/program_walk.h"

namespace foretrace::hw {

/// Float4 is in no buffer that the harness fills: gemm refuses it.
constexpr Element element_of(DataType type) {
  return type == DataType::Float4E2M1 ? Element::Int8 : static_cast<Element>(type);
}
constexpr Combine combine_of(RedOp op) { return static_cast<Combine>(op); }

/// True when an operation of the program loses the context of its process.
bool has_fault(const Program& program);

bool runs_in(const HostThread& thread, std::uint32_t process);
/// Indices into Program::threads.
std::vector<std::uint32_t> threads_of(const Program& program, std::uint32_t process);

/// The element type each buffer is filled with: that of the first operation that computes on it,
/// float32 where none says.
std::vector<Element> buffer_types(const Program& program);
/// The same as the check of contents fills and compares them: operands of 8 bits are bytes to it.
std::vector<Element> checked_types(const Program& program);

/// The position of (process, device) in the communicator that `comm` is a handle of; -1: no member.
int rank_of(const Program& program, CommId comm, std::uint32_t process);

/// An operation's variables at one of its instances: the process, then the loop indices.
std::vector<std::int64_t> variables_at(const OpInfo& info, const std::vector<OpInfo>& infos,
                                       std::uint64_t instance, std::uint32_t process);

/// The stream that an operation puts work on; the legacy default stream of the current device for
/// the synchronous copies. Empty for operations that no stream sees.
std::optional<StreamId> stream_of(const Program& program, const OpKind& kind, Variables variables);

/// "process 1, thread main, hang.yaml:14: nccl_recv"
std::string place_of(const Program& program, const OpInfo& info, std::uint32_t process);

}  // namespace foretrace::hw
