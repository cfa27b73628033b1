// What the harness does for each operation: one function per struct of scenarios/program/ops.h, so
// that a new operation does not compile until it has one here. Blocks are host_thread.cc's.
#pragma once

#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

#include "hw/cuda/graph.h"
#include "hw/execute/host_functions.h"
#include "hw/run/host_barriers.h"
#include "hw/run/objects.h"
#include "hw/run/pass_barrier.h"
#include "hw/run/thread_state.h"
#include "scenarios/program/program.h"

namespace foretrace::hw {

/// What an operation needs beside itself: its process's objects, its thread's state.
struct Context {
  const Program& program;
  Objects& objects;
  HostBarriers& barriers;
  Signals& signals;
  ThreadState& state;
  HostFunctions& host_functions;          ///< this host thread's
  std::uint32_t thread{};                 ///< index into Program::threads
  std::vector<std::int64_t> variables{};  ///< the process, then the loop indices
  std::uint32_t group_depth = 0;          ///< open nccl_groups
  std::vector<CommId> created_in_group{};
  const Graph* capturing = nullptr;  ///< the graph that operations are being captured into
  std::int64_t elapsed_ns = 0;       ///< what the latest event_elapsed_time returned
  std::mt19937 random{};
};

/// An operation of the program did not succeed (event_wait_for ran out of time, a fault surfaced
/// in it): exit code 1.
class OperationFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The stream that `ref` names, with its device current.
inline cudaStream_t use_stream(const StreamRef& ref, const Context& context) {
  return context.objects.stream(ref.resolve(context.variables)).use();
}

// host
void execute(const HostCompute&, Context&);
void execute(const HostFill&, Context&);
void execute(const HostParallel&, Context&);
void execute(const ReadFile&, Context&);
void execute(const HostBarrier&, Context&);
void execute(const HostSignal&, Context&);
void execute(const HostWait&, Context&);
/// Takes no time: the result counts them.
void execute(const FrameworkCall&, Context&);
void execute(const HostFunc&, Context&);
// kernels
void execute(const Spin&, Context&);
void execute(const Gemm&, Context&);
void execute(const Elementwise&, Context&);
void execute(const Reduction&, Context&);
/// What it works on: grows, which waits for the device, where an earlier one was smaller.
void* library_memory(const LibraryKernel&, Context&);
void execute(const LibraryKernel&, Context&);
void execute(const Fault&, Context&);
void execute(const GraphLaunch&, Context&);
// copies
void execute(const MemcpyAsync&, Context&);
void execute(const Memcpy&, Context&);
void execute(const MemsetAsync&, Context&);
void execute(const Memset&, Context&);
void execute(const EnablePeerAccess&, Context&);
// order
void execute(const EventRecord&, Context&);
void execute(const StreamWaitEvent&, Context&);
void execute(const EventSynchronize&, Context&);
void execute(const EventQuery&, Context&);
void execute(const EventElapsedTime&, Context&);
void execute(const EventWaitFor&, Context&);
void execute(const StreamSynchronize&, Context&);
void execute(const StreamQuery&, Context&);
void execute(const DeviceSynchronize&, Context&);
// memory
void execute(const Malloc&, Context&);
void execute(const Free&, Context&);
void execute(const MallocAsync&, Context&);
void execute(const FreeAsync&, Context&);
void execute(const HostAlloc&, Context&);
void execute(const HostFree&, Context&);
void execute(const HostRegister&, Context&);
void execute(const HostUnregister&, Context&);
// NCCL
void execute(const NcclCommInit&, Context&);
void execute(const NcclCommDestroy&, Context&);
void execute(const NcclCommRegister&, Context&);
void execute(const NcclCommDeregister&, Context&);
void execute(const NcclCollective&, Context&);
void execute(const NcclSend&, Context&);
void execute(const NcclRecv&, Context&);

/// ncclGroupStart and ncclGroupEnd; communicators created inside count from the outermost end on.
void begin_group(Context&);
void end_group(Context&);

/// Between the two, what is queued becomes the graph: up to cudaGraphInstantiate. Then its upload
/// to the device, queued on the capture's stream.
void begin_capture(const GraphCapture&, Context&);
void end_capture(const GraphCapture&, Context&);
void upload_graph(const GraphCapture&, Context&);

}  // namespace foretrace::hw
