#include "hw/cuda/cuda_check.h"
#include "hw/execute/execute.h"
#include "hw/run/program_facts.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::hw {

void execute(const Spin& op, Context& context) {
  const Stream& stream = context.objects.stream(op.stream.resolve(context.variables));
  const int ordinal = stream.ordinal();
  cuda_check(launch_spin(stream.use(), context.objects.limits(ordinal),
                         context.objects.spin_clock(ordinal),
                         round_to_ns(op.duration.eval(context.variables)),
                         op.blocks_on(context.objects.limits(ordinal).sm_count)));
}

void execute(const Gemm& op, Context& context) {
  const Variables v = context.variables;
  const StreamId id = op.stream.resolve(v);
  Objects& objects = context.objects;
  objects.gemms()
      .at(context.thread, id, objects.stream(id))
      .multiply({.m = op.m.eval(v),
                 .n = op.n.eval(v),
                 .k = op.k.eval(v),
                 .transposes_a = op.transpose_a,
                 .transposes_b = op.transpose_b,
                 .batch = op.batch.eval(v),
                 .beta = op.adds_to_c ? 1 : 0},
                GemmTypes::of(op), objects.buffer(op.a.resolve(v)).data(),
                objects.buffer(op.b.resolve(v)).data(), objects.buffer(op.c.resolve(v)).data());
}

void execute(const Elementwise& op, Context& context) {
  const Variables v = context.variables;
  const void* sources[2] = {nullptr, nullptr};
  for (std::size_t i = 0; i < op.sources.size(); ++i) {
    sources[i] = context.objects.buffer(op.sources[i].resolve(v)).data();
  }
  cuda_check(launch_elementwise(
      context.objects.stream(op.stream.resolve(v)).use(), element_of(op.type), sources[0],
      sources[1], context.objects.buffer(op.dst.resolve(v)).data(), op.size.eval(v).count));
}

void execute(const Reduction& op, Context& context) {
  const Variables v = context.variables;
  const StreamId id = op.stream.resolve(v);
  const Stream& stream = context.objects.stream(id);
  cuda_check(launch_reduction(stream.use(), context.objects.limits(stream.ordinal()),
                              element_of(op.type), combine_of(op.op),
                              context.objects.buffer(op.src.resolve(v)).data(),
                              context.objects.buffer(op.dst.resolve(v)).data(),
                              op.size.eval(v).count, context.objects.reduction_scratch(id)));
}

void execute(const Fault& op, Context& context) {
  cuda_check(launch_fault(context.objects.stream(op.stream.resolve(context.variables)).use()));
}

}  // namespace foretrace::hw
