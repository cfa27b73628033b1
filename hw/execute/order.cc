#include "hw/cuda/cuda_check.h"
#include "hw/cuda/device_guard.h"
#include "hw/execute/execute.h"
#include "hw/trace/clock.h"

namespace foretrace::hw {
namespace {

/// cudaErrorNotReady is an answer, not an error, but CUDA remembers it as one.
bool is_ready(cudaError_t code) {
  if (code == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());
    return false;
  }
  cuda_check(code);
  return true;
}

cudaEvent_t event_of(const EventRef& ref, Context& context) {
  return context.objects.event(ref.resolve(context.variables));
}

}  // namespace

void execute(const EventRecord& op, Context& context) {
  cuda_check(cudaEventRecord(event_of(op.event, context), use_stream(op.stream, context)));
}

void execute(const StreamWaitEvent& op, Context& context) {
  cuda_check(cudaStreamWaitEvent(use_stream(op.stream, context), event_of(op.event, context), 0));
}

void execute(const EventSynchronize& op, Context& context) {
  cuda_check(cudaEventSynchronize(event_of(op.event, context)));
}

void execute(const EventQuery& op, Context& context) {
  static_cast<void>(is_ready(cudaEventQuery(event_of(op.event, context))));
}

void execute(const EventElapsedTime& op, Context& context) {
  float milliseconds = 0;
  cuda_check(
      cudaEventElapsedTime(&milliseconds, event_of(op.start, context), event_of(op.end, context)));
}

void execute(const EventWaitFor& op, Context& context) {
  const cudaEvent_t event = event_of(op.event, context);
  const Duration timeout = op.timeout.eval(context.variables);
  const std::int64_t poll_ns = round_to_ns(op.poll.eval(context.variables));
  const std::int64_t end_ns = now_ns() + round_to_ns(timeout);
  while (!is_ready(cudaEventQuery(event))) {
    const std::int64_t now = now_ns();
    if (now >= end_ns) {
      const EventId id = op.event.resolve(context.variables);
      throw OperationFailed{"event " + context.program.events[id.value].name +
                            " did not complete within " + std::to_string(to_us(timeout)) + " us"};
    }
    wait_until(std::min(now + poll_ns, end_ns));
  }
}

void execute(const StreamSynchronize& op, Context& context) {
  cuda_check(cudaStreamSynchronize(use_stream(op.stream, context)));
}

void execute(const StreamQuery& op, Context& context) {
  static_cast<void>(is_ready(cudaStreamQuery(use_stream(op.stream, context))));
}

void execute(const DeviceSynchronize& op, Context& context) {
  use_device(context.objects.ordinal(op.device.eval(context.variables)));
  cuda_check(cudaDeviceSynchronize());
}

}  // namespace foretrace::hw
