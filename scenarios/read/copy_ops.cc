#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenarios/read/op_fields.h"

namespace foretrace {
namespace {

/// What memcpy and memcpy_async share.
struct CopyFields {
  BufferRef src, dst;
  BytesExpr src_offset, dst_offset, size;
};

Expr read_offset(OpFields& fields, std::string_view key) {
  const YamlNode* node = fields.map().optional(key);
  return node == nullptr ? Expr{} : read_expr(fields.reader(), *node, kSize);
}

CopyFields read_copy(OpFields& fields) {
  CopyFields copy{.src = fields.buffer("src", kAnyMemory),
                  .dst = fields.buffer("dst", kAnyMemory),
                  .src_offset = {read_offset(fields, "src_offset")},
                  .dst_offset = {read_offset(fields, "dst_offset")},
                  .size = {}};
  const std::uint64_t src = fields.buffer_of(copy.src).size.count;
  const std::uint64_t dst = fields.buffer_of(copy.dst).size.count;
  const bool same_size =
      src == dst && !fields.map().has("src_offset") && !fields.map().has("dst_offset");
  if (!same_size && !fields.map().has("size") && fields.is_sound()) {
    fields.reader().problems.error(
        fields.map().node(), fmt::format("the copy needs 'size': '{}' has {} B, '{}' has {} B{}",
                                         fields.where("src").text, src, fields.where("dst").text,
                                         dst, src == dst ? ", and there is an offset" : ""));
  }
  copy.size = fields.size_up_to({std::min(src, dst)}, "the smaller buffer");
  fields.require_within(copy.src, copy.src_offset.expr, copy.size.expr, "src");
  fields.require_within(copy.dst, copy.dst_offset.expr, copy.size.expr, "dst");
  return copy;
}

OpKind read_memcpy_async(OpFields& fields) {
  StreamRef stream = fields.stream();
  CopyFields copy = read_copy(fields);
  return MemcpyAsync{std::move(stream),          std::move(copy.src),        std::move(copy.dst),
                     std::move(copy.src_offset), std::move(copy.dst_offset), std::move(copy.size)};
}

OpKind read_memcpy(OpFields& fields) {
  CopyFields copy = read_copy(fields);
  return Memcpy{std::move(copy.src), std::move(copy.dst), std::move(copy.src_offset),
                std::move(copy.dst_offset), std::move(copy.size)};
}

OpKind read_memset_async(OpFields& fields) {
  MemsetAsync op{fields.stream(), fields.buffer("dst", kDeviceMemory | kPinnedMemory), {}};
  op.size = fields.size_up_to(fields.buffer_of(op.dst).size, "the buffer");
  return op;
}

OpKind read_memset(OpFields& fields) {
  Memset op{fields.buffer("dst", kDeviceMemory | kPinnedMemory), {}};
  op.size = fields.size_up_to(fields.buffer_of(op.dst).size, "the buffer");
  return op;
}

OpKind read_enable_peer_access(OpFields& fields) {
  const std::int64_t last = std::int64_t{fields.program().devices} - 1;
  EnablePeerAccess op{fields.number("device", 0, last), fields.number("peer", 0, last)};
  const auto same = combine(Expr::Op::Equal, op.device, op.peer);
  if (same && fields.is_sound() && leaves_range(*same, 0, 0, fields.reader().domain)) {
    fields.reader().problems.error(fields.where("peer"), "a device is no peer of itself",
                                   "CUDA answers cudaErrorInvalidDevice; 'device' is to access "
                                   "the memory of 'peer', another one");
  }
  return op;
}

constexpr std::array kCopyOps{
    OpSyntax{"memcpy_async", "[stream] src dst [size] [src_offset] [dst_offset]",
             "cudaMemcpyAsync; its kind follows from the buffers", read_memcpy_async},
    OpSyntax{"memcpy", "src dst [size] [src_offset] [dst_offset]",
             "cudaMemcpy: the host waits as CUDA documents", read_memcpy},
    OpSyntax{"memset_async", "[stream] dst [size]", "cudaMemsetAsync", read_memset_async},
    OpSyntax{"memset", "dst [size]", "cudaMemset", read_memset},
    OpSyntax{"enable_peer_access", "device peer", "cudaDeviceEnablePeerAccess",
             read_enable_peer_access},
};

}  // namespace

std::span<const OpSyntax> copy_ops() { return kCopyOps; }

}  // namespace foretrace
