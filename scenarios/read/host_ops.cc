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

OpKind read_host_parallel(OpFields& fields) {
  constexpr std::int64_t kMostThreads = 4096;
  constexpr std::int64_t kMostFlops = 1'000'000'000'000'000'000;
  HostParallel op{fields.number_or("flops", 0, 0, kMostFlops), {}, 0};
  if (const YamlNode* node = fields.map().optional("bytes")) {
    op.bytes = {read_expr(fields.reader(), *node, kSize, 0)};
  }
  if (const YamlNode* node = fields.map().optional("threads")) {
    op.threads =
        static_cast<std::uint32_t>(read_constant(fields.reader(), *node, kNumber, 1, kMostThreads));
  }
  if (!fields.map().has("flops") && !fields.map().has("bytes")) {
    fields.reader().problems.error(fields.map().node(),
                                   "host_parallel needs 'flops', 'bytes' or both");
  }
  return op;
}

OpKind read_read_file(OpFields& fields) {
  const BufferRef dst = fields.buffer("dst", kHostMemory);
  return ReadFile{dst, fields.size_up_to(fields.buffer_of(dst).size, "the buffer")};
}

OpKind read_framework_call(OpFields& fields) {
  constexpr std::int64_t kMost = 4'000'000'000;
  FrameworkCall op;
  if (const YamlNode* node = fields.map().required("work")) {
    Choices<FrameworkWork> choices;
    for (std::size_t i = 0; i < kFrameworkWorks; ++i) {
      const auto work = static_cast<FrameworkWork>(i);
      choices.emplace_back(framework_work_name(work), work);
    }
    op.work = read_choice(fields.reader(), *node, "kind of work", choices);
  }
  const auto number = [&](const char* key, std::int64_t least, std::uint32_t& value) {
    if (const YamlNode* node = fields.map().optional(key)) {
      value =
          static_cast<std::uint32_t>(read_constant(fields.reader(), *node, kNumber, least, kMost));
    }
  };
  number("count", 1, op.count);
  number("queries", 0, op.queries);
  number("loop_us", 0, op.loop_us);
  return op;
}

// clang-format off: one line per operation reads as a table
constexpr std::array kHostOps{
    OpSyntax{"host_compute", "duration", "the host thread is busy for a time",
             [](OpFields& f) -> OpKind { return HostCompute{f.duration("duration")}; }},
    OpSyntax{"host_fill", "dst [size]", "the host thread writes random float32 numbers",
             read_host_fill},
    OpSyntax{"host_parallel", "[flops] [bytes] [threads]",
             "an operator on the CPU: all cores, or some, compute and go through memory",
             read_host_parallel},
    OpSyntax{"read_file", "dst [size]", "reads a file from storage into host memory",
             read_read_file},
    OpSyntax{"framework_call", "work [count] [queries] [loop_us]",
             "PyTorch's own work on the host, as the machine has it", read_framework_call},
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
