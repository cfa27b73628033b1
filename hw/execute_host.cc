#include "hw/clock.h"
#include "hw/execute.h"

namespace foretrace::hw {
namespace {

void stay_busy(Duration duration) {
  const std::int64_t end = now_ns() + round_to_ns(duration);
  while (now_ns() < end) relax_cpu();
}

}  // namespace

void execute(const HostCompute& op, Context& context) {
  stay_busy(op.duration.eval(context.variables));
}

void execute(const HostFill& op, Context& context) {
  // torch.rand's formula for float32 on the CPU: 24 random bits of a Mersenne Twister
  // (ATen/core/TransformationHelper.h, uniform_real), one thread.
  auto* out = static_cast<float*>(context.objects.buffer(op.dst.resolve(context.variables)).data());
  const std::size_t count = op.size.eval(context.variables).count / sizeof(float);
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = static_cast<float>(context.random() & 0xffffffU) * 0x1p-24F;
  }
}

void execute(const HostBarrier& op, Context& context) {
  const Barrier& barrier = context.program.barriers[op.barrier.value];
  context.shared.host_barrier(op.barrier)
      .arrive_and_wait(static_cast<std::uint32_t>(barrier.parties.size()));
}

void execute(const HostSignal& op, Context& context) {
  context.signals.signal(op.signal.resolve(context.variables));
}

void execute(const HostWait& op, Context& context) {
  context.signals.wait(op.signal.resolve(context.variables));
}

}  // namespace foretrace::hw
