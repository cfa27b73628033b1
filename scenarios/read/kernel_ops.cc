#include <fmt/format.h>

#include <array>

#include "scenarios/program/product_type.h"
#include "scenarios/read/op_fields.h"

namespace foretrace {
namespace {

constexpr std::int64_t kLargestDimension = 2'147'483'647;  // cublasGemmEx takes int

OpKind read_spin(OpFields& fields) {
  Spin op{fields.stream(), fields.duration("duration")};
  const YamlNode* blocks = fields.map().optional("blocks");
  if (blocks != nullptr) {
    op.blocks = static_cast<std::uint32_t>(
        read_constant(fields.reader(), *blocks, kNumber, 1, kLargestDimension));
  }
  if (const YamlNode* of = fields.map().optional("of")) {
    constexpr std::int64_t kMostSms = 1 << 16;
    op.of = static_cast<std::uint32_t>(read_constant(fields.reader(), *of, kNumber, 1, kMostSms));
  }
  if (const YamlNode* word = fields.map().optional("scales_with")) {
    op.scales_with = read_choice<ScalesWith>(
        fields.reader(), *word, "what-if",
        {{"gemm", ScalesWith::Gemm}, {"hbm", ScalesWith::Hbm}, {"pcie", ScalesWith::Pcie}});
  }
  return op;
}

/// Of a batch's matrices: rows * columns elements each, of which 32 take so many bytes.
std::optional<Expr> matrix_bytes(const Expr& rows, const Expr& columns, const Gemm& op,
                                 std::int64_t bytes_of_32) {
  const auto times = [](const std::optional<Expr>& one, const Expr& other) {
    return one ? combine(Expr::Op::Mul, *one, other) : std::nullopt;
  };
  const auto elements = combine(Expr::Op::Mul, rows, columns);
  if (bytes_of_32 % kCountedNumbers == 0) {
    return times(times(elements, Expr{bytes_of_32 / kCountedNumbers}), op.batch);
  }
  const auto all = times(times(elements, op.batch), Expr{bytes_of_32});
  return all ? combine(Expr::Op::Div, *all, Expr{kCountedNumbers}) : std::nullopt;
}

/// Whether c is added to.
bool read_beta(OpFields& fields) {
  const YamlNode* beta = fields.map().optional("beta");
  return beta != nullptr && read_constant(fields.reader(), *beta, kNumber, 0, 1) == 1;
}

/// Whether TF32 multiplies, which is for float32.
bool read_tf32(OpFields& fields, DataType type) {
  const YamlNode* word = fields.map().optional("compute");
  if (word == nullptr) return false;
  read_choice<bool>(fields.reader(), *word, "compute", {{"tf32", true}});
  if (type != DataType::Float32) {
    fields.reader().problems.error(fields.where("compute"),
                                   fmt::format("{} is not multiplied in TF32", type_word(type)),
                                   "compute: tf32 is for type: float32");
  }
  return true;
}

Scales read_scales(OpFields& fields, DataType type) {
  const YamlNode* word = fields.map().optional("scales");
  const Scales usual = type == DataType::Float4E2M1 ? Scales::Nv : Scales::Tensor;
  if (word == nullptr) return usual;
  const Scales scales = read_choice<Scales>(fields.reader(), *word, "scales",
                                            {{"tensor", Scales::Tensor},
                                             {"row", Scales::Row},
                                             {"block", Scales::Square},
                                             {"mx", Scales::Mx},
                                             {"nv", Scales::Nv}});
  if (!takes(type, scales) || !is_narrow(type)) {
    fields.reader().problems.error(
        fields.where("scales"),
        fmt::format("{} has no scales of this kind: {}", type_word(type), scales_word(scales)),
        "float8: tensor, row, block or mx; float4_e2m1: nv or mx; other types have none");
  }
  return scales;
}

OpKind read_gemm(OpFields& fields) {
  Gemm op{.stream = fields.stream(),
          .m = fields.number("m", 1, kLargestDimension),
          .n = fields.number("n", 1, kLargestDimension),
          .k = fields.number("k", 1, kLargestDimension),
          .type = fields.product_type(),
          .a = fields.buffer("a", kDeviceMemory),
          .b = fields.buffer("b", kDeviceMemory),
          .c = fields.buffer("c", kDeviceMemory),
          .transpose_a = fields.flag("transpose_a"),
          .transpose_b = fields.flag("transpose_b"),
          .batch = fields.number_or("batch", 1, 1, kLargestDimension),
          .adds_to_c = read_beta(fields)};
  op.result = fields.result_type(op.type);
  op.tf32 = read_tf32(fields, op.type);
  op.scales = read_scales(fields, op.type);
  if (is_narrow(op.type) && op.type != DataType::Float4E2M1) {
    constexpr std::int64_t kBytes = 16;
    constexpr std::string_view kWhy = "cuBLAS multiplies float8 by multiples of 16";
    fields.require_multiple(op.m, "m", kBytes, kWhy);
    fields.require_multiple(op.k, "k", kBytes, kWhy);
  }
  const std::int64_t operand = bytes_of_32(op.type, op.scales);
  const std::int64_t result = bytes_of_32(op.result.value_or(result_of(op.type)), Scales::Tensor);
  fields.require_capacity(op.a, matrix_bytes(op.m, op.k, op, operand), "a");
  fields.require_capacity(op.b, matrix_bytes(op.k, op.n, op, operand), "b");
  fields.require_capacity(op.c, matrix_bytes(op.m, op.n, op, result), "c");
  constexpr std::string_view kWhy = "cuBLAS may write c before it has read all of a and b";
  fields.require_apart(op.c, "c", op.a, "a", kWhy);
  fields.require_apart(op.c, "c", op.b, "b", kWhy);
  return op;
}

std::vector<BufferRef> read_sources(OpFields& fields) {
  MapReader& map = fields.map();
  const YamlNode* list = map.optional("srcs");
  if (map.has("src")) {
    if (list != nullptr) fields.reader().problems.error(*list, "either 'src' or 'srcs', not both");
    return {fields.buffer("src", kDeviceMemory)};
  }
  static_cast<void>(map.optional("src"));
  std::vector<BufferRef> sources;
  if (list == nullptr) return sources;
  if (list->kind != YamlNode::Kind::Sequence || list->items.size() > 2) {
    fields.reader().problems.error(*list, "'srcs' is a list of up to two buffers");
    return sources;
  }
  for (const YamlNode& item : list->items) {
    sources.push_back(fields.buffer_at(item, "srcs", kDeviceMemory));
  }
  return sources;
}

OpKind read_elementwise(OpFields& fields) {
  Elementwise op{.stream = fields.stream(),
                 .sources = read_sources(fields),
                 .dst = fields.buffer("dst", kDeviceMemory),
                 .size = {},
                 .type = fields.type()};
  std::uint64_t smallest = fields.buffer_of(op.dst).size.count;
  for (const BufferRef& source : op.sources) {
    smallest = std::min(smallest, fields.buffer_of(source).size.count);
  }
  op.size = fields.typed_size_up_to({smallest}, "the smallest buffer", op.type);
  return op;
}

OpKind read_reduction(OpFields& fields) {
  Reduction op{.stream = fields.stream(),
               .src = fields.buffer("src", kDeviceMemory),
               .dst = fields.buffer("dst", kDeviceMemory),
               .size = {},
               .type = fields.type(),
               .op = fields.red_op()};
  op.size = fields.typed_size_up_to(fields.buffer_of(op.src).size, "the buffer", op.type);
  fields.require_capacity(op.dst, Expr{static_cast<std::int64_t>(size_of(op.type).count)}, "dst");
  return op;
}

/// `name` and what says how it was launched, which only kernels of a capture have.
CapturedShape read_captured_shape(OpFields& fields) {
  constexpr std::int64_t kMostBlocks = std::int64_t{1} << 48, kMostThreads = 1024;
  CapturedShape shape;
  if (const YamlNode* node = fields.map().required("name")) {
    shape.name = read_word(fields.reader(), *node, "a kernel's name");
  }
  const auto count = [&](const char* key, std::int64_t most) {
    const YamlNode* node = fields.map().optional(key);
    return node == nullptr ? 0 : read_constant(fields.reader(), *node, kNumber, 0, most);
  };
  shape.grid = static_cast<std::uint64_t>(count("grid", kMostBlocks));
  shape.block = static_cast<std::uint32_t>(count("block", kMostThreads));
  shape.inner = static_cast<std::uint64_t>(count("inner", kNoLimit));
  shape.joined = static_cast<std::uint64_t>(count("joined", kNoLimit));
  shape.channels = static_cast<std::uint64_t>(count("channels", kNoLimit));
  return shape;
}

OpKind read_library_kernel(OpFields& fields) {
  LibraryKernel op{.stream = fields.stream(),
                   .kernel = KernelKind::Pointwise,
                   .flops = fields.number_or("flops", 0, 0, kNoLimit),
                   .bytes = fields.size_up_to({static_cast<std::uint64_t>(kNoLimit)}, "memory"),
                   .width = fields.number_or("width", 0, 0, kLargestDimension)};
  if (const YamlNode* node = fields.map().required("kernel")) {
    Choices<KernelKind> choices;
    for (std::size_t i = 0; i < kKernelKinds; ++i) {
      const auto kind = static_cast<KernelKind>(i);
      choices.emplace_back(kernel_kind_name(kind), kind);
    }
    op.kernel = read_choice(fields.reader(), *node, "kind of kernel", choices);
    const bool attends =
        op.kernel == KernelKind::AttentionForward || op.kernel == KernelKind::AttentionBackward;
    if (attends && !fields.map().has("width")) {
      fields.reader().problems.error(*node, "attention needs 'width': the size of a head");
    }
    if (op.kernel == KernelKind::Captured) op.captured = read_captured_shape(fields);
  }
  return op;
}

OpKind read_host_func(OpFields& fields) {
  HostFunc op{fields.stream(), {}, {}, {}};
  if (fields.map().has("duration")) op.duration = fields.duration("duration");
  static_cast<void>(fields.map().optional("duration"));
  op.wait = fields.signal_or_none("wait");
  op.signal = fields.signal_or_none("signal");
  return op;
}

constexpr std::array kKernelOps{
    OpSyntax{"spin", "[stream] duration [blocks] [scales_with] [of]",
             "a kernel of given length on some SMs", read_spin},
    OpSyntax{"gemm",
             "[stream] m n k [type] [compute] [scales] [result] a b c [transpose_a] [transpose_b] "
             "[batch] [beta]",
             "c (m x n) = a (m x k) * b (k x n) + beta c through cuBLAS, column-major, packed",
             read_gemm},
    OpSyntax{"elementwise", "[stream] [src | srcs] dst [size] [type]",
             "a kernel that reads up to two buffers and writes one", read_elementwise},
    OpSyntax{
        "library_kernel",
        "[stream] kernel [flops] size [width] [name] [grid] [block] [inner] [joined] [channels]",
        "a library's kernel that is no product: attention, norm, softmax, ...",
        read_library_kernel},
    OpSyntax{"host_func", "[stream] [duration] [wait] [signal]",
             "cudaLaunchHostFunc: the stream waits for a function on the host", read_host_func},
    OpSyntax{"fault", "[stream]", "a kernel that stores where it may not: the context is lost",
             [](OpFields& f) -> OpKind { return Fault{f.stream()}; }},
    OpSyntax{"graph_launch", "graph [stream]", "cudaGraphLaunch of a captured graph",
             [](OpFields& f) -> OpKind {
               return GraphLaunch{f.graph(), f.stream()};
             }},
    OpSyntax{"reduction", "[stream] src dst [size] [type] [op]", "reduces a buffer to one element",
             read_reduction},
};

}  // namespace

std::span<const OpSyntax> kernel_ops() { return kKernelOps; }

}  // namespace foretrace
