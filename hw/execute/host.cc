#include <optional>

#include "hw/cuda/cuda_check.h"
#include "hw/execute/execute.h"
#include "hw/trace/clock.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::hw {

void execute(const HostCompute& op, Context& context) {
  wait_until(now_ns() + round_to_ns(op.duration.eval(context.variables)));
}

/// There is no framework here: the result counts the calls (measurement.cc).
void execute(const FrameworkCall&, Context&) {}

void execute(const HostFill& op, Context& context) {
  // torch.rand's formula for float32 on the CPU: 24 random bits of a Mersenne Twister
  // (ATen/core/TransformationHelper.h, uniform_real), one thread.
  auto* out = static_cast<float*>(context.objects.buffer(op.dst.resolve(context.variables)).data());
  const std::size_t count = op.size.eval(context.variables).count / sizeof(float);
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = static_cast<float>(context.random() & 0xffffffU) * 0x1p-24F;
  }
}

void execute(const HostParallel& op, Context& context) {
  context.objects.cpu_teams().run(op.threads, static_cast<double>(op.flops.eval(context.variables)),
                                  static_cast<double>(op.bytes.eval(context.variables).count));
}

void execute(const ReadFile& op, Context& context) {
  context.objects.files().read(context.thread,
                               context.objects.buffer(op.dst.resolve(context.variables)).data(),
                               op.size.eval(context.variables).count);
}

void execute(const HostBarrier& op, Context& context) {
  context.barriers.arrive_and_wait(
      op.barrier, static_cast<std::uint32_t>(context.variables.front()), context.thread);
}

void execute(const HostSignal& op, Context& context) {
  context.signals.signal(op.signal.resolve(context.variables));
}

void execute(const HostWait& op, Context& context) {
  static_cast<void>(context.signals.wait(op.signal.resolve(context.variables)));
}

void execute(const HostFunc& op, Context& context) {
  const Variables v = context.variables;
  const Stream& stream = context.objects.stream(op.stream.resolve(v));
  HostFunctionCall& call = context.host_functions.next();
  call.execution = context.state.current();
  call.ordinal = stream.ordinal();
  call.duration_ns = round_to_ns(op.duration.eval(v));
  call.wait = op.wait ? std::optional{op.wait->resolve(v)} : std::nullopt;
  call.signal = op.signal ? std::optional{op.signal->resolve(v)} : std::nullopt;
  call.graph = context.capturing;
  call.capture = context.capturing == nullptr ? 0 : context.capturing->captures();
  cuda_check(cudaLaunchHostFunc(stream.use(), HostFunctions::run, &call));
}

}  // namespace foretrace::hw
