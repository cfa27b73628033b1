#include "hw/cuda/cuda_check.h"
#include "hw/cuda/device_guard.h"
#include "hw/execute/execute.h"

namespace foretrace::hw {
namespace {

/// A copy's two ends and how CUDA calls its direction.
struct Copy {
  const Buffer& src;
  const Buffer& dst;
  const void* from;
  void* to;
  std::size_t bytes;

  bool between_devices() const {
    return src.on_device() && dst.on_device() && src.ordinal() != dst.ordinal();
  }
  cudaMemcpyKind kind() const {
    if (src.on_device()) return dst.on_device() ? cudaMemcpyDeviceToDevice : cudaMemcpyDeviceToHost;
    return dst.on_device() ? cudaMemcpyHostToDevice : cudaMemcpyHostToHost;
  }
  /// Whose legacy default stream a copy without a stream uses.
  int ordinal(const Objects& objects) const {
    if (dst.on_device()) return dst.ordinal();
    return src.on_device() ? src.ordinal() : objects.ordinal(0);
  }
};

template <class Op>
Copy copy_of(const Op& op, Context& context) {
  const Variables v = context.variables;
  const Buffer& src = context.objects.buffer(op.src.resolve(v));
  const Buffer& dst = context.objects.buffer(op.dst.resolve(v));
  return {src, dst, static_cast<const std::byte*>(src.data()) + op.src_offset.eval(v).count,
          static_cast<std::byte*>(dst.data()) + op.dst_offset.eval(v).count, op.size.eval(v).count};
}

}  // namespace

void execute(const MemcpyAsync& op, Context& context) {
  const Copy copy = copy_of(op, context);
  const cudaStream_t stream = context.objects.stream(op.stream.resolve(context.variables)).use();
  if (copy.between_devices()) {
    cuda_check(cudaMemcpyPeerAsync(copy.to, copy.dst.ordinal(), copy.from, copy.src.ordinal(),
                                   copy.bytes, stream));
    return;
  }
  cuda_check(cudaMemcpyAsync(copy.to, copy.from, copy.bytes, copy.kind(), stream));
}

void execute(const Memcpy& op, Context& context) {
  const Copy copy = copy_of(op, context);
  use_device(copy.ordinal(context.objects));
  if (copy.between_devices()) {
    cuda_check(
        cudaMemcpyPeer(copy.to, copy.dst.ordinal(), copy.from, copy.src.ordinal(), copy.bytes));
    return;
  }
  cuda_check(cudaMemcpy(copy.to, copy.from, copy.bytes, copy.kind()));
}

void execute(const MemsetAsync& op, Context& context) {
  const Variables v = context.variables;
  const cudaStream_t stream = context.objects.stream(op.stream.resolve(v)).use();
  cuda_check(cudaMemsetAsync(context.objects.buffer(op.dst.resolve(v)).data(), 0,
                             op.size.eval(v).count, stream));
}

void execute(const Memset& op, Context& context) {
  const Variables v = context.variables;
  const Buffer& dst = context.objects.buffer(op.dst.resolve(v));
  use_device(dst.on_device() ? dst.ordinal() : context.objects.ordinal(0));
  cuda_check(cudaMemset(dst.data(), 0, op.size.eval(v).count));
}

void execute(const EnablePeerAccess& op, Context& context) {
  const Variables v = context.variables;
  context.objects.enable_peer_access(context.objects.ordinal(op.device.eval(v)),
                                     context.objects.ordinal(op.peer.eval(v)));
}

}  // namespace foretrace::hw
