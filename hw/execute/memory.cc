#include "hw/execute/execute.h"

namespace foretrace::hw {
namespace {

Buffer& buffer_of(const BufferRef& ref, Context& context) {
  return context.objects.buffer(ref.resolve(context.variables));
}

}  // namespace

void execute(const Malloc& op, Context& context) { buffer_of(op.buffer, context).allocate(); }
void execute(const Free& op, Context& context) { buffer_of(op.buffer, context).free(); }
void execute(const MallocAsync& op, Context& context) {
  buffer_of(op.buffer, context).allocate_async(use_stream(op.stream, context));
}
void execute(const FreeAsync& op, Context& context) {
  buffer_of(op.buffer, context).free_async(use_stream(op.stream, context));
}
void execute(const HostAlloc& op, Context& context) { buffer_of(op.buffer, context).allocate(); }
void execute(const HostFree& op, Context& context) { buffer_of(op.buffer, context).free(); }
void execute(const HostRegister& op, Context& context) {
  buffer_of(op.buffer, context).register_host();
}
void execute(const HostUnregister& op, Context& context) {
  buffer_of(op.buffer, context).unregister_by_program();
}

}  // namespace foretrace::hw
