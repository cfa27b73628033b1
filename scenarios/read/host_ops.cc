#include <array>

#include "scenarios/read/op_fields.h"

namespace foretrace {
namespace {

BarrierId barrier(OpFields& fields) {
  const YamlNode* node = fields.map().optional("name");
  const std::string name =
      node == nullptr ? "" : read_word(fields.reader(), *node, "a barrier's name");
  auto& all = fields.program().barriers;
  const auto [found, is_new] =
      fields.reader().barriers.emplace(name, BarrierId{static_cast<std::uint32_t>(all.size())});
  if (is_new) all.push_back({name, {}});
  return found->second;
}

OpKind read_host_fill(OpFields& fields) {
  const BufferRef dst = fields.buffer("dst", kHostMemory);
  return HostFill{
      dst, fields.typed_size_up_to(fields.buffer_of(dst).size, "the buffer", DataType::Float32)};
}

// clang-format off: one line per operation reads as a table
constexpr std::array kHostOps{
    OpSyntax{"host_compute", "duration", "the host thread is busy for a time",
             [](OpFields& f) -> OpKind { return HostCompute{f.duration("duration")}; }},
    OpSyntax{"host_fill", "dst [size]", "the host thread writes random float32 numbers",
             read_host_fill},
    OpSyntax{"host_barrier", "[name]", "waits until every thread that names it has arrived",
             [](OpFields& f) -> OpKind { return HostBarrier{barrier(f)}; }},
    OpSyntax{"host_signal", "signal", "adds one to a counting semaphore of the process",
             [](OpFields& f) -> OpKind { return HostSignal{f.signal()}; }},
    OpSyntax{"host_wait", "signal", "waits for a semaphore and takes one from it",
             [](OpFields& f) -> OpKind { return HostWait{f.signal()}; }},
};
// clang-format on

}  // namespace

std::span<const OpSyntax> host_ops() { return kHostOps; }

}  // namespace foretrace
